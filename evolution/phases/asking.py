"""Asking a scorer: once, strictly read, and once more when what it wrote can't be used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.score import Score, ScoreInvalid, read_score
from evolution.errors import PhaseFailed
from evolution.phases.common import CHILD_SEC, SCORER, Asked, ask_internal, failure_of, working_view
from evolution.phases.context import PhaseContext

ASKINGS = 2


def ask_score(
    ctx: PhaseContext,
    *,
    brief: str,
    path: Path,
    session: str,
    read: tuple[Path, ...] = (),
    timeout: Callable[[], int] = lambda: CHILD_SEC,
) -> Score:
    """The score at ``path``, written by a scorer that can write nothing else and sees no other asking.

    ``timeout`` says before each asking how many seconds it may take. Raises PhaseFailed when it stays
    missing or malformed after it was asked for once more.
    """
    problem = ""
    for asking in range(1, ASKINGS + 1):
        view = replace(working_view(ctx, read=read, write=(path,)), hidden=_other_askings(ctx, path))
        asked = Asked(SCORER, f"{session}-{asking}", brief=brief, view=view, timeout_sec=timeout())
        found = _once(ctx, asked, path)
        if isinstance(found, Score):
            ctx.evidence.vouch(path)
            return found
        problem = found
    raise PhaseFailed(f"No valid score after {ASKINGS} askings: {problem}.")


def _other_askings(ctx: PhaseContext, path: Path) -> tuple[Path, ...]:
    """What would tell a scorer what another one said: an asking that has seen one before it is no second sample."""
    files = AttemptFiles(ctx.folder)
    scores = (found for found in sorted(path.parent.glob("score*.json")) if found != path)
    return (files.sessions, files.child_log, *scores)


def _once(ctx: PhaseContext, asked: Asked, path: Path) -> Score | str:
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if failure := failure_of(ask_internal(ctx, asked)):
        return f"the scoring agent did not finish: {failure}"
    try:
        return read_score(path)
    except ScoreInvalid as error:
        return str(error)
