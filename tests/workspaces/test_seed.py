"""Seeding: shipped files arrive and are renewed; what a person wrote or removed stays theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.paths import HaloHome
from tests.workspaces.conftest import Write, writer
from workspaces.seed import seed


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    folder = tmp_path / "shipped"
    write = writer(folder)
    write("agents/a/AGENT.md", "a1")
    write("prompts/all/p.md", "p1")
    return folder


@pytest.fixture
def ship(shipped: Path) -> Write:
    return writer(shipped)


def content(home: HaloHome) -> dict[str, str]:
    files = [path for path in home.global_folder.rglob("*") if path.is_file() and path.name != ".seeded.json"]
    return {path.relative_to(home.global_folder).as_posix(): path.read_text() for path in files}


def test_a_new_home_gets_everything_and_a_second_start_nothing(home: HaloHome, shipped: Path) -> None:
    assert sorted(seed(home, shipped=shipped).written) == ["agents/a/AGENT.md", "prompts/all/p.md"]
    assert seed(home, shipped=shipped).written == []
    assert content(home) == {"agents/a/AGENT.md": "a1", "prompts/all/p.md": "p1"}


def test_a_newer_version_renews_only_what_nobody_touched(
    home: HaloHome, shipped: Path, ship: Write, in_global: Write
) -> None:
    seed(home, shipped=shipped, version=1)
    in_global("prompts/all/p.md", "mine")
    ship("agents/a/AGENT.md", "a2")
    ship("prompts/all/p.md", "p2")
    ship("prompts/all/new.md", "n2")
    done = seed(home, shipped=shipped, version=2)
    assert done.kept == ["prompts/all/p.md"]
    assert content(home) == {
        "agents/a/AGENT.md": "a2",
        "prompts/all/p.md": "mine",
        "prompts/all/new.md": "n2",
    }


def test_an_edit_stays_through_every_later_version(
    home: HaloHome, shipped: Path, ship: Write, in_global: Write
) -> None:
    seed(home, shipped=shipped, version=1)
    in_global("prompts/all/p.md", "mine")
    for version in (2, 3, 4):
        ship("prompts/all/p.md", f"p{version}")
        seed(home, shipped=shipped, version=version)
        assert content(home)["prompts/all/p.md"] == "mine"


def test_a_persons_file_that_was_there_first_is_not_overwritten(
    home: HaloHome, shipped: Path, in_global: Write
) -> None:
    in_global("agents/a/AGENT.md", "mine")
    assert seed(home, shipped=shipped).kept == ["agents/a/AGENT.md"]
    assert content(home)["agents/a/AGENT.md"] == "mine"


def test_an_older_version_leaves_a_newer_ones_files(home: HaloHome, shipped: Path, ship: Write) -> None:
    seed(home, shipped=shipped, version=3)
    ship("agents/a/AGENT.md", "old")
    assert seed(home, shipped=shipped, version=2).written == []
    assert content(home)["agents/a/AGENT.md"] == "a1"


def test_a_file_shipped_no_longer_goes_unless_it_was_edited(
    home: HaloHome, shipped: Path, ship: Write, in_global: Write
) -> None:
    ship("prompts/root/gone.md", "g")
    ship("prompts/root/edited.md", "e")
    seed(home, shipped=shipped, version=1)
    in_global("prompts/root/edited.md", "mine")
    (shipped / "prompts" / "root" / "gone.md").unlink()
    (shipped / "prompts" / "root" / "edited.md").unlink()
    done = seed(home, shipped=shipped, version=2)
    assert (done.removed, done.kept) == (["prompts/root/gone.md"], ["prompts/root/edited.md"])
    assert content(home)["prompts/root/edited.md"] == "mine"


def test_a_damaged_record_loses_no_edit(home: HaloHome, shipped: Path, ship: Write, in_global: Write) -> None:
    seed(home, shipped=shipped, version=1)
    in_global("prompts/all/p.md", "mine")
    in_global(".seeded.json", '{"version": 1, "files": {"../../secrets/settings.yaml": "x"}}')
    ship("prompts/all/p.md", "p2")
    seed(home, shipped=shipped, version=2)
    assert content(home)["prompts/all/p.md"] == "mine"


def test_links_are_not_written_through(home: HaloHome, shipped: Path, tmp_path: Path) -> None:
    outside = tmp_path / "dotfiles"
    outside.mkdir()
    (home.global_folder / "agents").symlink_to(outside)
    assert seed(home, shipped=shipped).kept == ["agents/a/AGENT.md"]
    assert list(outside.iterdir()) == []


def test_a_file_where_a_folder_should_be_is_kept(home: HaloHome, shipped: Path, in_global: Write) -> None:
    in_global("agents", "a note")
    assert seed(home, shipped=shipped).kept == ["agents/a/AGENT.md"]
    assert (home.global_folder / "agents").read_text() == "a note"


def test_an_agent_that_a_person_made_under_a_shipped_name_gets_no_files(
    home: HaloHome, shipped: Path, in_global: Write
) -> None:
    in_global("agents/a/agent.yaml", "name: mine\nsystem_prompt: mine")
    assert seed(home, shipped=shipped).kept == ["agents/a/AGENT.md"]
    assert "agents/a/AGENT.md" not in content(home)


def test_a_seeding_that_was_cut_off_is_completed(
    home: HaloHome, shipped: Path, ship: Write, in_global: Write
) -> None:
    ship("agents/a/agent.yaml", "name: A")
    in_global("agents/a/AGENT.md", "a1")
    seed(home, shipped=shipped)
    assert content(home)["agents/a/agent.yaml"] == "name: A"
