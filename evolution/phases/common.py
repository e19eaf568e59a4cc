"""What the phases share: the views of their agents, how they are asked, and frozen files in a brief's form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.turn import View
from agents.views import GLOBAL_PROMPT_FILES, folder_view, overlay_view
from evolution import changes, sandbox
from evolution.artifacts import frozen
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.patch import Scenario
from evolution.briefs.parts import ChangedFile
from evolution.errors import PhaseFailed
from evolution.line_diff import unified
from evolution.phases.context import ChildResult, ChildSpec, PhaseContext
from evolution.surface_folder import read_surface

FILE_TOOLS = ("file_read", "file_list", "glob", "grep", "file_write", "file_edit")
"""All that drafter, scorer and merger get: no shell, no network, no delegation."""

DRAFTER = "__evo_agent__"
SCORER = "__score__"
MERGER = "__apply_agent__"
CHILD_SEC = 900
SCENARIO_SEC = 2_700


@dataclass(frozen=True, slots=True)
class Asked:
    """``session`` names the session's folder; it is new in this attempt."""

    agent_id: str
    session: str
    brief: str
    view: View
    timeout_sec: int = CHILD_SEC


def ask_internal(ctx: PhaseContext, asked: Asked) -> ChildResult:
    """One fresh session of an internal agent. It is loaded from the base, which no draft can reach."""
    files = AttemptFiles(ctx.folder)
    return ctx.run_child(
        ChildSpec(
            agent_id=asked.agent_id,
            surface=files.base,
            global_folder=ctx.global_folder,
            workspace=ctx.workspace,
            brief=asked.brief,
            view=asked.view,
            access="workspace",
            tools=FILE_TOOLS,
            model=None,
            session_folder=files.session(asked.session),
            log=ctx.child_log,
            timeout_sec=asked.timeout_sec,
            limits=ctx.limits,
            model_like=ctx.source_agent,
        )
    )


def ask_scenario(
    ctx: PhaseContext,
    *,
    surface: Path,
    scenario: Scenario,
    session: str,
    output: Path,
    timeout_sec: int = SCENARIO_SEC,
) -> ChildResult:
    """The scenario's agent answers the test message with ``surface`` in place of the real ``.halo``.

    Whatever the draft says, the model is where the base says it is.
    """
    return ctx.run_child(
        ChildSpec(
            agent_id=scenario.agent_id,
            surface=surface,
            global_folder=ctx.global_folder,
            workspace=ctx.workspace,
            brief=scenario.test_message,
            view=overlay_view(ctx.workspace, surface, ctx.global_folder, ctx.readable),
            access="workspace",
            tools=None,
            model=None,
            session_folder=AttemptFiles(ctx.folder).session(session),
            log=ctx.child_log,
            output=output,
            timeout_sec=timeout_sec,
            limits=ctx.limits,
            model_like=ctx.source_agent,
            reach=AttemptFiles(ctx.folder).base,
        )
    )


def working_view(ctx: PhaseContext, *, read: Sequence[Path], write: Sequence[Path]) -> View:
    """The attempt's folder, what was frozen, ``read`` and the global prompt files; only ``write`` to write."""
    inputs = frozen.FrozenFiles(ctx.frozen)
    there = [path for path in inputs.readable if path.exists()]
    shared = [ctx.global_folder / name for name in GLOBAL_PROMPT_FILES]
    return folder_view(root=ctx.folder, read=[ctx.folder, *there, *read, *shared], write=write)


def failure_of(result: ChildResult) -> str:
    """Why a child can't be taken to have done its work; empty when its turn completed."""
    if result.ended_by == "timeout":
        return "it ran out of time"
    if result.ended_by == "silence":
        return "it showed no sign of life for too long"
    if result.exit_code:
        error = " ".join(result.error.split())[:500]
        return f"it ended with exit code {result.exit_code}{f': {error}' if error else ''}"
    return ""


def changed_files(ctx: PhaseContext, folder: Path, rels: Sequence[str]) -> tuple[ChangedFile, ...]:
    """Diffs from what sessions load without the draft of ``folder`` to what they load with it."""
    files = AttemptFiles(folder)
    before = sandbox.base_versions(files, ctx.global_folder)
    after = read_surface(files.sandbox)
    return tuple(ChangedFile(rel, _diff(rel, before.get(rel), after.get(rel))) for rel in rels)


def _diff(rel: str, before: changes.Content | None, after: changes.Content | None) -> str:
    old, new = (_lines(content) for content in (before, after))
    return "".join(unified(old, new, before_name=f"a/{rel}", after_name=f"b/{rel}", end="\n"))


def _lines(content: changes.Content | None) -> list[str]:
    text = content.decode(errors="replace") if isinstance(content, bytes) else ""
    return [line if line.endswith("\n") else f"{line}\n" for line in text.splitlines(keepends=True)]


def read_meta(ctx: PhaseContext) -> frozen.Meta:
    try:
        return frozen.read_meta(ctx.frozen)
    except frozen.FrozenUnreadable as error:
        raise PhaseFailed(f"The run's frozen files can't be used: {error}.") from error


def differing_paths(ctx: PhaseContext) -> tuple[str, ...]:
    """Where the live surface at the claim isn't what was frozen (written by ``sandbox.prepare_run``)."""
    try:
        return tuple(json.loads(AttemptFiles(ctx.folder).differs.read_bytes()))
    except FileNotFoundError:
        return ()
