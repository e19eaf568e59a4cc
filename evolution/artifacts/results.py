"""What one phase hands to the next."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evolution.artifacts.patch import Patch


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft that passed all checks. ``changed``: every surface path whose sandbox file isn't the base's."""

    patch: Patch
    changed: tuple[str, ...]
    observation: str = ""

    @property
    def has_observation(self) -> bool:
        return bool(self.observation)


@dataclass(frozen=True, slots=True)
class DryRunFailure:
    """Why the scenario's agent gave no usable answer; ``log`` holds everything."""

    reason: str
    log: Path


@dataclass(frozen=True, slots=True)
class DryRun:
    """``draft`` is the one that answered: the fix pass may have changed it."""

    output: str
    draft: Draft
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Control:
    """``output`` None: it was switched off (``failure`` empty) or gave no answer (``failure`` says why)."""

    output: str | None = None
    failure: str = ""

    def same_as(self, dry_run: DryRun) -> bool:
        """Whether the change moved nothing; white space aside."""
        return self.output is not None and self.output.split() == dry_run.output.split()


@dataclass(frozen=True, slots=True)
class Source:
    """One approved run of an apply.

    ``folder`` is the attempt that was approved, ``frozen`` the run's folder, ``hint`` the asker's.
    """

    run_id: str
    folder: Path
    frozen: Path
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Merge:
    """``changed``: the surface paths that the merge changed and that will be published."""

    changed: tuple[str, ...]
    log: str


@dataclass(frozen=True, slots=True)
class RegressedRun:
    """One source run's scenario on the merged sandbox; figures are the median when it was asked again."""

    run_id: str
    lint: int
    behavior: int
    askings: int


@dataclass(frozen=True, slots=True)
class Landed:
    """What a landing leaves to the ratchet: a run's scenario, and the answer that the landed surface gave."""

    run_id: str
    target: str
    agent_id: str
    original_message: str
    test_message: str
    change: str
    baseline: str
    answer: str


@dataclass(frozen=True, slots=True)
class Kept(Landed):
    """The same from its row: an apply that touches its target or its agent is held to it."""

    scenario_id: str


KeptState = Literal["held", "failed", "not_run"]


@dataclass(frozen=True, slots=True)
class KeptResult:
    """How a kept scenario went on the merged sandbox; ``reason`` says why it failed or was not run."""

    scenario_id: str
    run_id: str
    state: KeptState
    lint: int | None = None
    behavior: int | None = None
    askings: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Regression:
    runs: tuple[RegressedRun, ...]
    kept: tuple[KeptResult, ...] = ()
