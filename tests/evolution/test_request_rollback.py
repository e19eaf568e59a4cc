"""Asking for a rollback: every refusal leaves row and files alone; what goes through is claimed for a wrapper."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User

from core import hashes
from evolution import manifest as manifests
from evolution import request_rollback as module
from evolution.manifest import Manifest, ManifestFile
from evolution.models import EvolutionApply
from evolution.request_rollback import await_outcome, preview, request_rollback
from evolution.spawn import Order
from tests.evolution.rows import START as NOW
from tests.evolution.rows import Rows, fresh, make_user, refused

pytestmark = pytest.mark.django_db
OLD, NEW, EDITED = b"old\n", b"new\n", b"edited by a person\n"
REL = "INSTRUCTIONS.md"


@pytest.fixture
def rita() -> User:
    return make_user("rita", "rollback")


@pytest.fixture
def spawned(monkeypatch: pytest.MonkeyPatch) -> list[Order]:
    orders: list[Order] = []
    monkeypatch.setattr(module, "spawn_wrapper", orders.append)
    return orders


def landed(rows: Rows, *, live: bytes = NEW) -> EvolutionApply:
    """An applied apply with its snapshot, and what stands in the live surface now."""
    apply = rows.applied()
    paths = rows.workspace.paths
    snapshot = paths.evolution.snapshot(apply.pk, apply.snapshot_attempt or 0)
    (snapshot / "before").mkdir(parents=True)
    (snapshot / "before" / REL).write_bytes(OLD)
    file = ManifestFile(REL, "overwrite", hashes.of_bytes(OLD), hashes.of_bytes(NEW))
    manifests.write(snapshot, Manifest(apply.pk, (), "2026-03-01T12:00:00.000Z", (file,), ()))
    paths.halo.mkdir(exist_ok=True)
    (paths.halo / REL).write_bytes(live)
    return apply


def test_a_rollback_is_claimed_for_a_wrapper_and_names_the_person(
    rows: Rows, rita: User, spawned: list[Order]
) -> None:
    apply = landed(rows)

    request_rollback(apply_id=apply.pk, attempts=apply.attempts, user=rita, now=NOW)

    row = fresh(apply)
    assert (row.status, row.rolled_back_by, row.attempts) == ("rolling_back", rita, apply.attempts + 1)
    assert spawned == [Order("rollback", apply.pk, row.attempts)]
    assert (rows.workspace.paths.halo / REL).read_bytes() == NEW  # the wrapper's to change, not ours


def test_an_edited_file_is_a_conflict_until_the_person_agrees_to_exactly_that(
    rows: Rows, rita: User, spawned: list[Order]
) -> None:
    apply = landed(rows, live=EDITED)

    with refused("conflict"):
        request_rollback(apply_id=apply.pk, attempts=apply.attempts, user=rita, now=NOW)
    shown = preview(apply_id=apply.pk).conflicts
    assert [(item["rel"], item["state"]) for item in shown] == [(REL, "modified")]

    (rows.workspace.paths.halo / REL).write_bytes(b"edited once more\n")
    with refused("changed"):
        request_rollback(
            apply_id=apply.pk, attempts=apply.attempts, user=rita, force=True, seen=shown, now=NOW
        )
    assert spawned == []

    shown = preview(apply_id=apply.pk).conflicts
    request_rollback(apply_id=apply.pk, attempts=apply.attempts, user=rita, force=True, seen=shown, now=NOW)
    assert (fresh(apply).status, fresh(apply).rollback_seen) == ("rolling_back", shown)


def test_without_the_permission_nothing_is_rolled_back(rows: Rows, spawned: list[Order]) -> None:
    apply = landed(rows)

    with refused("forbidden"):
        request_rollback(
            apply_id=apply.pk, attempts=apply.attempts, user=make_user("nils", "review"), now=NOW
        )
    assert spawned == []


def test_a_busy_workspace_is_named(rows: Rows, rita: User) -> None:
    apply = landed(rows)
    waiting = rows.approved()

    with refused("apply_in_flight"):
        request_rollback(apply_id=apply.pk, attempts=apply.attempts, user=rita, now=NOW)
    with pytest.raises(module.Refused) as caught:
        preview(apply_id=apply.pk)
    assert caught.value.details == {"apply": str(waiting), "status": "pending"}


def test_only_an_applied_one_with_a_whole_snapshot(rows: Rows, rita: User) -> None:
    pending = rows.approved()
    with refused("not_applied"):
        request_rollback(apply_id=pending.pk, attempts=0, user=rita, now=NOW)
    rows.failed_apply(pending)

    apply = landed(rows)
    snapshot = rows.workspace.paths.evolution.snapshot(apply.pk, apply.snapshot_attempt or 0)
    (snapshot / "before" / REL).write_bytes(b"rotten")
    with refused("backup_mismatch"):
        request_rollback(apply_id=apply.pk, attempts=apply.attempts, user=rita, force=True, now=NOW)
    (snapshot / "MANIFEST.json").unlink()
    with refused("no_snapshot"):
        request_rollback(apply_id=apply.pk, attempts=apply.attempts, user=rita, now=NOW)


def test_the_newer_apply_that_changed_the_same_file_is_named(rows: Rows, rita: User) -> None:
    first = landed(rows)
    second = landed(rows, live=EDITED)

    found = preview(apply_id=first.pk)

    assert found.newer == str(second)


def test_the_outcome_is_waited_for_a_while_only(rows: Rows) -> None:
    apply, claim = rows.rolling_back()
    clock = iter(range(100))

    assert (
        await_outcome(apply_id=apply.pk, pause=lambda _: None, monotonic=lambda: float(next(clock))) is None
    )

    module.transitions.finish_rollback(claim, outcome={"restored": [REL]}, now=NOW)
    assert await_outcome(apply_id=apply.pk) == {"restored": [REL]}


def test_a_refusal_while_planning_reaches_the_person(rows: Rows, tmp_path: Path) -> None:
    apply, claim = rows.rolling_back()
    module.transitions.refuse_rollback(claim, code="conflict", details={"conflicts": []}, now=NOW)

    with pytest.raises(module.Refused) as caught:
        await_outcome(apply_id=apply.pk)

    assert caught.value.code == "conflict"
    assert fresh(apply).status == "applied"
