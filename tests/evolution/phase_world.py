"""A workspace, a global folder, a frozen run and scripted children that write files as an agent would."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.events import Message
from evolution import sandbox
from evolution.artifacts.files import AttemptFiles
from evolution.artifacts.frozen import EvoContext, Listing, Meta, PromptFile, write_frozen
from evolution.phases.context import ChildResult, ChildSpec, PhaseContext
from workspaces.compose import compose
from workspaces.overrides import Surface
from workspaces.publish_lock import SurfaceFiles

RUN_ID = "01jzzzzzzzzzzzzzzzzzzzzzzz"
APPLY_ID = "01jyyyyyyyyyyyyyyyyyyyyyyy"
QUESTION = "How long does the battery last?"
ANSWER = "It depends on many things, among them the weather."
PROBE = "How long does charging take?"

Child = Callable[[ChildSpec], ChildResult]


def says(text: str) -> Child:
    """A child that answers and does nothing else."""
    return lambda spec: ChildResult(exit_code=0, text=text, ended_by="exit")


def crashes(error: str = "provider unreachable") -> Child:
    return lambda spec: ChildResult(exit_code=1, text="", ended_by="exit", error=error)


def user(text: str) -> Message:
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]}


def agent(text: str) -> Message:
    return {"kind": "response", "parts": [{"part_kind": "text", "content": text}]}


def conversation() -> list[Message]:
    return [
        user("[2026-01-31T09:30:00.123Z] Hello"),
        agent("Hello, what can I do for you?"),
        user(f"[2026-01-31T09:31:00.123Z] {QUESTION}"),
        {
            "kind": "response",
            "parts": [
                {"part_kind": "text", "content": "Let me look."},
                {
                    "part_kind": "tool-call",
                    "tool_name": "grep",
                    "args": {"pattern": "b"},
                    "tool_call_id": "1",
                },
            ],
        },
        {
            "kind": "request",
            "parts": [
                {"part_kind": "tool-return", "tool_name": "grep", "content": "x" * 900, "tool_call_id": "1"}
            ],
        },
        agent(ANSWER),
    ]


def patch_text(
    *,
    target: str = "INSTRUCTIONS.md",
    agent_id: str = "guide",
    original: str = QUESTION,
    probe: str = PROBE,
    body: str = "## What\nState the number first.\n",
) -> str:
    scenario = {"agentId": agent_id, "originalMessage": original, "testMessage": probe}
    head = json.dumps({"target": target, "testScenario": scenario})
    return f"---\n{head}\n---\n{body}"


def score_text(**changed: Any) -> str:
    checks = {
        "patchInSandbox": "pass",
        "usedInDryRun": "yes",
        "probe": "valid",
        "probeLanguage": "same",
        **changed.pop("checks", {}),
    }
    figures = {"lint": 100, "behavior": 90, "scope": 80, "confidence": "high", "notes": "Shorter."}
    return json.dumps({**figures, **changed, "checks": checks})


@dataclass
class World:
    """``children`` answer in order; ``asked`` holds what each was given."""

    root: Path
    children: list[Child] = field(default_factory=list)
    asked: list[ChildSpec] = field(default_factory=list)
    shown: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def halo(self) -> Path:
        return self.workspace / ".halo"

    @property
    def global_folder(self) -> Path:
        return self.root / "home" / "global"

    @property
    def frozen(self) -> Path:
        return self.halo / "evo" / "runs" / RUN_ID

    def live(self, rel: str, text: str | bytes) -> None:
        write(self.halo / rel, text)

    def shared(self, rel: str, text: str | bytes) -> None:
        write(self.global_folder / rel, text)

    def freeze(self, messages: list[Message] | None = None, *, working_dir: str = ".") -> None:
        surface = Surface(SurfaceFiles(self.halo), self.global_folder)
        composed = compose(surface, "guide", workspace_root=self.workspace, working_dir=working_dir)
        files = tuple(PromptFile(file.rel, file.scope, file.content) for file in composed.files)
        write_frozen(
            self.frozen,
            messages=conversation() if messages is None else messages,
            context=EvoContext("guide", "Guide", "prompt", files, (Listing("guide", "workspace"),)),
            meta=Meta(
                run_id=RUN_ID,
                trigger="note",
                session_id="s1",
                agent_id="guide",
                hint="numbers first",
                workspace=str(self.workspace),
                working_dir=working_dir,
                source_access="full",
                created_at="2026-01-31T09:32:00.000Z",
            ),
        )

    def freeze_again(self, messages: list[Message] | None = None, *, working_dir: str = ".") -> None:
        shutil.rmtree(self.frozen)
        self.freeze(messages, working_dir=working_dir)

    def context(self, folder: Path | None = None, frozen: Path | None = None) -> PhaseContext:
        folder = folder or self.frozen / "attempts" / "1"
        folder.mkdir(parents=True)
        return PhaseContext(
            workspace=self.workspace,
            folder=folder,
            frozen=frozen or self.frozen,
            global_folder=self.global_folder,
            language="en-US",
            run_child=self._run,
            progress=lambda *step: self.shown.append(step),
            may_end_holder=lambda owner: False,
            hint="numbers first",
        )

    def run(self) -> PhaseContext:
        """A context with its base and sandbox made."""
        ctx = self.context()
        sandbox.prepare_run(ctx)
        return ctx

    def apply(self) -> PhaseContext:
        frozen = self.halo / "evo" / "applies" / APPLY_ID
        ctx = self.context(frozen / "attempts" / "1", frozen)
        sandbox.prepare_apply(ctx)
        return ctx

    def _run(self, spec: ChildSpec) -> ChildResult:
        self.asked.append(spec)
        return self.children.pop(0)(spec)


def write(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


def drafts(ctx: PhaseContext, files: dict[str, str | bytes], patch: str | None = None) -> Child:
    """A drafter that writes ``files`` below the sandbox's ``.halo`` and its ``patch.md``."""

    def child(spec: ChildSpec) -> ChildResult:
        attempt = AttemptFiles(ctx.folder)
        for rel, text in files.items():
            write(attempt.sandbox / rel, text)
        write(attempt.patch, patch_text() if patch is None else patch)
        return ChildResult(exit_code=0, text="Wrote patch.md.", ended_by="exit")

    return child


def merged(world: World) -> PhaseContext:
    """Of an apply whose merge has changed one file."""
    ctx = world.apply()
    write(AttemptFiles(ctx.folder).sandbox / "INSTRUCTIONS.md", "Numbers first.\n")
    return ctx


def scores(files: AttemptFiles, number: int = 1, **figures: int) -> Child:
    """A scorer that writes its ``number``-th score."""

    def child(spec: ChildSpec) -> ChildResult:
        write(files.score_sample(number), score_text(**figures))
        return ChildResult(exit_code=0, text="", ended_by="exit")

    return child


def make_world(root: Path) -> World:
    world = World(root)
    world.live("INSTRUCTIONS.md", "Answer well.\n")
    world.live("agents/guide/agent.yaml", "name: Guide\ntools: [file_read]\n")
    world.live("agents/guide/AGENT.md", "You are the guide.\n")
    world.live("docs/battery.md", "Eleven hours.\n")
    world.shared("agents/scout/agent.yaml", "name: Scout\n")
    world.shared("agents/scout/AGENT.md", "You are the scout.\n")
    world.shared("skills/review/SKILL.md", "---\nname: review\ndescription: Reviews.\n---\nLook twice.\n")
    world.shared("skills/review/helper.txt", "help\n")
    world.freeze()
    return world
