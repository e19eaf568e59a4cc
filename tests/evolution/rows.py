"""Rows for tests, made by replaying their lives: only transitions set a status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from core.db.models import Event
from core.ids import new_row_id
from core.processes import host_name
from evolution import transitions
from evolution.claim import Claim, RunSeen
from evolution.errors import Refused
from evolution.hints import hint_values
from evolution.models import EvolutionApply, EvolutionRun, RegressionScenario
from workspaces.models import Workspace

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCORE = transitions.RunScore(lint=100, behavior=90, scope=80, average=90.0, confidence="high", spread=0.0)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


@dataclass(frozen=True)
class Rows:
    """A workspace, a person, and rows at any point of their way."""

    workspace: Workspace
    user: User
    now: datetime = START

    @classmethod
    def make(cls, folder: Path, *, host: str | None = None, name: str = "ws") -> Rows:
        root = folder / name
        (root / ".halo").mkdir(parents=True)
        workspace = Workspace.objects.create(path=str(root), host=host or host_name(), created_at=START)
        user, _ = User.objects.get_or_create(username="rita")
        return cls(workspace, user)

    def pending(self, **values: Any) -> EvolutionRun:
        row_id = new_row_id()
        return EvolutionRun.objects.create(
            **{
                "id": row_id,
                "workspace": self.workspace,
                "source_session_id": f"session-{row_id}",
                "agent_id": "writer",
                "trigger_kind": "note",
                "source_access": "full",
                "created_at": self.now,
                **values,
                **hint_values(values.get("user_hint", "")),
            }
        )

    def claimed(self, **values: Any) -> tuple[EvolutionRun, Claim]:
        run = self.pending(**values)
        claim = transitions.claim_run(run_id=run.pk, attempts=0, now=self.now)
        assert claim is not None
        return fresh(run), claim

    def in_review(self, **values: Any) -> EvolutionRun:
        run, claim = self.claimed(**values)
        transitions.await_review(claim, score=SCORE, auto_reason="level", has_observation=False, now=self.now)
        return fresh(run)

    def failed(self, **values: Any) -> EvolutionRun:
        run, claim = self.claimed(**values)
        transitions.fail_run(claim, reason="provider down", now=self.now)
        return fresh(run)

    def approved(self, runs: Sequence[EvolutionRun] | None = None) -> EvolutionApply:
        """A reviewer's pending apply."""
        runs = [self.in_review()] if runs is None else runs
        apply_id = transitions.approve(
            runs=[RunSeen(run.pk, run.attempts) for run in runs],
            workspace_id=self.workspace.pk,
            user=self.user,
            now=self.now,
        )
        return EvolutionApply.objects.get(pk=apply_id)

    def auto_approved(self) -> EvolutionApply:
        """A pending apply whose run passed its own gates."""
        _, claim = self.claimed()
        apply_id = transitions.pass_gates(
            claim, score=SCORE, auto_reason="", has_observation=False, now=self.now
        )
        return EvolutionApply.objects.get(pk=apply_id)

    def running_apply(self, apply: EvolutionApply | None = None) -> tuple[EvolutionApply, Claim]:
        apply = apply or self.approved()
        claim = transitions.claim_apply(apply_id=apply.pk, attempts=apply.attempts, now=self.now)
        assert claim is not None
        return fresh(apply), claim

    def syncing(self, apply: EvolutionApply | None = None) -> tuple[EvolutionApply, Claim]:
        apply, claim = self.running_apply(apply)
        claim = transitions.checkpoint(claim, now=self.now)
        return fresh(apply), claim

    def failed_apply(self, apply: EvolutionApply | None = None) -> EvolutionApply:
        apply, claim = self.running_apply(apply)
        transitions.fail_apply(claim, reason="drift:INSTRUCTIONS.md", now=self.now)
        return fresh(apply)

    def applied(self, apply: EvolutionApply | None = None) -> EvolutionApply:
        apply, claim = self.syncing(apply)
        transitions.finish_apply(claim, now=self.now)
        return fresh(apply)

    def rolling_back(self) -> tuple[EvolutionApply, Claim]:
        apply = self.applied()
        claim = transitions.begin_rollback(
            apply_id=apply.pk,
            attempts=apply.attempts,
            user=self.user,
            force=False,
            seen=[],
            now=self.now,
        )
        return fresh(apply), claim


def make_user(name: str, *permissions: str) -> User:
    """``permissions`` are codenames of ``workspaces``."""
    user, _ = User.objects.get_or_create(username=name)
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label="workspaces", codename__in=permissions)
    )
    return User.objects.get(pk=user.pk)  # without the cache of what it might do before


def facts() -> list[tuple[Any, ...]]:
    """Everything a refusal must leave as it was."""
    runs = EvolutionRun.objects.order_by("pk").values_list(
        "pk", "status", "attempts", "attempts_base", "current_apply_id", "user_hint", "decided_by_id"
    )
    applies = EvolutionApply.objects.order_by("pk").values_list(
        "pk", "status", "attempts", "needs_person", "rolled_back_by_id"
    )
    scenarios = RegressionScenario.objects.order_by("pk").values_list("pk", "retired_at")
    return [*runs, *applies, *scenarios, (Event.objects.count(),)]


@contextmanager
def refused(code: str) -> Iterator[None]:
    """Refused with this code and a text, and nothing is changed."""
    before = facts()
    with pytest.raises(Refused) as caught:
        yield
    assert caught.value.code == code
    assert str(caught.value)
    assert facts() == before


def fresh(row: Any) -> Any:
    """The row as it is now."""
    return type(row)._default_manager.get(pk=row.pk)


def seen(run: EvolutionRun) -> RunSeen:
    return RunSeen(run.pk, run.attempts, run.current_apply_id if run.status == "approved" else None)
