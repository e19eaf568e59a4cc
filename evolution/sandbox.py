"""The copy of the prompt surface that a run or an apply works on, and the proof that nothing else changed."""

from __future__ import annotations

from pathlib import Path

from evolution.changes import Change
from evolution.phases.context import PhaseContext


def prepare_run(ctx: PhaseContext) -> None:
    """Copy the live surface to ``base/`` and ``sandbox/``; check the frozen inputs against ``inputs.json``.

    Raises PhaseFailed: ``symlink:<rel>``, over 200 MB, an input that isn't as frozen.
    """
    raise NotImplementedError


def prepare_apply(ctx: PhaseContext) -> None:
    """The same for an apply, whose folder has no frozen inputs."""
    raise NotImplementedError


def verify_untouched(ctx: PhaseContext) -> None:
    """Raises PhaseFailed (``evidence_changed:<rel>``) unless base, inputs and evidence are as written."""
    raise NotImplementedError


def classified(ctx: PhaseContext) -> tuple[Change, ...]:
    """What the sandbox would change in the live surface as it is now, each with its category: for the gates."""
    raise NotImplementedError


def reduce(folder: Path, *, global_folder: Path) -> None:
    """Keep the changed files and their base versions of a final row's attempt. Idempotent."""
    raise NotImplementedError
