"""Any mixture of edits, kills and resumes, on any file system: nothing a person wrote is lost.

Every act is a real process that may be killed at a step, while a person edits at other steps. A person who
saves over a text replaces it knowingly; every other text must be found again at the end.
"""

from __future__ import annotations

import json
import re
import signal
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evolution.errors import Refused
from tests.evolution.swap_people import FILE_SYSTEMS
from tests.evolution.swap_world import (
    OLD,
    TOUCHED,
    Step,
    World,
    both,
    build,
    die,
    folder_in_memory,
    in_child,
)

TOKEN = re.compile(r"PERSON \d+;")
WAYS = ("in place", "by rename", "delete", "late")
STEPS = st.integers(0, 30)
EDIT = st.tuples(STEPS, st.sampled_from((*TOUCHED, "USER.md", "skills/dig/mine.md")), st.sampled_from(WAYS))
ACT = st.tuples(st.none() | STEPS, st.lists(EDIT, max_size=3))
STORY = st.lists(ACT, max_size=7)
QUIET = 12
"""Undisturbed acts after the story; far more than any recovery needs."""


@dataclass
class Person:
    """Writes numbered texts, and notes in a file which of their texts they saved over."""

    world: World

    @property
    def notes(self) -> list[dict[str, object]]:
        path = self.world.root / "notes"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def edit(self, rel: str, way: str, number: int) -> None:
        path = self.world.halo / rel
        text = f"PERSON {number};"
        if way == "late":
            if not path.exists():
                return
            with path.open("a") as stream:
                stream.write(text)
            self._note(text, rel, [])
            return
        seen = TOKEN.findall(path.read_text()) if path.exists() else []
        if way == "delete":
            path.unlink(missing_ok=True)
        elif way == "in place":
            self.world.write(rel, text)
        else:
            self.world.write_by_rename(rel, text)
        self._note("" if way == "delete" else text, rel, seen)

    def _note(self, text: str, rel: str, replaced: list[str]) -> None:
        with (self.world.root / "notes").open("a") as stream:
            stream.write(json.dumps({"text": text, "rel": rel, "replaced": replaced}) + "\n")


@dataclass
class Story:
    """The row's life as the ticker would drive it: publish, restore after drift, roll back what landed."""

    world: World
    system: Step
    phase: str = "publish"
    shown: list[dict[str, object]] = field(default_factory=list)
    attempt: int = 1

    @property
    def is_over(self) -> bool:
        return self.phase in ("failed", "rolled_back")

    def act(self, kill: int | None, edits: list[tuple[int, str, str]], numbers: list[int]) -> None:
        self.attempt += 1
        person, count = Person(self.world), 0

        def step(_name: str) -> None:
            nonlocal count
            for (when, rel, way), number in zip(edits, numbers, strict=True):
                if when == count:
                    person.edit(rel, way, number)
            if count == kill:
                die()
            count += 1

        code = in_child(lambda: self._run(both(step, self.system)))
        assert code in (0, 3, -signal.SIGKILL), "it broke instead of drifting"
        if code == 3 and self.phase == "rollback":
            self._ask_again()
        elif code in (0, 3):
            self.phase = {
                ("publish", 0): "rollback",
                ("publish", 3): "restore",
                ("restore", 0): "failed",
                ("rollback", 0): "rolled_back",
            }[self.phase, code]

    def _run(self, step: Step) -> None:
        if self.phase == "publish":
            self.world.publish(step=step)
        elif self.phase == "restore":
            self.world.restore(step=step)
        else:
            self.world.rollback(attempt=self.attempt, force=True, shown=self.shown, step=step)

    def _ask_again(self) -> None:
        """The person looks at the conflicts as they are now and agrees to overwrite them."""
        try:
            self.world.rollback(attempt=self.attempt + 1000, force=False)
            self.phase = "rolled_back"
        except Refused as refused:
            self.shown = refused.details["conflicts"]


def live_through(root: Path, acts: list[tuple[int | None, list[tuple[int, str, str]]]], system: str) -> None:
    world = build(root)
    world.prepare()
    story, number = Story(world, FILE_SYSTEMS[system]), 0
    for kill, edits in acts:
        if not story.is_over:
            story.act(kill, edits, list(range(number, number + len(edits))))
            number += len(edits)
    for _ in range(QUIET):
        if not story.is_over:
            story.act(None, [], [])
    assert story.is_over, f"never came to an end: {story.phase}"
    check(world)


def check(world: World) -> None:
    notes = Person(world).notes
    live = world.live()
    assert not world.marker_stands()
    touched = {note["rel"] for note in notes}
    for rel in TOUCHED:
        if live.get(rel) != OLD.get(rel):
            assert rel in touched, f"{rel} is not as it was, and nobody edited it"
            assert rel not in live or TOKEN.search(live[rel]), f"{rel} holds what was taken back"
    replaced = {text for note in notes for text in note["replaced"]}  # type: ignore[attr-defined]
    for note in notes:
        text = str(note["text"])
        assert not text or text in replaced or world.findable(text), f"{text} is lost"


@pytest.mark.parametrize("system", FILE_SYSTEMS)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(acts=STORY)
def test_nothing_a_person_wrote_is_lost(
    system: str, acts: list[tuple[int | None, list[tuple[int, str, str]]]]
) -> None:
    with folder_in_memory(Path(tempfile.gettempdir())) as folder:
        live_through(folder / "world", acts, system)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("system", FILE_SYSTEMS)
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(acts=STORY)
def test_nothing_a_person_wrote_is_lost_in_a_long_run(
    system: str, acts: list[tuple[int | None, list[tuple[int, str, str]]]]
) -> None:
    with folder_in_memory(Path(tempfile.gettempdir())) as folder:
        live_through(folder / "world", acts, system)
