"""The archive pass: what is packed and removed when, what is left alone, and what a crash left."""

from __future__ import annotations

import json
import os
import time
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from core.db.models import Event
from core.paths import EvolutionPaths
from evolution import archive as archive_module
from evolution import orphans, transitions, zips
from evolution.archive import ArchiveReport, archive
from evolution.artifacts.files import AttemptFiles
from evolution.folder_lock import FolderBusy, holding
from evolution.models import EvolutionApply, EvolutionRun, RegressionScenario
from evolution.retry import retry
from evolution.selectors import earlier_drafts
from tests.evolution.landings import land, roll_back
from tests.evolution.phase_world import patch_text, write
from tests.evolution.rows import START, Rows, fresh, make_user, refused

pytestmark = pytest.mark.django_db

ROW = EvolutionRun | EvolutionApply


def days(count: float) -> datetime:
    return START + timedelta(days=count)


def evo(rows: Rows) -> EvolutionPaths:
    return rows.workspace.paths.evolution


def filled(rows: Rows, row: ROW) -> Path:
    """The row's folder with a whole attempt in it."""
    is_run = isinstance(row, EvolutionRun)
    folder = evo(rows).run(row.pk) if is_run else evo(rows).apply(row.pk)
    files = AttemptFiles(folder / "attempts" / str(max(1, row.attempts)))
    for root in (files.base, files.sandbox):
        write(root / "INSTRUCTIONS.md", "Old.\n")
        write(root / "INDEX.md", "Same.\n")
    write(files.sandbox / "INSTRUCTIONS.md", "New.\n")
    write(files.patch, patch_text())
    write(folder / "meta.json", "{}")
    return folder


def zip_of(rows: Rows, row: ROW) -> Path:
    return evo(rows).archived("run" if isinstance(row, EvolutionRun) else "apply", row.pk)


def done(report: ArchiveReport) -> dict[str, list[str]]:
    names = ("archived", "purged", "rollbacks_gone", "finished", "orphans", "reduced", "failed")
    return {name: found for name in names if (found := getattr(report, name))}


def old(path: Path, *, hours: float = 2) -> Path:
    moment = time.time() - hours * 3600
    os.utime(path, (moment, moment))
    return path


def test_a_row_is_packed_after_fourteen_days_and_gone_after_thirty_more(rows: Rows) -> None:
    run = rows.failed()
    folder = filled(rows, run)

    assert done(archive(now=days(13.9))) == {"reduced": [str(run)]}
    assert folder.exists() and fresh(run).archived_at is None

    assert done(archive(now=days(14))) == {"archived": [str(run)]}
    assert not folder.exists() and fresh(run).archived_at == days(14)
    zips.check(zip_of(rows, run))
    assert Event.objects.latest("id").payload == {"archived": True}
    assert done(archive(now=days(20))) == {}

    assert done(archive(now=days(43.9))) == {}
    assert done(archive(now=days(44))) == {"purged": [str(run)]}
    assert not zip_of(rows, run).exists() and not EvolutionRun.objects.exists()
    assert Event.objects.latest("id").payload == {"deleted": True, "purged": True}


def test_rows_that_are_not_over_are_never_touched(rows: Rows) -> None:
    kept: list[ROW] = [rows.pending(), rows.claimed()[0], rows.in_review()]
    for apply in (rows.failed_apply(), rows.rolling_back()[0]):
        kept += apply.current_runs.all()
    kept = [row for row in kept if row.status != "applied"]
    kept.append(rows.approved())
    folders = [filled(rows, row) for row in kept]
    before = [sorted(path.name for path in folder.rglob("*")) for folder in folders]

    report = archive(now=days(400))

    assert {str(row) for row in kept}.isdisjoint(report.archived + report.purged + report.reduced)
    assert [sorted(path.name for path in folder.rglob("*")) for folder in folders] == before


@pytest.mark.parametrize("end", ["cancelled", "timeout"])
def test_a_row_that_ended_without_a_wrapper_is_reduced(rows: Rows, end: str) -> None:
    run, _ = rows.claimed()
    folder = filled(rows, run)
    if end == "cancelled":
        transitions.cancel_run(run_id=run.pk, user=rows.user, now=rows.now)
    else:
        from evolution.claim import Observed

        transitions.time_out_run(Observed.of(run), reason="gone", now=rows.now)

    assert done(archive(now=days(0.01))) == {}
    assert done(archive(now=days(0.1))) == {"reduced": [str(run)]}
    assert done(archive(now=days(0.2))) == {}
    assert [path.name for path in (folder / "attempts/1/sandbox/.halo").iterdir()] == ["INSTRUCTIONS.md"]


def test_an_apply_goes_with_its_snapshots_after_its_runs_and_its_lost_rollback_is_reported(
    rows: Rows,
) -> None:
    run = rows.in_review()
    apply = land(rows, [run])
    filled(rows, run), filled(rows, apply)
    history = evo(rows).snapshot(apply.pk, 1)
    write(history / "MANIFEST.json", "{}")
    assert done(archive(now=days(14)))["archived"] == [str(run), str(apply)]
    assert history.exists()
    before = archive(now=days(44), dry_run=True)

    report = archive(now=days(44))

    assert done(before) == done(report)
    assert done(report) == {"purged": [str(run), str(apply)], "rollbacks_gone": [str(apply)]}
    assert not history.exists() and not evo(rows).history(apply.pk).exists()
    assert not EvolutionApply.objects.exists()
    assert RegressionScenario.objects.get().retired_at is None, "it owns its texts"


def test_an_apply_stays_while_one_of_its_runs_is_at_work_again(rows: Rows) -> None:
    first, second = rows.in_review(), rows.in_review()
    apply = land(rows, [first, second])
    roll_back(rows, apply)
    run = fresh(second)
    transitions.retry(
        run_id=run.pk, source=run.status, attempt=run.attempts, hint="", user=rows.user, now=days(1)
    )
    archive(now=days(14))

    report = archive(now=days(60))

    assert report.purged == [str(first)] and EvolutionApply.objects.filter(pk=apply.pk).exists()
    transitions.cancel_run(run_id=run.pk, user=rows.user, now=days(61))
    assert archive(now=days(62)).purged == [str(apply)]


def test_an_apply_that_a_reviewers_run_still_names_stays(rows: Rows) -> None:
    apply = rows.failed_apply()
    archive(now=days(14))
    assert fresh(apply).archived_at == days(14)
    assert done(archive(now=days(100))) == {}
    assert EvolutionApply.objects.filter(pk=apply.pk).exists()


def test_a_rollback_after_archiving_gives_the_row_its_days_anew(rows: Rows) -> None:
    apply = land(rows)
    archive(now=days(14))
    claim = transitions.begin_rollback(
        apply_id=apply.pk, attempts=apply.attempts, user=rows.user, force=False, seen=[], now=days(40)
    )
    transitions.finish_rollback(claim, outcome={}, now=days(40))

    assert done(archive(now=days(60))) == {}
    assert archive(now=days(84)).purged[-1] == str(apply)


def test_a_refused_rollback_leaves_a_time_that_days_are_counted_from(rows: Rows) -> None:
    _, claim = rows.rolling_back()
    transitions.refuse_rollback(claim, code="conflict", details={}, now=days(3))
    apply = EvolutionApply.objects.get()
    assert apply.finished_at == days(3)
    assert str(apply) in archive(now=days(17)).archived


def test_a_dry_run_says_the_same_and_does_nothing(rows: Rows) -> None:
    run = rows.failed()
    folder = filled(rows, run)
    before = sorted(folder.rglob("*"))
    events = Event.objects.count()

    found = done(archive(now=days(14), dry_run=True))

    assert found == {"archived": [str(run)], "reduced": [str(run)]}
    assert sorted(folder.rglob("*")) == before and not evo(rows).archive.exists()
    assert (fresh(run).archived_at, Event.objects.count()) == (None, events)


def test_a_failed_zip_leaves_everything_for_the_next_pass(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, other = rows.failed(), rows.failed()
    folder = filled(rows, run)
    filled(rows, other)
    real = zips._verify

    def full(temporary: Path, packed: dict[str, str]) -> None:
        if str(run.pk) in temporary.name:
            raise OSError(28, "No space left on device", str(temporary))
        real(temporary, packed)

    monkeypatch.setattr(zips, "_verify", full)
    report = archive(now=days(14))
    assert report.archived == [str(other)]
    assert len(report.failed) == 1 and "No space left" in report.failed[0] and str(run) in report.failed[0]
    assert folder.exists() and fresh(run).archived_at is None
    assert [path.name for path in evo(rows).archive.iterdir()] == [zip_of(rows, other).name]

    monkeypatch.undo()
    assert archive(now=days(15)).archived == [str(run)]


def test_a_run_that_is_retried_meanwhile_keeps_its_folder(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = rows.failed()
    folder = filled(rows, run)

    def retried(name: str) -> None:
        if name == "verified":
            transitions.retry(
                run_id=run.pk, source=run.status, attempt=run.attempts, hint="", user=rows.user, now=days(14)
            )

    report = archive(now=days(14), step=retried)

    assert report.archived == [] and folder.exists() and not zip_of(rows, run).exists()
    assert fresh(run).status == "pending"


def test_a_retry_that_comes_too_late_is_refused_and_finds_the_zip_next_time(rows: Rows) -> None:
    run = rows.failed()
    filled(rows, run)
    archive(now=days(14))
    with refused("changed"):
        transitions.retry(
            run_id=run.pk, source=run.status, attempt=run.attempts, hint="", user=rows.user, now=days(14)
        )


def test_an_archived_run_is_unpacked_before_it_starts_over(
    rows: Rows, django_capture_on_commit_callbacks: Any
) -> None:
    run, rita = rows.failed(), make_user("rita", "review")
    folder = filled(rows, run)
    archive(now=days(14))

    with django_capture_on_commit_callbacks(execute=True):
        retry(run_id=run.pk, attempt=run.attempts, hint=None, user=rita, now=days(15))

    run = fresh(run)
    assert (run.status, run.archived_at) == ("pending", None)
    assert (folder / "meta.json").read_text() == "{}" and not zip_of(rows, run).exists()
    assert done(archive(now=days(16))) == {}


@pytest.mark.parametrize(
    ("spoil", "code"),
    [("unlink", "archive_missing"), ("damage", "archive_damaged"), ("hold", "archive_busy")],
)
def test_a_retry_without_its_files_is_refused(
    rows: Rows, monkeypatch: pytest.MonkeyPatch, spoil: str, code: str
) -> None:
    run, rita = rows.failed(), make_user("rita", "review")
    folder = filled(rows, run)
    archive(now=days(14))
    lock = evo(rows).folder_lock("run", run.pk)
    monkeypatch.setattr("evolution.unarchive.WAIT_SEC", 0.05)
    if spoil == "unlink":
        zip_of(rows, run).unlink()
    elif spoil == "damage":
        zip_of(rows, run).write_bytes(b"no zip")

    with refused(code):
        if spoil == "hold":
            with holding(lock):
                retry(run_id=run.pk, attempt=run.attempts, hint=None, user=rita, now=days(15))
        retry(run_id=run.pk, attempt=run.attempts, hint=None, user=rita, now=days(15))
    assert not folder.exists()


def test_a_row_whose_lock_is_held_waits_for_the_next_pass(rows: Rows) -> None:
    run = rows.failed()
    filled(rows, run)
    with holding(evo(rows).folder_lock("run", run.pk)):
        assert done(archive(now=days(14))) == {}
        with pytest.raises(FolderBusy), holding(evo(rows).folder_lock("run", run.pk)):
            pass
    assert archive(now=days(14)).archived == [str(run)]
    assert [path.name for path in evo(rows).archive.iterdir()] == [zip_of(rows, run).name]


def test_what_a_crash_left_is_finished(rows: Rows) -> None:
    unpacked, packed = rows.failed(), rows.failed()
    folder = filled(rows, unpacked)
    archive(now=days(14))
    filled(rows, unpacked)  # a retry died after it had unpacked
    filled(rows, packed)
    rows_of = EvolutionRun.objects.filter(pk=packed.pk)
    rows_of.update(archived_at=None)
    zips.pack(evo(rows).run(packed.pk), zip_of(rows, packed))  # a pass died before the row's change
    scrap = old_tree(evo(rows).runs / f".{packed.pk}.abc.tmp")
    half = evo(rows).archive / ".run-x.zip.abc.tmp"
    write(half, "half")
    old(half)
    lock = evo(rows).folder_lock("run", "0" * 26)
    write(lock, "")
    old(lock)

    report = archive(now=days(14))

    assert not folder.exists() and zip_of(rows, unpacked).exists()
    assert sorted(report.finished) == sorted([f"runs/{unpacked.pk}", f"archive/run-{packed.pk}.zip"])
    assert report.archived == [str(packed)] and not report.failed
    assert not scrap.exists() and not half.exists() and not lock.exists()


def test_a_scrap_that_cannot_be_removed_is_named_and_the_rest_goes_on(rows: Rows) -> None:
    packed = rows.failed()
    filled(rows, packed)
    stuck = evo(rows).archive / ".run-x.lock"
    stuck.mkdir(parents=True)
    old(stuck)

    report = archive(now=days(15))

    assert report.archived == [f"run-{packed.pk}"]
    assert len(report.failed) == 1 and report.failed[0].startswith(".run-x.lock: ")


def test_a_scrap_that_another_pass_removes_meanwhile_is_no_failure(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = evo(rows).archive / ".run-x.zip.abc.tmp"
    write(gone, "half")
    old(gone)
    listed = orphans.list_scraps(evo(rows))
    assert listed == [gone]

    def listed_and_gone(paths: EvolutionPaths) -> list[Path]:
        gone.unlink()
        return listed

    monkeypatch.setattr(orphans, "list_scraps", listed_and_gone)

    assert done(archive(now=days(1))) == {}
    assert not gone.exists()


def test_a_scrap_that_goes_while_it_is_listed_is_not_listed(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    evo(rows).archive.mkdir(parents=True)
    monkeypatch.setattr(Path, "iterdir", lambda folder: iter([folder / ".run-x.lock"]))

    assert orphans.list_scraps(evo(rows)) == []


def old_tree(folder: Path) -> Path:
    write(folder / "file", "x")
    return old(folder)


def test_a_folder_whose_zip_is_gone_is_never_removed(rows: Rows) -> None:
    run = rows.failed()
    folder = filled(rows, run)
    archive(now=days(14))
    filled(rows, run)
    zip_of(rows, run).unlink()

    report = archive(now=days(15))

    assert folder.exists() and len(report.failed) == 1 and run.pk in report.failed[0]


def test_folders_of_nobody_are_removed_after_an_hour(rows: Rows) -> None:
    from core.ids import new_row_id

    ids = [new_row_id() for _ in range(7)]
    gone = [old_tree(evo(rows).run(ids[0])), old_tree(evo(rows).apply(ids[1]))]
    gone.append(old_tree(evo(rows).history(ids[2])))
    old(gone[-1], hours=24 * 45)
    write(evo(rows).archived("run", ids[3]), "zip")
    gone.append(old(evo(rows).archived("run", ids[3])))
    fresh_one = evo(rows).run(ids[4])
    write(fresh_one / "meta.json", "{}")
    backup = old_tree(evo(rows).history(ids[5]))
    linked = evo(rows).runs / ids[6]
    linked.symlink_to(rows.workspace.paths.halo)
    strange = old_tree(evo(rows).runs / "notes")

    report = archive(now=days(1))

    assert len(report.orphans) == 4 and not any(path.exists() for path in gone)
    assert fresh_one.exists() and backup.exists() and strange.exists() and linked.is_symlink()


def test_what_is_older_than_the_database_knows_the_workspace_is_left_alone(rows: Rows) -> None:
    from core.ids import first_row_id_at

    stranger = old_tree(evo(rows).run(first_row_id_at(START - timedelta(days=1))))
    assert done(archive(now=days(1))) == {} and stranger.exists()


def test_nothing_is_removed_through_a_link(rows: Rows, tmp_path: Path) -> None:
    from core.ids import new_row_id

    elsewhere = tmp_path / "elsewhere"
    kept = old_tree(elsewhere / new_row_id())
    evo(rows).root.mkdir()
    evo(rows).runs.symlink_to(elsewhere)

    report = archive(now=days(1))

    assert kept.exists() and len(report.failed) == 1


def test_a_workspace_that_is_away_keeps_its_rows_and_is_named(rows: Rows) -> None:
    run = rows.failed()
    evo(rows).root.parent.rmdir()

    report = archive(now=days(100))

    assert report.archived == report.purged == [] and rows.workspace.path in report.failed[0]
    assert fresh(run).archived_at is None and not rows.workspace.paths.halo.exists()


def test_another_hosts_workspaces_are_another_hosts_business(rows: Rows, tmp_path: Path) -> None:
    there = Rows.make(tmp_path, host="elsewhere", name="there")
    run = there.failed()
    filled(there, run)
    assert done(archive(now=days(100))) == {} and fresh(run).archived_at is None


def test_a_pass_that_is_given_little_time_goes_on_next_time(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        filled(rows, rows.failed())
    moments = iter(range(1000))
    monkeypatch.setattr(archive_module.clock, "suspended_seconds", lambda: float(next(moments)))

    report = archive(now=days(14), seconds=12.0)
    assert report.unfinished and report.did_something
    while report.unfinished:
        report = archive(now=days(14), seconds=14.0)

    assert not EvolutionRun.objects.filter(archived_at__isnull=True).exists()


def test_a_drafter_still_reads_the_rejected_drafts_that_were_packed(rows: Rows) -> None:
    run = rows.failed()
    filled(rows, run)
    archive(now=days(14))

    (draft,) = earlier_drafts(rows.in_review())

    assert (draft.run_id, draft.target) == (run.pk, "INSTRUCTIONS.md") and "State the number" in draft.patch


def test_the_command_says_what_it_did_or_would_do(rows: Rows) -> None:
    run = rows.failed()
    filled(rows, run)
    EvolutionRun.objects.filter(pk=run.pk).update(finished_at=START - timedelta(days=400))

    def evo_archive(*options: str) -> str:
        output = StringIO()
        call_command("evo", "archive", *options, stdout=output)
        return output.getvalue()

    assert f"{run}  would be packed" in evo_archive("--dry-run")
    assert json.loads(evo_archive("--dry-run", "--json"))["archived"] == [str(run)]
    assert f"{run}  packed" in evo_archive()
    assert evo_archive() == "Nothing to do.\n"
