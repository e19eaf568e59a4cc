"""What the run page compares a draft with: what sessions load, not what happens to lie under the same name."""

from __future__ import annotations

from pathlib import Path

import pytest

from evolution import sandbox
from evolution.artifacts.files import AttemptFiles
from evolution.live_diff import FileChange, changed_files
from tests.evolution.phase_world import World, make_world, write


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def drafted(world: World, files: dict[str, str]) -> AttemptFiles:
    ctx = world.run()
    attempt = AttemptFiles(ctx.folder)
    for rel, text in files.items():
        write(attempt.sandbox / rel, text)
    sandbox.complete(ctx)
    return attempt


def shown(world: World, attempt: AttemptFiles) -> dict[str, FileChange]:
    changes = changed_files(attempt, live=world.halo, global_folder=world.global_folder)
    return {change.rel: change for change in changes}


def test_a_global_file_behind_an_own_folder_is_nothing_to_compare_with(world: World) -> None:
    """The workspace's folder hides it, so the same text is a new file, which a reviewer has to see."""
    world.shared("agents/guide/extra.md", "Extra.\n")
    attempt = drafted(world, {"agents/guide/extra.md": "Extra.\n"})
    for _ in range(2):
        [change] = shown(world, attempt).values()
        assert (change.rel, change.base, change.live) == ("agents/guide/extra.md", None, None)
        assert "+Extra." in change.diff() and "/dev/null" in change.diff()
        assert not change.is_stale
        sandbox.reduce(attempt.folder, global_folder=world.global_folder)


def test_a_folder_without_files_hides_as_well(world: World) -> None:
    (world.halo / "agents/scout").mkdir()
    [change] = shown(world, drafted(world, {"agents/scout/AGENT.md": "You are the scout.\n"})).values()
    assert (change.base, change.live) == (None, None)


def test_an_index_is_the_workspaces_alone(world: World) -> None:
    world.shared("INDEX.md", "Nobody loads this.\n")
    [change] = shown(world, drafted(world, {"INDEX.md": "Nobody loads this.\n"})).values()
    assert (change.base, change.live) == (None, None)


def test_a_new_folder_is_compared_with_what_it_hides_now_and_then(world: World) -> None:
    attempt = drafted(world, {"agents/scout/AGENT.md": "Scout better.\n"})
    for _ in range(2):
        [change] = shown(world, attempt).values()
        assert change.base == change.live == b"You are the scout.\n"
        sandbox.reduce(attempt.folder, global_folder=world.global_folder)
    world.shared("agents/scout/AGENT.md", "Moved on.\n")
    [change] = shown(world, attempt).values()
    assert (change.base, change.live, change.is_stale) == (b"You are the scout.\n", b"Moved on.\n", True)
    world.live("agents/scout/agent.yaml", "name: Mine\n")
    [change] = shown(world, attempt).values()
    assert change.live is None, "the workspace has a folder of its own by now, without this file"


def test_what_came_to_the_global_folder_later_is_no_base(world: World) -> None:
    attempt = drafted(world, {"agents/guide/late.md": "Late.\n"})
    sandbox.reduce(attempt.folder, global_folder=world.global_folder)
    world.shared("agents/guide/late.md", "Late.\n")
    [change] = shown(world, attempt).values()
    assert (change.base, change.live) == (None, None)
