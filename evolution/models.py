"""Runs and applies as rows; the rules between them are constraints, the moves are in ``transitions``."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from core.db.models import ProcessFields
from evolution.hints import NO_HINT
from evolution.states import APPLY_HOLDS_WORKSPACE, ApplyStatus, RunStatus
from sessions_app.models import Session
from workspaces.models import Workspace


class Worked(ProcessFields):
    """What runs and applies share: a claim is (status, attempts), fencing out every older wrapper.

    ``attempts`` only grows; people are shown this round's count, ``attempts - attempts_base``. A row that
    holds its workspace but has no ``started_at`` waits for a slot ("Try again").
    """

    id = models.CharField(max_length=26, primary_key=True)
    phase = models.CharField(max_length=32, blank=True)
    progress = models.JSONField(default=dict)
    attempts = models.PositiveIntegerField(default=0)
    attempts_base = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    failure_reason = models.TextField(blank=True)
    archived_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        abstract = True

    @property
    def round_attempts(self) -> int:
        return self.attempts - self.attempts_base


class EvolutionApply(Worked):
    """The merge, regression run and publication of one or more approved runs.

    ``approved_by`` is null for an apply that its gates let through; ``snapshot_attempt`` names the attempt
    whose snapshot every later step and the rollback read. ``kept_dirs``: folders it had made and a restore
    had to leave, because someone put files there.
    """

    class Status(models.TextChoices):
        PENDING = ApplyStatus.PENDING.value
        RUNNING = ApplyStatus.RUNNING.value
        SYNCING = ApplyStatus.SYNCING.value
        APPLIED = ApplyStatus.APPLIED.value
        ROLLING_BACK = ApplyStatus.ROLLING_BACK.value
        ROLLED_BACK = ApplyStatus.ROLLED_BACK.value
        FAILED = ApplyStatus.FAILED.value
        TIMEOUT = ApplyStatus.TIMEOUT.value
        CANCELLED = ApplyStatus.CANCELLED.value

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="applies")
    source_runs: models.ManyToManyField[EvolutionRun, models.Model] = models.ManyToManyField(
        "EvolutionRun", related_name="applies"
    )
    approved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    reviewer_hint = models.TextField(blank=True)
    status = models.CharField(max_length=16, choices=Status, default=Status.PENDING)
    snapshot_attempt = models.PositiveIntegerField(null=True)
    needs_person = models.JSONField(null=True)
    drifted = models.JSONField(default=list)
    kept_dirs = models.JSONField(default=list)
    notified_at = models.DateTimeField(null=True)
    rolled_back_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    rollback_force = models.BooleanField(default=False)
    rollback_seen = models.JSONField(default=list)
    rollback_outcome = models.JSONField(null=True)

    class Meta:
        verbose_name = "apply"
        verbose_name_plural = "applies"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace"],
                condition=Q(status__in=sorted(status.value for status in APPLY_HOLDS_WORKSPACE)),
                name="one_apply_per_workspace",
            ),
            models.CheckConstraint(
                condition=Q(attempts_base__lte=F("attempts")), name="apply_base_not_ahead"
            ),
            models.CheckConstraint(
                condition=~Q(status__in=["syncing", "applied", "rolling_back", "rolled_back"])
                | Q(snapshot_attempt__isnull=False),
                name="apply_landed_has_snapshot",
            ),
        ]
        indexes = [
            # Not partial: SQLite can't tell that a bound status lies within a partial index's condition.
            models.Index(fields=["status", "id"], name="apply_by_status"),
        ]

    def __str__(self) -> str:
        return f"apply-{self.id}"

    @property
    def is_auto(self) -> bool:
        return self.approved_by_id is None


class EvolutionRun(Worked):
    """One evolution attempt on one session: draft, dry run, score."""

    class Status(models.TextChoices):
        PENDING = RunStatus.PENDING.value
        RUNNING = RunStatus.RUNNING.value
        AWAITING_REVIEW = RunStatus.AWAITING_REVIEW.value
        APPROVED = RunStatus.APPROVED.value
        APPLIED = RunStatus.APPLIED.value
        ROLLED_BACK = RunStatus.ROLLED_BACK.value
        REJECTED = RunStatus.REJECTED.value
        SKIPPED = RunStatus.SKIPPED.value
        FAILED = RunStatus.FAILED.value
        TIMEOUT = RunStatus.TIMEOUT.value
        CANCELLED = RunStatus.CANCELLED.value

    class Trigger(models.TextChoices):
        NOTE = "note"
        PRE_COMPACT = "pre-compact"
        API = "api"

    class Confidence(models.TextChoices):
        HIGH = "high"
        MEDIUM = "medium"
        LOW = "low"

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="runs")
    source_session = models.ForeignKey(
        Session, on_delete=models.DO_NOTHING, db_constraint=False, related_name="runs"
    )
    agent_id = models.CharField(max_length=64)
    trigger_kind = models.CharField(max_length=16, choices=Trigger)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    user_hint = models.TextField(blank=True)
    hint_key = models.CharField(max_length=64, default=NO_HINT, editable=False)
    """Written with the hint (``hints.hint_values``)."""
    hint_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    """Who gave ``user_hint`` in a retry, in place of the asker's; stays whatever is decided later (four eyes)."""
    status = models.CharField(max_length=16, choices=Status, default=Status.PENDING)
    current_apply = models.ForeignKey(
        EvolutionApply, on_delete=models.PROTECT, null=True, related_name="current_runs"
    )
    source_access = models.CharField(max_length=16)
    score_lint = models.PositiveSmallIntegerField(null=True)
    score_behavior = models.PositiveSmallIntegerField(null=True)
    score_scope = models.PositiveSmallIntegerField(null=True)
    score_avg = models.FloatField(null=True)
    score_confidence = models.CharField(max_length=8, choices=Confidence, blank=True)
    score_spread = models.FloatField(null=True)
    skip_reason = models.TextField(blank=True)
    auto_reason = models.TextField(blank=True)
    has_observation = models.BooleanField(default=False)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True)
    decision_reason = models.TextField(blank=True)

    class Meta:
        verbose_name = "run"
        constraints = [
            models.UniqueConstraint(
                fields=["source_session", "hint_key"],
                # A run that was claimed and is queued again is no new request: it has to be let back beside
                # a newer one with the same hint.
                condition=Q(status="pending", attempts=F("attempts_base")),
                name="one_pending_run_per_hint",
            ),
            models.CheckConstraint(condition=Q(attempts_base__lte=F("attempts")), name="run_base_not_ahead"),
            models.CheckConstraint(
                condition=~Q(status__in=["approved", "applied"]) | Q(current_apply__isnull=False),
                name="run_approved_has_apply",
            ),
        ]
        indexes = [
            models.Index(fields=["status", "id"], name="run_by_status"),
            models.Index(fields=["workspace", "-id"], name="run_by_workspace"),
        ]

    def __str__(self) -> str:
        return f"run-{self.id}"


class RegressionScenario(models.Model):
    """What a landed run showed to work; later applies are held to it until it is retired.

    It owns its texts: the run may be purged. ``run_id`` and ``apply_id`` name where it came from and may lead
    nowhere. ``answer`` is the one given on the surface that landed. Ids sort by the time of landing.
    """

    id = models.CharField(max_length=26, primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="scenarios")
    run_id = models.CharField(max_length=26)
    apply_id = models.CharField(max_length=26)
    target = models.TextField()
    agent_id = models.CharField(max_length=64)
    original_message = models.TextField()
    test_message = models.TextField()
    change = models.TextField(blank=True)
    baseline = models.TextField(blank=True)
    answer = models.TextField()
    created_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)
    retired_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    retired_reason = models.TextField(blank=True)

    class Meta:
        verbose_name = "kept scenario"
        constraints = [
            models.UniqueConstraint(fields=["apply_id", "run_id"], name="one_scenario_per_landing"),
        ]
        indexes = [
            models.Index(fields=["workspace", "-id"], name="scenario_by_workspace"),
            models.Index(fields=["run_id"], name="scenario_by_run"),
        ]

    def __str__(self) -> str:
        return f"scenario-{self.id}"
