"""Publish, restore and rollback when nobody disturbs them, and what they refuse."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from evolution import rollback
from evolution.errors import ClaimLost, PhaseFailed, Refused
from evolution.publish import Drifted
from tests.evolution.swap_world import CREATED, NEW, OLD, World, build


@pytest.fixture
def world(tmp_path: Path) -> World:
    return build(tmp_path)


def lost() -> None:
    raise ClaimLost("taken over")


def test_a_snapshot_holds_what_will_be_overwritten_and_what_will_be_added(world: World) -> None:
    before = world.live()
    manifest = world.prepare()
    assert world.live() == before and not world.marker_stands()
    assert [(file.rel, file.kind, file.unchanged) for file in manifest.files] == [
        ("INSTRUCTIONS.md", "overwrite", False),
        ("agents/helper/AGENT.md", "overwrite", False),
        ("prompts/all/brief.md", "new", False),
        ("skills/dig/SKILL.md", "new", False),
        ("skills/dig/notes.md", "new", True),
    ]
    assert manifest.created_dirs == CREATED
    assert (world.snapshot_folder / "before/INSTRUCTIONS.md").read_text() == OLD["INSTRUCTIONS.md"]
    assert (world.stage / "skills/dig/SKILL.md").read_text() == NEW["skills/dig/SKILL.md"]
    assert world.manifest == manifest


def test_publish_then_rollback_brings_back_the_very_surface(world: World) -> None:
    before, folders = world.live(), world.folders()
    world.prepare()
    outcome = world.publish()
    assert outcome.published == tuple(sorted(NEW)) and outcome.edited_since == ()
    assert world.live() == OLD | NEW and not world.marker_stands()
    assert (world.halo / "agents/helper/AGENT.md").stat().st_mode & 0o777 == 0o640
    taken_back = world.rollback()
    assert world.live() == before and world.folders() == folders and not world.marker_stands()
    assert (world.halo / "agents/helper/AGENT.md").stat().st_mode & 0o777 == 0o640
    assert taken_back.restored == ("INSTRUCTIONS.md", "agents/helper/AGENT.md")
    assert taken_back.removed == ("prompts/all/brief.md", "skills/dig/SKILL.md", "skills/dig/notes.md")
    assert taken_back.removed_dirs == CREATED
    assert taken_back.kept_dirs == () and taken_back.left == ()


def test_publish_then_restore_brings_back_the_very_surface(world: World) -> None:
    before, folders = world.live(), world.folders()
    world.prepare()
    world.publish()
    outcome = world.restore()
    assert (world.live(), world.folders()) == (before, folders) and not world.marker_stands()
    assert (outcome.edited, outcome.kept, outcome.kept_dirs) == ((), (), ())


def test_publishing_again_changes_nothing(world: World) -> None:
    world.prepare()
    first = world.publish()
    assert world.publish() == first and world.live() == OLD | NEW


@pytest.mark.parametrize("rel", ["INSTRUCTIONS.md", "prompts/all/brief.md"])
def test_an_edit_before_preflight_is_drift(world: World, rel: str) -> None:
    world.write(rel, "PERSON")
    before = world.live()
    with pytest.raises(PhaseFailed) as caught:
        world.prepare()
    assert caught.value.reason == f"drift:{rel}"
    assert world.live() == before and not world.snapshot_folder.exists()


def test_a_deletion_before_preflight_is_drift(world: World) -> None:
    (world.halo / "INSTRUCTIONS.md").unlink()
    with pytest.raises(PhaseFailed, match=r"drift:INSTRUCTIONS\.md"):
        world.prepare()


def test_a_file_the_merge_did_not_touch_may_change(world: World) -> None:
    world.write("prompts/all/tone.md", "PERSON")
    world.prepare()
    world.publish()
    assert world.live() == OLD | NEW | {"prompts/all/tone.md": "PERSON"}


def test_a_symlink_in_the_sandbox_is_refused(world: World) -> None:
    (world.root / "sandbox/agents/helper/link.md").symlink_to("/etc/passwd")
    with pytest.raises(PhaseFailed, match=r"symlink:agents/helper/link\.md"):
        world.prepare()


@pytest.mark.parametrize("how", ["file", "folder"])
def test_nothing_is_published_through_a_symlink(world: World, how: str) -> None:
    outside = world.root / "outside"
    outside.mkdir()
    (outside / "AGENT.md").write_text(OLD["agents/helper/AGENT.md"])
    world.prepare()
    helper = world.halo / "agents/helper"
    helper.rename(world.root / "moved")
    if how == "folder":
        helper.symlink_to(outside)
    else:
        helper.mkdir()
        (helper / "AGENT.md").symlink_to(outside / "AGENT.md")
    with pytest.raises(Drifted) as caught:
        world.publish()
    assert caught.value.reason == "drift:agents/helper/AGENT.md" and world.marker_stands()
    outcome = world.restore()
    assert outcome.edited == ("agents/helper/AGENT.md",)
    assert (outside / "AGENT.md").read_text() == OLD["agents/helper/AGENT.md"]
    assert (world.halo / "INSTRUCTIONS.md").read_text() == OLD["INSTRUCTIONS.md"]


def test_a_lost_claim_stops_before_anything_is_written(world: World) -> None:
    before = world.live()
    with pytest.raises(ClaimLost):
        world.prepare(confirm=lost)
    assert not world.snapshot_folder.exists()
    world.prepare()
    with pytest.raises(ClaimLost):
        world.publish(confirm=lost)
    assert world.live() == before


def test_a_write_through_an_old_descriptor_after_the_end_lies_in_the_stage(world: World) -> None:
    descriptor = os.open(world.halo / "INSTRUCTIONS.md", os.O_WRONLY | os.O_APPEND)
    world.prepare()
    world.publish()
    os.write(descriptor, b"PERSON late")
    os.close(descriptor)
    assert "PERSON late" in (world.stage / "INSTRUCTIONS.md").read_text()
    world.rollback()
    assert (world.halo / "INSTRUCTIONS.md").read_text() == OLD["INSTRUCTIONS.md"]
    assert world.findable("PERSON late")


def test_a_stage_that_lost_the_old_text_is_restored_from_the_backup(world: World) -> None:
    world.prepare()
    world.publish()
    (world.stage / "INSTRUCTIONS.md").unlink()
    world.restore()
    assert world.live() == OLD


def test_every_state_of_a_file_is_told_before_a_rollback(world: World) -> None:
    world.prepare()
    world.publish()
    world.write("INSTRUCTIONS.md", "PERSON")
    (world.halo / "agents/helper/AGENT.md").unlink()
    (world.halo / "prompts/all/brief.md").unlink()
    inspection = rollback.inspect(halo=world.halo, snapshot_folder=world.snapshot_folder)
    assert inspection.refusal is None
    assert {file.rel: file.state for file in inspection.files} == {
        "INSTRUCTIONS.md": "modified",
        "agents/helper/AGENT.md": "missing",
        "prompts/all/brief.md": "reverted",
        "skills/dig/SKILL.md": "clean",
        "skills/dig/notes.md": "clean",
    }


def test_a_conflict_refuses_and_changes_nothing_until_it_is_forced(world: World) -> None:
    world.prepare()
    world.publish()
    world.write("INSTRUCTIONS.md", "PERSON")
    (world.halo / "agents/helper/AGENT.md").unlink()
    before = world.live()
    with pytest.raises(Refused) as caught:
        world.rollback()
    assert caught.value.code == "conflict" and world.live() == before and not world.marker_stands()
    shown = caught.value.details["conflicts"]
    assert [item["rel"] for item in shown] == ["INSTRUCTIONS.md", "agents/helper/AGENT.md"]
    world.write("INSTRUCTIONS.md", "PERSON again")
    with pytest.raises(Refused) as caught:
        world.rollback(attempt=3, force=True, shown=shown)
    assert caught.value.code == "changed"
    assert (world.halo / "INSTRUCTIONS.md").read_text() == "PERSON again"
    outcome = world.rollback(attempt=4, force=True, shown=caught.value.details["conflicts"])
    assert world.live() == OLD and outcome.left == ()
    assert world.findable("PERSON again")


def test_a_manifest_without_hashes_is_unverified(world: World) -> None:
    world.prepare()
    world.publish()
    path = world.snapshot_folder / "MANIFEST.json"
    value = json.loads(path.read_text())
    for file in value["files"]:
        del file["before"], file["after"]
    path.write_text(json.dumps(value))
    with pytest.raises(Refused) as caught:
        world.rollback()
    assert {item["state"] for item in caught.value.details["conflicts"]} == {"unverified"}
    world.rollback(attempt=3, force=True, shown=caught.value.details["conflicts"])
    assert world.live() == OLD


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    ("damage", "code"),
    [
        ("tamper", "backup_mismatch"),
        ("backup", "no_snapshot"),
        ("manifest", "no_snapshot"),
        ("path", "no_snapshot"),
    ],
)
def test_a_snapshot_that_cannot_be_trusted_refuses_even_with_force(
    world: World, damage: str, code: str, force: bool
) -> None:
    world.prepare()
    world.publish()
    backup = world.snapshot_folder / "before/INSTRUCTIONS.md"
    path = world.snapshot_folder / "MANIFEST.json"
    if damage == "tamper":
        backup.write_text("something else")
    elif damage == "backup":
        backup.unlink()
    elif damage == "manifest":
        path.unlink()
    else:
        path.write_text(path.read_text().replace("INSTRUCTIONS.md", "../../x.md"))
    before = world.live()
    with pytest.raises(Refused) as caught:
        world.rollback(force=force)
    assert caught.value.code == code
    assert world.live() == before and not world.marker_stands()
    assert not (world.snapshot_folder / "rollback-2").exists()


def test_a_folder_someone_put_files_in_is_kept_and_reported(world: World) -> None:
    world.prepare()
    world.publish()
    world.write("skills/dig/mine.md", "PERSON")
    outcome = world.rollback()
    assert outcome.kept_dirs == CREATED and outcome.removed_dirs == ()
    assert world.live() == OLD | {"skills/dig/mine.md": "PERSON"}
