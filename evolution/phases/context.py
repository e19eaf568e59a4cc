"""What a phase is handed, and how it has an agent work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agents.turn import AccessLevel, Limits, ModelChoice, View
from evolution.evidence import Evidence
from workspaces.publish_lock import LockOwner


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """One fresh evaluation session, run in a child of the zygote. Everything a child needs, nothing more.

    ``surface`` is the ``.halo`` folder that ``agent_id`` and its prompts are loaded from (override rules with
    ``global_folder`` apply). ``brief`` arrives as the user message. The final text goes to ``output`` (when
    given); both streams are appended to ``log``; the session's logs go to ``session_folder``. An internal agent
    whose ``agent.yaml`` names no model asks that of ``model_like``. ``reach`` is the ``.halo`` whose word
    counts for provider and endpoint: a draft must not have a key and a conversation sent elsewhere.
    """

    agent_id: str
    surface: Path
    global_folder: Path
    workspace: Path
    brief: str
    view: View
    access: AccessLevel
    tools: tuple[str, ...] | None
    model: ModelChoice | None
    session_folder: Path
    log: Path
    output: Path | None = None
    timeout_sec: int = 900
    silence_sec: int = 300
    limits: Limits = field(default_factory=Limits)
    working_dir: str = "."
    model_like: str = ""
    reach: Path | None = None


@dataclass(frozen=True, slots=True)
class ChildResult:
    """``exit_code`` 0: the turn completed. ``ended_by``: exit, timeout, silence."""

    exit_code: int
    text: str
    ended_by: Literal["exit", "timeout", "silence"]
    error: str = ""


@dataclass(frozen=True, slots=True)
class PhaseContext:
    """``folder`` is this attempt's own; ``base`` and ``sandbox`` hold a ``.halo`` each, made before phase A.

    ``frozen`` is the run's folder as enqueued (for an apply: the apply's folder). ``run_child`` blocks; it
    raises ClaimLost when the row was taken over or cancelled meanwhile, the child is ended then.
    ``hint`` is what the run is asked for now: a retry may have changed it since the files were frozen.
    ``source_agent`` is the one whose conversation is learned from (of an apply: of its first run).
    ``limits`` and ``readable`` (``general.sandbox.allow``) are what the workspace's own sessions have.
    ``may_end_holder`` tells which holder of the workspace's lock may be ended by whoever waits for it.
    ``evidence`` remembers what this wrapper wrote and no agent may change.
    """

    workspace: Path
    folder: Path
    frozen: Path
    global_folder: Path
    language: str
    run_child: Callable[[ChildSpec], ChildResult]
    progress: Callable[[str, int, int], None]
    may_end_holder: Callable[[LockOwner], bool]
    source_agent: str = ""
    hint: str = ""
    limits: Limits = field(default_factory=Limits)
    readable: tuple[Path, ...] = ()
    evidence: Evidence = field(default_factory=Evidence)

    @property
    def base(self) -> Path:
        return self.folder / "base"

    @property
    def sandbox(self) -> Path:
        return self.folder / "sandbox"

    @property
    def child_log(self) -> Path:
        return self.folder / "sub-cli.log"
