"""``kill -9`` of the archive pass and of a retry between any two steps, passes at once, and a disk that is full."""

from __future__ import annotations

import os
import resource
import signal
import threading
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connections

from core.db.models import Event
from evolution import archive as archive_module
from evolution import unarchive, zips
from evolution.archive import archive
from evolution.models import EvolutionApply, EvolutionRun
from evolution.retry import retry
from tests.evolution.landings import land
from tests.evolution.process_world import Steps
from tests.evolution.rows import Rows, fresh, make_user
from tests.evolution.test_archive import days, evo, filled, zip_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

KILLED = -signal.SIGKILL


def in_process(work: Callable[[], object]) -> int:
    """Exit code of ``work`` in a process of its own, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(begun(work), 0)[1])


def begun(work: Callable[[], object]) -> int:
    connections.close_all()
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - this process must not go on as the test
        traceback.print_exc()
    finally:
        os._exit(code)


def world(folder: Path, name: str) -> tuple[Rows, EvolutionRun, EvolutionApply, dict[str, bytes]]:
    """A landed run and its apply, both with files; and every file of the run, for comparison."""
    rows = Rows.make(folder, name=name)
    run = rows.in_review()
    apply = land(rows, [run])
    run_folder = filled(rows, run)
    filled(rows, apply)
    (evo(rows).snapshot(apply.pk, 1)).mkdir(parents=True)
    archive(now=days(0.5))  # reduced
    return rows, fresh(run), apply, contents(run_folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def is_whole(rows: Rows, run: EvolutionRun, texts: dict[str, bytes], scratch: Path) -> bool:
    """Every file of the run can be had: from its folder, or from its zip when the row says so."""
    folder = evo(rows).run(run.pk)
    if fresh(run).archived_at is None:
        return contents(folder) == texts
    zips.unpack(zip_of(rows, run), scratch / "back")
    return contents(scratch / "back") == texts


def steps_of(folder: Path, work: Callable[[Steps], object]) -> list[str]:
    log = folder / "steps"
    assert in_process(lambda: work(Steps(log))) == 0
    return log.read_text().splitlines()


def test_a_pass_killed_anywhere_loses_nothing_and_the_next_one_finishes(tmp_path: Path) -> None:
    world(tmp_path, "clean")
    names = steps_of(tmp_path, lambda step: archive(now=days(14), step=step))
    assert names.count("row archived") == 2 and {"zipped", "verified", "zip in place"} <= set(names)

    for number, name in enumerate(names, start=1):
        rows, run, apply, texts = world(tmp_path, f"killed-{number}")
        step = Steps(tmp_path / "log", at=number)
        assert in_process(lambda step=step: archive(now=days(14), step=step)) == KILLED, name
        assert is_whole(rows, run, texts, tmp_path / f"scratch-{number}"), name

        archive(now=days(14))

        assert is_whole(rows, run, texts, tmp_path / f"after-{number}"), name
        assert fresh(run).archived_at is not None and fresh(apply).archived_at is not None, name
        assert not evo(rows).run(run.pk).exists() and not evo(rows).apply(apply.pk).exists(), name
        assert Event.objects.filter(object_id=run.pk, payload__archived=True).count() == 1, name


def test_a_purge_killed_anywhere_is_finished(tmp_path: Path) -> None:
    world(tmp_path, "clean")
    archive(now=days(14))
    names = steps_of(tmp_path, lambda step: archive(now=days(44), step=step))
    assert names.count("row purged") == 2

    for number, name in enumerate(names, start=1):
        rows, run, apply, _ = world(tmp_path, f"killed-{number}")
        archive(now=days(14))
        step = Steps(tmp_path / "log", at=number)
        assert in_process(lambda step=step: archive(now=days(44), step=step)) == KILLED, name
        for path in (zip_of(rows, run), zip_of(rows, apply), evo(rows).history(apply.pk)):
            if path.exists():
                os.utime(path, (0, 0))  # an hour, or the days of a backup, have passed

        archive(now=days(44))

        left = [path for path in evo(rows).root.rglob("*") if run.pk in path.name or apply.pk in path.name]
        assert [path for path in left if path.suffix != ".lock"] == [], name
        assert not EvolutionRun.objects.filter(pk=run.pk).exists(), name
        assert not EvolutionApply.objects.filter(pk=apply.pk).exists(), name


def test_a_retry_killed_anywhere_can_be_asked_for_again(tmp_path: Path) -> None:
    rita = make_user("rita", "review")

    def again(run: EvolutionRun, step: Steps) -> None:
        real = zips.unpack
        unarchive.zips.unpack = lambda *args, **given: real(*args, **{**given, "step": step})
        retry(run_id=run.pk, attempt=run.attempts, hint=None, user=rita, now=days(15))
        step("asked")

    def prepared(name: str) -> tuple[Rows, EvolutionRun, dict[str, bytes]]:
        rows = Rows.make(tmp_path, name=name)
        run = rows.failed()
        filled(rows, run)
        archive(now=days(0.5))
        texts = contents(evo(rows).run(run.pk))
        archive(now=days(14))
        return rows, run, texts

    _, run, _ = prepared("clean")
    names = steps_of(tmp_path, lambda step: again(run, step))
    assert names == ["unzipped", "folder in place", "asked"]

    for number, name in enumerate(names, start=1):
        rows, run, texts = prepared(f"killed-{number}")
        step = Steps(tmp_path / "log", at=number)
        assert in_process(lambda run=run, step=step: again(run, step)) == KILLED, name

        archive(now=days(15))
        if fresh(run).status != "pending":
            retry(run_id=run.pk, attempt=run.attempts, hint=None, user=rita, now=days(16))

        assert (fresh(run).status, fresh(run).archived_at) == ("pending", None), name
        assert contents(evo(rows).run(run.pk)) == texts and not zip_of(rows, run).exists(), name


def test_passes_at_once_pack_each_row_once(tmp_path: Path) -> None:
    rows = Rows.make(tmp_path)
    runs = [rows.failed() for _ in range(8)]
    for run in runs:
        filled(rows, run)

    pids = [begun(lambda: archive(now=days(14))) for _ in range(3)]
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0, 0, 0]
    archive(now=days(14))

    for run in runs:
        zips.check(zip_of(rows, run))
        assert fresh(run).archived_at is not None and not evo(rows).run(run.pk).exists()
        assert Event.objects.filter(object_id=run.pk, payload__archived=True).count() == 1


def test_a_retry_and_a_pass_at_once_leave_the_run_with_its_files(tmp_path: Path) -> None:
    rita = make_user("rita", "review")
    for number in range(4):
        rows = Rows.make(tmp_path, name=f"ws-{number}")
        run = rows.failed()
        filled(rows, run)
        archive(now=days(0.5))
        texts = contents(evo(rows).run(run.pk))
        archive(now=days(14))
        pids = [
            begun(lambda: [archive(now=days(15)) for _ in range(3)]),
            begun(
                lambda run=run: retry(run_id=run.pk, attempt=run.attempts, hint=None, user=rita, now=days(15))
            ),
        ]
        assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0, 0]
        archive(now=days(15))
        assert fresh(run).status == "pending" and contents(evo(rows).run(run.pk)) == texts


def test_a_disk_that_is_full_leaves_everything(tmp_path: Path) -> None:
    """The kernel itself refuses the write: files may not grow beyond a few bytes in that process."""
    rows = Rows.make(tmp_path)
    run = rows.failed()
    folder = filled(rows, run)
    (folder / "large").write_bytes(os.urandom(200_000))
    archive(now=days(0.5))
    before = contents(folder)

    def refused_by_the_kernel() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        real = zips.pack

        def pack(*args: Path, **given: object) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
            try:
                real(*args, **given)  # type: ignore[arg-type]
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

        archive_module.zips.pack = pack
        report = archive(now=days(14))
        assert report.archived == [] and "File too large" in report.failed[0]

    assert in_process(refused_by_the_kernel) == 0
    assert contents(folder) == before and fresh(run).archived_at is None
    assert list(evo(rows).archive.iterdir()) == []
    archive(now=days(14))
    assert fresh(run).archived_at == days(14)


def test_the_web_process_runs_a_pass_at_its_start_and_daily_while_no_cluster_does() -> None:
    from halo_site.archiving import Archiving

    now, ticked, ran = [days(0)], [days(0)], threading.Event()
    archiving = Archiving(run=ran.set, cluster_ticked=lambda: ticked[0], now=lambda: now[0], look_sec=3600)
    archiving.start()
    assert ran.wait(10), "with a cluster as well: a pass is due at every start"
    archiving.stop()
    archiving._thread.join(10)

    now[0] = days(0.5)
    assert not archiving.is_due()
    now[0] = ticked[0] = days(1.1)
    assert not archiving.is_due(), "the cluster's schedule does it"
    ticked[0] = days(1.1) - timedelta(minutes=11)
    assert archiving.is_due()


def test_the_cluster_has_a_daily_schedule(settings: object) -> None:
    from django_q.models import Schedule

    from evolution.tasks import ensure_schedules

    ensure_schedules()
    ensure_schedules()
    found = Schedule.objects.get(name="evolution archive")
    assert (found.func, found.schedule_type) == ("evolution.tasks.archive", Schedule.DAILY)
