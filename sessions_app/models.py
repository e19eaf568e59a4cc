"""Conversations and the messages that wait for them. The text is in the logs (``sessions_app.logs``)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from core.db.models import ProcessFields
from core.processes import ProcessIdentity
from workspaces.models import Workspace


class Session(models.Model):
    """A root session, or a sub-session (``root>child``). Only a root carries the lease of its tree."""

    class AccessLevel(models.TextChoices):
        FULL = "full"
        WORKSPACE = "workspace"
        READONLY = "readonly"

    class Kind(models.TextChoices):
        CHAT = "chat"
        CRON = "cron"

    class Asked(models.TextChoices):
        """What another process wants of the one that works the session; it looks every second."""

        NOTHING = ""
        INTERRUPT = "interrupt"
        STOP = "stop"

    id = models.CharField(max_length=300, primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="sessions")
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="children")
    agent_id = models.CharField(max_length=64)
    agent_name = models.CharField(max_length=200)
    title = models.CharField(max_length=200, blank=True)
    description = models.TextField(blank=True)
    working_dir = models.CharField(max_length=1024, default=".")
    access_level = models.CharField(max_length=16, choices=AccessLevel)
    kind = models.CharField(max_length=8, choices=Kind, default=Kind.CHAT)
    outside_data_at = models.DateTimeField(null=True)
    authoring_until = models.DateTimeField(null=True)
    reply_to = models.JSONField(null=True)
    report_due = models.BooleanField(default=False)
    """A sub-session owes its parent the outcome of what it was last asked (``sessions_app.reports``)."""
    exchange_count = models.PositiveIntegerField(default=0)
    context_tokens = models.PositiveIntegerField(default=0)
    total_output_tokens = models.PositiveBigIntegerField(default=0)
    output = models.TextField(blank=True)
    created_at = models.DateTimeField()
    last_activity_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True)
    archived_at = models.DateTimeField(null=True)

    lease_host = models.CharField(max_length=255, null=True)  # noqa: DJ001 - null says "nobody holds it"
    lease_boot_id = models.CharField(max_length=64, null=True)  # noqa: DJ001 - the same
    lease_pid = models.PositiveIntegerField(null=True)
    lease_start_time = models.PositiveBigIntegerField(null=True)
    lease_epoch = models.PositiveBigIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True)

    asked = models.CharField(max_length=16, choices=Asked, default=Asked.NOTHING, blank=True)
    asked_epoch = models.PositiveBigIntegerField(default=0)
    """Of the lease whose holder is asked; a later holder takes no notice."""

    class Meta:
        indexes = [
            models.Index(fields=["workspace", "-last_activity_at"], name="session_by_activity"),
            models.Index(fields=["id"], condition=~Q(asked=""), name="session_asked"),
            models.Index(fields=["id"], condition=Q(report_due=True), name="session_owing"),
        ]

    def __str__(self) -> str:
        return self.title or self.id

    @property
    def root_id(self) -> str:
        return self.id.split(">", 1)[0]

    @property
    def is_root(self) -> bool:
        return ">" not in self.id

    @property
    def lease_owner(self) -> ProcessIdentity | None:
        if self.lease_host is None or self.lease_boot_id is None:
            return None
        return ProcessIdentity(
            self.lease_host, self.lease_boot_id, self.lease_pid or 0, self.lease_start_time or 0
        )


class QueuedMessage(models.Model):
    """A message that was acknowledged. It is kept after it was worked, so that a resend is recognised."""

    class Sender(models.TextChoices):
        PERSON = "person"
        AGENT = "agent"
        SYSTEM = "system"

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="queue")
    sender = models.CharField(max_length=8, choices=Sender)
    text = models.TextField()
    images = models.JSONField(default=list)
    source_session = models.CharField(max_length=300, blank=True)
    client_id = models.CharField(max_length=128, blank=True)
    stamp = models.CharField(max_length=32)
    starts_turn = models.BooleanField(default=True)
    created_at = models.DateTimeField()
    worked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session", "client_id"], condition=~Q(client_id=""), name="message_sent_once"
            ),
            models.UniqueConstraint(fields=["session", "stamp"], name="message_stamp_unique"),
        ]
        indexes = [
            models.Index(fields=["session", "id"], condition=Q(worked_at=None), name="message_waiting"),
        ]

    def __str__(self) -> str:
        return f"{self.session_id} {self.stamp}"


class RunningSession(ProcessFields):
    """A session that a server works on now; in rest the table is empty.

    A row of another process than the holder of the tree's lease is a leftover: that process died in the
    middle of the session's turn (``sessions_app.restart``).
    """

    session = models.OneToOneField(
        Session, on_delete=models.CASCADE, primary_key=True, related_name="running"
    )
    epoch = models.PositiveBigIntegerField()
    started_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.session_id} since {self.started_at}"


class TokensOnDay(models.Model):
    """What a workspace's agents used on one day (UTC); kept, so that a chart needs no logs."""

    class Use(models.TextChoices):
        CHAT = "chat"
        EVOLUTION = "evolution"

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="tokens")
    day = models.DateField()
    use = models.CharField(max_length=16, choices=Use)
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["day", "workspace", "use"], name="tokens_once_a_day"),
        ]

    def __str__(self) -> str:
        return f"{self.workspace_id} {self.day} {self.use}"
