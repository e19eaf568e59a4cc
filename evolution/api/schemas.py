"""What goes in and out; the shapes are those of ``halo evo ... --json``."""

from __future__ import annotations

from typing import Any

from ninja import Schema
from pydantic import ConfigDict, Field, StrictBool, StrictInt

MAX_ATTEMPT = 2**31 - 1
MAX_TEXT = 20_000
MAX_TOGETHER = 100


class Body(Schema):
    """A misspelled field is an error, not something left out in silence."""

    model_config = ConfigDict(extra="forbid")


class ScoreOut(Schema):
    average: float | None
    lint: int | None
    behavior: int | None
    scope: int | None
    confidence: str
    spread: float | None


class RunOut(Schema):
    id: str
    status: str
    phase: str
    progress: dict[str, Any]
    attempt: int
    roundAttempts: int
    workspace: str
    agent: str
    session: str
    trigger: str
    hint: str
    score: ScoreOut
    skipReason: str
    failureReason: str
    autoReason: str
    hasObservation: bool
    apply: str | None
    decidedBy: str | None
    decisionReason: str
    createdAt: str
    startedAt: str | None
    finishedAt: str | None


class RunListPage(Schema):
    items: list[RunOut]
    next: str | None


class RunPageOut(RunOut):
    """A run with all that a decision needs; ``changes`` are diffs against the live surface as it is now.

    ``folder`` is the zip once the run is archived; ``unread`` says what of it can't be shown, and why.
    """

    folder: str
    archivedAt: str | None
    unread: list[str]
    patch: dict[str, Any] | None
    observation: str
    stale: bool
    changes: list[dict[str, Any]]
    answers: dict[str, str]
    scoreDetail: dict[str, Any] | None
    gates: Any


class ApplyOut(Schema):
    id: str
    status: str
    phase: str
    progress: dict[str, Any]
    attempt: int
    workspace: str
    runs: list[str]
    approvedBy: str
    reviewerHint: str
    failureReason: str
    drifted: list[Any]
    keptDirs: list[str]
    needsPerson: Any
    rollback: Any
    rolledBackBy: str | None
    createdAt: str
    finishedAt: str | None


class ApplyListPage(Schema):
    items: list[ApplyOut]
    next: str | None


class PreviewOut(Schema):
    """``conflicts`` go back as ``seen`` when the rollback is forced; ``newer`` landed later on the same."""

    id: str
    attempt: int
    conflicts: list[dict[str, Any]]
    newer: str


class ScenarioOut(Schema):
    id: str
    workspace: str
    run: str
    apply: str
    agent: str
    target: str
    testMessage: str
    createdAt: str
    retiredAt: str | None
    retiredBy: str | None
    retiredReason: str


class ScenarioListPage(Schema):
    items: list[ScenarioOut]
    next: str | None


class ScenarioPageOut(ScenarioOut):
    """``answer`` is the one that landed; applies that touch ``target`` or ``agent`` are held to it."""

    originalMessage: str
    change: str
    baseline: str
    answer: str


class DeletedOut(Schema):
    deleted: list[str]


class EnqueueIn(Body):
    session: str = Field(max_length=300)
    hint: str = Field("", max_length=MAX_TEXT)


class SeenIn(Body):
    """``attempt`` as it was shown; ``apply`` when the run stood at ``approved`` with an apply that had ended."""

    attempt: StrictInt = Field(ge=0, le=MAX_ATTEMPT)
    apply: str | None = Field(None, max_length=40)


class ApproveIn(SeenIn):
    hint: str = Field("", max_length=MAX_TEXT)


class RejectIn(SeenIn):
    reason: str = Field(max_length=MAX_TEXT)


class RetryIn(Body):
    """``hint`` null keeps the old one."""

    attempt: StrictInt = Field(ge=0, le=MAX_ATTEMPT)
    hint: str | None = Field(max_length=MAX_TEXT)


class ChosenIn(SeenIn):
    id: str = Field(max_length=40)


class ApproveSeveralIn(Body):
    runs: list[ChosenIn] = Field(max_length=MAX_TOGETHER)
    hint: str = Field("", max_length=MAX_TEXT)


class RollbackIn(Body):
    """``seen``: the conflicts that were shown; it counts with ``force`` alone."""

    attempt: StrictInt = Field(ge=0, le=MAX_ATTEMPT)
    force: StrictBool = False
    seen: list[dict[str, Any]] = Field(default_factory=list, max_length=1_000)


class RetireIn(Body):
    reason: str = Field("", max_length=MAX_TEXT)
