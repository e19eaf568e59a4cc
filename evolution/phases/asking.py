"""Asking a scorer: once, strictly read, and once more when what it wrote can't be used."""

from __future__ import annotations

from pathlib import Path

from evolution.artifacts.score import Score, ScoreInvalid, read_score
from evolution.errors import PhaseFailed
from evolution.phases.common import SCORER, Asked, ask_internal, failure_of, working_view
from evolution.phases.context import PhaseContext

ASKINGS = 2


def ask_score(
    ctx: PhaseContext, *, brief: str, path: Path, session: str, read: tuple[Path, ...] = ()
) -> Score:
    """The score at ``path``, written by a scorer that can write nothing else.

    Raises PhaseFailed when it stays missing or malformed after it was asked for once more.
    """
    problem = ""
    for asking in range(1, ASKINGS + 1):
        found = _once(ctx, brief=brief, path=path, session=f"{session}-{asking}", read=read)
        if isinstance(found, Score):
            ctx.evidence.vouch(path)
            return found
        problem = found
    raise PhaseFailed(f"No valid score after {ASKINGS} askings: {problem}.")


def _once(ctx: PhaseContext, *, brief: str, path: Path, session: str, read: tuple[Path, ...]) -> Score | str:
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    view = working_view(ctx, read=read, write=(path,))
    result = ask_internal(ctx, Asked(agent_id=SCORER, session=session, brief=brief, view=view))
    if failure := failure_of(result):
        return f"the scoring agent did not finish: {failure}"
    try:
        return read_score(path)
    except ScoreInvalid as error:
        return str(error)
