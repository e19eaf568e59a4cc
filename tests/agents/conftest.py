"""A workspace with its home, and a turn against a scripted server."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import models

from agents import history as wire
from agents import views
from agents.abort import AbortToken
from agents.events import AgentEvent, CallDiscarded, HistoryReplaced, SavePoint
from agents.loop import run_turn
from agents.repair import is_sound
from agents.retries import NO_WAITING
from agents.turn import ModelChoice, Turn, TurnOutcome


@dataclass
class Place:
    """A workspace ``root`` and a ``HALO_HOME`` beside it, each with something to protect."""

    root: Path
    home: Path

    @property
    def global_folder(self) -> Path:
        return self.home / "global"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    root, home = tmp_path / "ws", tmp_path / "home"
    for folder in ("assets", "memory", "tmp", "agents/writer", "sessions", "docs"):
        (root / ".halo" / folder).mkdir(parents=True)
    (root / ".halo/INSTRUCTIONS.md").write_text("the rules\n")
    (root / ".halo/agents/writer/AGENT.md").write_text("you write\n")
    (root / "docs").mkdir()
    (root / "docs/guide.md").write_text("one\ntwo\nthree\n")
    (home / "global/prompts/all").mkdir(parents=True)
    (home / "global/prompts/all/tone.md").write_text("be kind\n")
    (home / "global/internal-sessions").mkdir()
    (home / "secrets").mkdir()
    (home / "secrets/settings.yaml").write_text("openai: {secrets: {api_key: sk-secret}}\n")
    (home / "halo.sqlite3").write_text("rows")
    return Place(root, home)


class Held:
    """A named pipe in the workspace: a command holds it open, and so does everything it starts."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.name = path.name
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def is_free(self) -> bool:
        """Whether nobody holds it (any more), right now."""
        try:
            return os.read(self._reader, 1) == b""
        except BlockingIOError:
            return False

    def wait(self) -> bytes:
        """What is written next, or nothing when the last holder goes."""
        select.select([self._reader], [], [], 60)
        return os.read(self._reader, 100)

    def close(self) -> None:
        os.close(self._reader)


@pytest.fixture
def held(place: Place) -> Iterator[Held]:
    made = Held(place.root / "held")
    yield made
    made.close()


@dataclass
class Played:
    """A turn with all it emitted; ``saved`` is the history as a log would hold it from the save points."""

    turn: Turn
    events: list[AgentEvent]
    saved: list[dict[str, Any]]
    abort: AbortToken = field(default_factory=AbortToken)
    watchers: list[Callable[[AgentEvent], object]] = field(default_factory=list)

    async def run(self) -> TurnOutcome:
        with models.override_allow_model_requests(True):
            outcome = await run_turn(self.turn, abort=self.abort)
        assert self.saved == self.turn.history, "the log and the history part"
        assert is_sound(self.turn.history)
        return outcome

    def of_type(self, name: str) -> list[Any]:
        return [event for event in self.events if event.type == name]

    def visible_text(self) -> str:
        """What a view shows of the replies: discarded calls are gone."""
        shown: dict[int, str] = {}
        for event in self.events:
            if event.type == "stream_delta":
                shown[event.call] = shown.get(event.call, "") + event.text
            elif isinstance(event, CallDiscarded):
                shown.pop(event.call, None)
        return "".join(shown.values())


@pytest.fixture
def play(place: Place) -> Callable[..., Played]:
    def make(endpoint: str, *, message: str = "hello", history: Any = None, **changes: Any) -> Played:
        events: list[AgentEvent] = []
        watchers: list[Callable[[AgentEvent], object]] = []
        start = [wire.user_message(message)] if history is None else history
        saved = list(start)

        def emit(event: AgentEvent) -> None:
            events.append(event)
            if isinstance(event, SavePoint):
                saved.extend(event.messages)
                if event.part is not None:
                    assert event.of is not None
                    saved[event.of] = wire.with_part(saved[event.of], event.part)
            elif isinstance(event, HistoryReplaced):
                saved[:] = event.messages
            for watcher in watchers:
                watcher(event)

        turn = Turn(
            agent_id="writer",
            session_id="s1",
            system_prompt="You are a test.",
            history=list(start),
            model=ModelChoice(provider="openai-compatible", id="test-model", endpoint=endpoint, api_key="k"),
            tools=("file_read", "file_write", "file_edit", "file_list", "glob", "grep", "shell_exec"),
            access="full",
            view=views.full_view(place.root, global_folder=place.global_folder),
            emit=emit,
            retries=NO_WAITING,
        )
        return Played(replace(turn, **changes), events, saved, watchers=watchers)

    return make
