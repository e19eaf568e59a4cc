"""Rows that every app uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection, models

from core.db.push import push_on_commit
from core.db.text import storable
from core.processes import ProcessIdentity

if TYPE_CHECKING:
    from datetime import datetime


class Event(models.Model):
    """Something a view shows has changed; written in the transaction that changed it.

    ``id`` grows in the order of writing (SQLite AUTOINCREMENT never reuses one); on PostgreSQL
    ``transaction_id`` comes before it (``core.db.events`` reads them), on SQLite that is 0.
    """

    kind = models.CharField(max_length=64)
    object_id = models.CharField(max_length=300)
    workspace_id = models.BigIntegerField(null=True)
    payload = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    transaction_id = models.BigIntegerField(default=0, editable=False)

    class Meta:
        indexes = [
            models.Index(fields=["created_at"], name="event_created"),
            models.Index(fields=["transaction_id", "id"], name="event_order"),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.kind} {self.object_id}"


class ApiToken(models.Model):
    """A bearer token of the REST API: what its user may, narrowed to its scopes.

    Only the digest of the secret is kept (``core.db.api_tokens``); the secret is shown once, when it is made.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"token {self.pk} ({self.name})"


class ProcessFields(models.Model):
    """The process that works a row, as it wrote itself; all null until it has."""

    process_host = models.CharField(max_length=255, null=True)  # noqa: DJ001 - null says "not yet written"
    process_boot_id = models.CharField(max_length=64, null=True)  # noqa: DJ001 - the same
    process_pid = models.PositiveIntegerField(null=True)
    process_start_time = models.PositiveBigIntegerField(null=True)

    class Meta:
        abstract = True

    @property
    def process(self) -> ProcessIdentity | None:
        if (
            self.process_host is None
            or self.process_boot_id is None
            or self.process_pid is None
            or self.process_start_time is None
        ):
            return None
        return ProcessIdentity(
            self.process_host, self.process_boot_id, self.process_pid, self.process_start_time
        )


def process_values(identity: ProcessIdentity | None) -> dict[str, object]:
    """The columns of ``ProcessFields`` for an update; None clears them."""
    if identity is None:
        return dict.fromkeys(("process_host", "process_boot_id", "process_pid", "process_start_time"))
    return {
        "process_host": identity.host,
        "process_boot_id": identity.boot_id,
        "process_pid": identity.pid,
        "process_start_time": identity.start_time,
    }


def record_event(
    *, kind: str, object_id: str, workspace_id: int | None, payload: dict[str, object], now: datetime
) -> Event:
    """Insert an event; call it inside the transaction of the change it tells of. Readers hear of it on commit."""
    event = Event.objects.create(
        kind=kind,
        object_id=object_id,
        workspace_id=workspace_id,
        payload=storable(payload),
        created_at=now,
        transaction_id=_own_transaction() if connection.vendor == "postgresql" else 0,
    )
    push_on_commit(event.pk)
    return event


def _own_transaction() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()::text::bigint")
        number: int = cursor.fetchone()[0]
        return number
