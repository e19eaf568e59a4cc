"""What one wrapper has in hand while it works one attempt of one row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from core import folders
from core.db.clock import database_now
from core.paths import EvolutionPaths, WorkspacePaths, halo_home
from core.settings_file import Settings
from evolution import transitions
from evolution.children import Children
from evolution.claim import Claim, has_lost_its_claim
from evolution.errors import EvolutionError
from evolution.heartbeat import Heartbeat
from evolution.models import EvolutionApply, EvolutionRun
from evolution.phases.context import ChildResult, ChildSpec, PhaseContext
from evolution.spawn import Order
from sessions_app.limits import limits_of

Step = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Job:
    """``step`` is called with the name of every point between two actions; tests kill there."""

    order: Order
    row: EvolutionRun | EvolutionApply
    heart: Heartbeat
    children: Children | None
    settings: Settings
    step: Step

    @property
    def workspace(self) -> WorkspacePaths:
        return self.row.workspace.paths

    @property
    def paths(self) -> EvolutionPaths:
        return self.workspace.evolution

    @property
    def frozen(self) -> Path:
        row_id = self.order.row_id
        return self.paths.run(row_id) if self.order.verb == "run" else self.paths.apply(row_id)

    @property
    def folder(self) -> Path:
        """This attempt's own folder."""
        return self.frozen / "attempts" / str(self.order.attempt)

    def context(self) -> PhaseContext:
        """Raises OSError, FileNotFoundError among them when the workspace has vanished since the claim."""
        folders.make_below(self.workspace.halo, self.folder)
        return PhaseContext(
            workspace=self.workspace.root,
            folder=self.folder,
            frozen=self.frozen,
            global_folder=halo_home().global_folder,
            language=self.settings.get("general.language"),
            run_child=self.run_child,
            progress=self._progress,
            may_end_holder=has_lost_its_claim,
            source_agent=self._source_agent(),
            hint=self.row.user_hint if isinstance(self.row, EvolutionRun) else "",
            limits=limits_of(self.settings),
            readable=tuple(map(Path, self.settings.get("general.sandbox.allow"))),
        )

    def now(self) -> datetime:
        return database_now()

    def enter(self, phase: str) -> None:
        """The boundary before a phase: the claim is asked, the row shows what comes. Raises ClaimLost."""
        self.step(phase)
        self.heart.check()
        transitions.set_phase(self.heart.claim, phase=phase, now=database_now())

    def run_child(self, spec: ChildSpec) -> ChildResult:
        if self.children is None:
            raise EvolutionError("A rollback has no agent work for it.")
        return self.children.run(spec)

    def move(self, transition: Callable[[Claim, datetime], Claim]) -> None:
        """A move after which this wrapper works on. Raises ClaimLost."""
        self.heart.check()
        self.heart.moved(lambda claim: transition(claim, database_now()))

    def confirm(self) -> None:
        """Asked by the file library between two writes. Raises ClaimLost."""
        self.heart.confirm()

    def finish(self, transition: Callable[[Claim, datetime], Any]) -> None:
        """The last move of this attempt. Raises ClaimLost."""
        self.step("finish")
        self.heart.check()
        self.heart.stop()
        transition(self.heart.claim, database_now())
        self.step("finished")

    def _source_agent(self) -> str:
        if isinstance(self.row, EvolutionRun):
            return self.row.agent_id
        return self.row.source_runs.order_by("pk").values_list("agent_id", flat=True).first() or ""

    def _progress(self, phase: str, done: int, total: int) -> None:
        self.heart.check()
        transitions.set_phase(self.heart.claim, phase=phase, now=database_now(), done=done, total=total)
