"""SIGKILL at every step of publish, restore and rollback, with a person editing before, at and after it.

Invariants 4, 5 and 7: the surface ends wholly old or wholly new plus what the person wrote, the person's text
is found again, and what landed can be taken back to the byte.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from evolution.errors import Refused
from tests.evolution.swap_people import EDITS, FILE_SYSTEMS, Edit
from tests.evolution.swap_world import (
    NEW,
    OLD,
    TOUCHED,
    Step,
    World,
    at,
    both,
    build,
    copy_of,
    die,
    folder_in_memory,
    in_child,
    no_step,
    recover,
    steps_of,
)

Act = Callable[[World, Step], object]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with folder_in_memory(tmp_path) as memory:
        yield memory


@dataclass(frozen=True)
class Kill:
    """``number``: the step before whose operation the process dies; ``early``: how many steps sooner the
    person edits (0: at it, None: only when the process is dead)."""

    number: int
    early: int | None

    def __str__(self) -> str:
        return f"{self.number}-{self.early}"


def killed_at(kill: Kill, edit: Edit, *, template: World, root: Path, act: Act, system: Step) -> World:
    """A copy of ``template`` in which ``act`` died at one step, with one edit around it."""
    world = copy_of(template, root)
    descriptor = edit.open(world)

    def make() -> None:
        edit.make(world, descriptor)

    hook = at(kill.number, die, then=system)
    if kill.early is not None:
        hook = at(max(kill.number - kill.early, 0), make, then=hook)
    assert in_child(lambda: act(world, hook)) in (-signal.SIGKILL, 3)
    check_reader(world, edit)
    if kill.early is None:
        make()
    if descriptor >= 0:
        os.close(descriptor)
    return world


def check_reader(world: World, edit: Edit) -> None:
    """A turn that starts now reads a surface of one piece."""
    seen = {rel: text for rel, text in world.seen().items() if rel != edit.rel}
    old = {rel: OLD[rel] for rel in TOUCHED if rel in OLD and rel != edit.rel}
    new = {rel: NEW[rel] for rel in TOUCHED if rel != edit.rel}
    assert seen in (old, new), "a mixture"


def check_surface(world: World, wanted: dict[str, str], edit: Edit, *, listed: tuple[str, ...]) -> None:
    """``wanted`` plus the person's edit, which is named when it concerns a file of the publication."""
    live = world.live()
    assert not world.marker_stands()
    others = {rel: text for rel, text in live.items() if rel != edit.rel}
    assert others == {rel: text for rel, text in wanted.items() if rel != edit.rel}
    found, expected = live.get(edit.rel), wanted.get(edit.rel)
    if found != expected:
        assert found is None or edit.text in found
        assert edit.rel not in TOUCHED or edit.rel in listed, "an edit that nobody is told about"
    if edit.text:
        assert world.findable(edit.text), "a person's text is lost"


def check_kept(world: World, edit: Edit, kept: tuple[str, ...], stage: Path) -> None:
    """A text that is not live is named with the place where it lies."""
    assert all((stage / path).is_file() for path in kept)
    if edit.text and edit.text not in world.live().get(edit.rel, ""):
        assert any(edit.text in (stage / path).read_text() for path in kept)


def check_rollback(world: World, edit: Edit) -> None:
    """Whatever landed is taken back; over a person's edit only when they say so."""
    try:
        outcome = world.rollback(attempt=50)
    except Refused as refused:
        assert refused.code == "conflict"
        assert [item["rel"] for item in refused.details["conflicts"]] == [edit.rel]
        outcome = world.rollback(attempt=51, force=True, shown=refused.details["conflicts"])
    assert outcome.left == ()
    live = world.live()
    assert {rel: live.get(rel) for rel in TOUCHED} == {rel: OLD.get(rel) for rel in TOUCHED}
    if edit.text:
        assert world.findable(edit.text)


def publish_case(folder: Path, kill: Kill, edit: Edit, *, template: World, system: Step) -> None:
    world = killed_at(kill, edit, template=template, root=folder, act=World.publish_with, system=system)
    ending, edited, kept = recover(world, step=system)
    check_surface(world, OLD | NEW if ending == "applied" else OLD, edit, listed=edited)
    if not (edit.opens and ending == "applied"):
        check_kept(world, edit, kept, world.stage)
    if ending == "applied":
        check_rollback(world, edit)


def restore_case(folder: Path, kill: Kill, edit: Edit, *, template: World, system: Step) -> None:
    world = killed_at(kill, edit, template=template, root=folder, act=World.restore_with, system=system)
    outcome = world.restore(step=system)
    check_surface(world, OLD, edit, listed=outcome.edited)
    if not edit.opens:
        check_kept(world, edit, outcome.kept, world.stage)


def rollback_case(folder: Path, kill: Kill, edit: Edit, *, template: World, system: Step) -> None:
    world = killed_at(kill, edit, template=template, root=folder, act=World.rollback_with, system=system)
    try:
        outcome = world.rollback(attempt=3, step=system)
    except Refused as refused:
        assert refused.code == "conflict"
        check_surface(world, OLD | NEW, edit, listed=(edit.rel,))
        return
    check_surface(world, OLD, edit, listed=outcome.left)
    if edit.name == "file in a new folder":
        assert "skills/dig" in outcome.kept_dirs


def prepared(folder: Path) -> World:
    world = build(folder)
    world.prepare()
    for done_with in ("sandbox", "global"):
        shutil.rmtree(folder / done_with)
    return world


def half_published(folder: Path) -> World:
    """Two files overwritten, two added, the third new one still to come."""
    world = prepared(folder)
    names = steps_of(copy_of(world, folder.with_name("half")).publish_with)
    half = names.index("put-in:skills/dig/notes.md")
    assert in_child(lambda: world.publish(step=at(half, die))) == -signal.SIGKILL
    return world


def landed(folder: Path) -> World:
    world = prepared(folder)
    world.publish()
    return world


DIRECTIONS = {
    "publish": (prepared, World.publish_with, publish_case),
    "restore": (half_published, World.restore_with, restore_case),
    "rollback": (landed, World.rollback_with, rollback_case),
}


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_killed_at_every_step(folder: Path, direction: str, edit: Edit) -> None:
    """An edit made at the step of the kill leaves the same files as one made right after it, so each edit
    comes once an operation sooner and once when the process is dead; `soak` has every distance."""
    prepare, act, case = DIRECTIONS[direction]
    template = prepare(folder / "template")
    names = steps_of(lambda step: act(copy_of(template, folder / "count"), step))
    for number in telling(names):
        for early in (1, None) if edit.changes else (None,):
            kill = Kill(number, early)
            case(folder / str(kill), kill, edit, template=template, system=no_step)


@pytest.mark.parametrize("system", ["no exchange", "no renameat2"])
@pytest.mark.parametrize("edit", [edit for edit in EDITS if edit.races], ids=lambda edit: edit.name)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_killed_between_the_single_moves_of_a_lesser_file_system(
    folder: Path, direction: str, edit: Edit, system: str
) -> None:
    prepare, act, case = DIRECTIONS[direction]
    template, refuse = prepare(folder / "template"), FILE_SYSTEMS[system]
    names = steps_of(lambda step: act(copy_of(template, folder / "count"), both(step, refuse)))
    moves = [number for number, name in enumerate(names) if name.endswith((":" + edit.rel, ":" + TOUCHED[0]))]
    for number in moves:
        kill = Kill(number, 1)
        case(folder / str(kill), kill, edit, template=template, system=refuse)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("system", FILE_SYSTEMS)
@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_killed_at_every_step_edited_at_every_distance(
    folder: Path, direction: str, edit: Edit, system: str
) -> None:
    prepare, act, case = DIRECTIONS[direction]
    template, refuse = prepare(folder / "template"), FILE_SYSTEMS[system]
    names = steps_of(lambda step: act(copy_of(template, folder / "count"), both(step, refuse)))
    for number in range(len(names)):
        for early in (*range(number + 1), None):
            kill = Kill(number, early)
            case(folder / str(kill), kill, edit, template=template, system=refuse)
            shutil.rmtree(folder / str(kill))


def telling(names: list[str]) -> list[int]:
    """Every step but the fsyncs and stagings after the first of a row: nothing live moves between them."""
    operations = [name.partition(":")[0] for name in names]
    return [
        number
        for number, operation in enumerate(operations)
        if operation not in ("fsync", "stage") or operations[number - 1] != operation
    ]
