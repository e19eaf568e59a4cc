"""A stopped wrapper and its successor; a full disk. Both at every step."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.paths import WorkspacePaths
from core.processes import ProcessIdentity
from evolution.errors import ClaimLost
from tests.evolution.swap_world import (
    NEW,
    OLD,
    Step,
    World,
    at,
    build,
    copy_of,
    folder_in_memory,
    no_step,
    recover,
    steps_of,
)
from workspaces import publish_lock
from workspaces.publish_lock import LockOwner


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with folder_in_memory(tmp_path) as memory:
        yield memory


@pytest.fixture
def world(folder: Path) -> World:
    made = build(folder / "world")
    made.prepare()
    return made


class Row:
    """The attempt a claim is compared with; a file, so that every process sees it."""

    def __init__(self, world: World) -> None:
        self._path = world.root / "attempt"
        self.set(1)

    def set(self, attempt: int) -> None:
        self._path.write_text(str(attempt))

    def confirm(self, attempt: int) -> Callable[[], None]:
        def confirm() -> None:
            if int(self._path.read_text()) != attempt:
                raise ClaimLost("a newer wrapper owns the row")

        return confirm

    def lost(self, owner: LockOwner) -> bool:
        return owner.attempt != int(self._path.read_text())


def wrapper(world: World, row: Row, attempt: int, *, step: Step = no_step, wait_sec: float = 10) -> None:
    owner = LockOwner("apply", "a" * 26, attempt, ProcessIdentity.current())
    paths = WorkspacePaths(world.halo.parent).evolution
    step("lock")
    with publish_lock.exclusive(paths, owner=owner, may_end_holder=row.lost, wait_sec=wait_sec):
        world.publish(step=step, confirm=row.confirm(attempt))


def stopped(body: Callable[[Step], None], number: int) -> int:
    """A child that stops itself before a step; 0 exit when it lost its claim, 1 when it went through."""
    pid = os.fork()
    if pid == 0:
        try:
            body(at(number, lambda: os.kill(os.getpid(), signal.SIGSTOP)))
        except ClaimLost:
            os._exit(0)
        finally:
            os._exit(1)
    os.waitpid(pid, os.WUNTRACED)
    return pid


def test_a_stopped_wrapper_is_succeeded_and_changes_nothing_when_it_is_continued(world: World) -> None:
    names = ["lock", *steps_of(copy_of(world, world.root.with_name("count")).publish_with)]
    for number, name in enumerate(names):
        if name.startswith("fsync:") and name != "fsync:.":
            continue
        copy = copy_of(world, world.root.with_name(str(number)))
        row = Row(copy)
        pid = stopped(lambda step, copy=copy, row=row: wrapper(copy, row, 1, step=step), number)
        row.set(2)
        wrapper(copy, row, 2, wait_sec=0.02)
        assert copy.live() == OLD | NEW, name
        copy.write("INSTRUCTIONS.md", "PERSON")
        after = copy.live()
        if name == "lock":
            os.kill(pid, signal.SIGCONT)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, "it went on without its claim"
        else:
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL, name
        assert copy.live() == after and not copy.marker_stands(), name


def test_a_stopped_wrapper_that_owns_its_row_is_left_alone(world: World) -> None:
    names = ["lock", *steps_of(copy_of(world, world.root.with_name("count")).publish_with)]
    row = Row(world)
    number = names.index("put-in:skills/dig/SKILL.md")
    pid = stopped(lambda step: wrapper(world, row, 1, step=step), number)
    try:
        before = world.live()
        with pytest.raises(publish_lock.LockHeld) as caught:
            wrapper(world, row, 1, wait_sec=0.02)
        assert caught.value.pid == pid and world.live() == before
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert world.seen() == {rel: OLD[rel] for rel in NEW if rel in OLD}


def full(number: int) -> Step:
    def fail() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return at(number, fail)


def test_a_full_disk_during_preflight_touches_nothing_live(folder: Path) -> None:
    template = build(folder / "template")
    names = steps_of(lambda step: copy_of(template, folder / "count").prepare(step=step))
    for number in range(len(names)):
        world = copy_of(template, folder / str(number))
        with pytest.raises(OSError, match="No space left"):
            world.prepare(step=full(number))
        assert world.live() == OLD and not world.marker_stands()
        assert not (world.snapshot_folder / "MANIFEST.json").exists()


@pytest.mark.parametrize("way_out", ["resume", "restore"])
def test_a_full_disk_during_publication_is_recovered_from(world: World, way_out: str) -> None:
    names = steps_of(copy_of(world, world.root.with_name("count")).publish_with)
    old = {rel: OLD[rel] for rel in NEW if rel in OLD}
    for number, name in enumerate(names):
        copy = copy_of(world, world.root.with_name(str(number)))
        with pytest.raises(OSError, match="No space left"):
            copy.publish(step=full(number))
        assert copy.seen() == (NEW if name == "unmarked" else old), name
        if way_out == "resume":
            assert recover(copy)[0] == "applied" and copy.live() == OLD | NEW
        else:
            assert copy.restore().edited == () and copy.live() == OLD
        assert not copy.marker_stands()


@pytest.mark.parametrize("direction", ["restore", "rollback"])
def test_a_full_disk_on_the_way_back_is_recovered_from(world: World, direction: str) -> None:
    world.publish()
    act = World.restore_with if direction == "restore" else World.rollback_with
    names = steps_of(lambda step: act(copy_of(world, world.root.with_name("count")), step))
    for number, name in enumerate(names):
        copy = copy_of(world, world.root.with_name(str(number)))
        with pytest.raises(OSError, match="No space left"):
            act(copy, full(number))
        assert copy.marker_stands() or copy.live() in (OLD, OLD | NEW), name
        act(copy, no_step)
        assert copy.live() == OLD and not copy.marker_stands(), name
