"""Turns of the offline engine through the real loop and the real tools; and a run's folder for the phases."""

from __future__ import annotations

import difflib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from agents import history as wire
from agents.abort import AbortToken
from agents.events import AgentEvent
from agents.loop import run_turn
from agents.turn import ModelChoice, Turn, View
from agents.views import folder_view, readonly_view
from evolution.artifacts.frozen import PromptFile
from evolution.artifacts.patch import Scenario
from evolution.briefs.draft import DraftBrief
from evolution.briefs.parts import ChangedFile, FrozenContext
from evolution.briefs.score import ScoreBrief

REPOSITORY = Path(__file__).resolve().parents[2]
SAMPLE = REPOSITORY / "halo_site" / "sample" / "workspace"
INTERNAL = REPOSITORY / "workspaces" / "platform" / "agents"
READING = ("file_read", "file_list", "glob", "grep")


@dataclass(frozen=True, slots=True)
class Played:
    status: str
    text: str
    events: list[AgentEvent]

    @property
    def tools(self) -> list[str]:
        return [event.tool for event in self.events if event.type == "tool_call"]


async def play(
    message: str, *, system: str, view: View, tools: tuple[str, ...] = READING, model_id: str = ""
) -> Played:
    events: list[AgentEvent] = []
    turn = Turn(
        agent_id="a",
        session_id="s",
        system_prompt=system,
        history=[wire.user_message(message)],
        model=ModelChoice("offline", model_id),
        tools=tools,
        access="workspace",
        view=view,
        emit=events.append,
    )
    outcome = await run_turn(turn, abort=AbortToken())
    return Played(outcome.status, outcome.text or outcome.error, events)


async def ask(workspace: Path, question: str, system: str, *, home: Path) -> str:
    """The answer of a chat agent in a workspace that has documents."""
    played = await play(
        question, system=system, view=readonly_view(workspace, home / "global", working_dir=workspace)
    )
    assert played.status == "completed", played.text
    return played.text


@dataclass(frozen=True, slots=True)
class Attempt:
    """A run's folder as the wrapper makes it, with a frozen conversation."""

    folder: Path

    @property
    def base(self) -> Path:
        return self.folder / "base" / ".halo"

    @property
    def sandbox(self) -> Path:
        return self.folder / "sandbox" / ".halo"

    def text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")

    async def work(self, agent: str, brief: str) -> Played:
        system = (INTERNAL / agent / "AGENT.md").read_text(encoding="utf-8")
        view = folder_view(root=self.folder, read=[self.folder], write=[self.folder])
        return await play(brief, system=system, view=view, tools=(*READING, "file_write", "file_edit"))

    def draft_brief(self, **changes: object) -> DraftBrief:
        target = "agents/support/AGENT.md"
        values: dict[str, object] = {
            "run_id": "01RUN",
            "attempt": 1,
            "trigger": "note",
            "session_id": "01SESSION",
            "agent_id": "support",
            "language": "en-US",
            "hint": "too long: give the answer in at most two sentences",
            "workspace": self.folder,
            "conversation": self.folder / "source-snapshot.json",
            "tool_flow": self.folder / "tool-flow.md",
            "base": self.base,
            "sandbox": self.sandbox,
            "patch": self.folder / "patch.md",
            "skip": self.folder / ".skip.md",
        }
        if "context" not in changes:
            frozen = (PromptFile(target, "workspace", (self.base / target).read_text()),)
            values["context"] = FrozenContext(self.folder / "evo-context.json", frozen)
        return DraftBrief(**{**values, **changes})  # type: ignore[arg-type]

    def changed(self) -> tuple[ChangedFile, ...]:
        found = []
        for path in sorted(self.sandbox.rglob("*")):
            rel = path.relative_to(self.sandbox).as_posix()
            before = (self.base / rel).read_text() if (self.base / rel).is_file() else ""
            if path.is_file() and path.read_text() != before:
                lines = difflib.unified_diff(before.splitlines(), path.read_text().splitlines(), lineterm="")
                found.append(ChangedFile(rel, "\n".join(lines)))
        return tuple(found)

    def score_brief(self, scenario: Scenario, **changes: object) -> ScoreBrief:
        values: dict[str, object] = {
            "run_id": "01RUN",
            "sample": 1,
            "agent_id": "support",
            "language": "en-US",
            "hint": "",
            "scenario": scenario,
            "patch": self.folder / "patch.md",
            "tool_flow": self.folder / "tool-flow.md",
            "baseline": self.folder / "baseline.md",
            "control": self.folder / "control-output.txt",
            "dry_run": self.folder / "dry-run-output.txt",
            "base": self.base,
            "sandbox": self.sandbox,
            "changed": self.changed(),
            "score": self.folder / "score.1.json",
        }
        return ScoreBrief(**{**values, **changes})  # type: ignore[arg-type]


def attempt(folder: Path, talk: list[tuple[str, str]], *, sample: Path = SAMPLE) -> Attempt:
    made = Attempt(folder)
    folder.mkdir(exist_ok=True)
    for copy in (made.base, made.sandbox):
        shutil.copytree(sample / ".halo", copy)
    entries, messages = ["# Conversation"], []
    for number, (asked, answered) in enumerate(talk):
        entries += [f"## {2 * number + 1}. User\n\n{asked}", f"## {2 * number + 2}. Agent\n\n{answered}"]
        messages.append(wire.user_message(asked))
    (folder / "tool-flow.md").write_text("\n\n".join(entries) + "\n")
    (folder / "source-snapshot.json").write_text(json.dumps({"messages": messages}))
    return made
