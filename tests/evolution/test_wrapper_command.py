"""``halo evo_wrapper`` as the ticker starts it: detached, on the slim settings, with real children."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.db import connection

from core.paths import halo_home
from evolution import transitions
from evolution.spawn import PROJECT_ROOT, Order, spawn_wrapper
from evolution.ticker import tick
from tests.evolution.process_world import ProcessWorld
from tests.evolution.rows import fresh

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]


@pytest.fixture
def same_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that are started see the database of the test."""
    values = connection.settings_dict
    if connection.vendor == "sqlite":
        url = f"sqlite:///{values['NAME']}"
    else:
        url = f"postgres://{values['USER']}@{values['HOST']}:{values['PORT']}/{values['NAME']}"
    monkeypatch.setenv("DATABASE_URL", url)


@pytest.mark.usefixtures("same_database")
def test_a_run_is_worked_by_a_process_of_its_own(tmp_path: Path) -> None:
    world = ProcessWorld.make(tmp_path, "ws")
    shutil.copytree(PROJECT_ROOT / "workspaces/platform", halo_home().global_folder, dirs_exist_ok=True)
    run = world.pending()
    report = tick(spawn=spawn_wrapper)
    assert report.started == (Order("run", run.pk, 1),)
    seen = None
    deadline = time.monotonic() + 200
    while fresh(run).status in ("pending", "running") and time.monotonic() < deadline:
        seen = fresh(run).process or seen
        time.sleep(0.05)
    run = fresh(run)
    log = Order("run", run.pk, 1).log.read_text()
    assert run.status in ("awaiting_review", "skipped", "failed"), log
    assert "Traceback" not in log
    assert seen is not None
    assert seen.pid != os.getpid()
    assert run.process is None, "an ended row names no process"
    assert list((tmp_path / "ws/.halo/evo/runs" / run.pk / "attempts").iterdir())


@pytest.mark.usefixtures("same_database")
def test_an_attempt_that_came_too_late_leaves_at_once(tmp_path: Path) -> None:
    world = ProcessWorld.make(tmp_path, "ws")
    run, claim = world.rows.claimed()
    transitions.cancel_run(run_id=run.pk, user=world.rows.user, now=world.rows.now)
    done = subprocess.run(
        [sys.executable, "-m", "halo_site", "evo_wrapper", "run", run.pk, "--attempt", str(claim.attempt)],
        cwd=PROJECT_ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "halo_site.settings.slim"},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert (fresh(run).status, fresh(run).process) == ("cancelled", None)
    assert not (tmp_path / "ws/.halo/evo").exists()


def told_by(program: str, *, settings: str, home: Path) -> list[str]:
    """What a process on a settings module says, with nothing of the test's own set."""
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    done = subprocess.run(
        [sys.executable, "-c", f"import django; django.setup()\n{program}"],
        cwd=PROJECT_ROOT,
        env={
            **environment,
            "DJANGO_SETTINGS_MODULE": f"halo_site.settings.{settings}",
            "HALO_HOME": str(home),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_wrapper_loads_no_admin_rest_or_web_part(tmp_path: Path) -> None:
    program = (
        "import sys, evolution.wrapper, evolution.management.commands.evo_wrapper\n"
        "print(*{name.split('.')[0] for name in sys.modules}, 'django.contrib.admin' in sys.modules)"
    )
    loaded = set(told_by(program, settings="slim", home=tmp_path))
    assert {"evolution", "False"} <= loaded
    assert not loaded & {"ninja", "unfold", "channels", "daphne", "django_q", "pydantic_ai"}


@pytest.mark.parametrize("settings", ["slim", "web"])
def test_sqlite_commits_a_move_with_full_sync(tmp_path: Path, settings: str) -> None:
    program = (
        "from django.db import connection\n"
        "cursor = connection.cursor()\n"
        "for name in ('synchronous', 'journal_mode'): print(*cursor.execute(f'PRAGMA {name}').fetchone())"
    )
    assert told_by(program, settings=settings, home=tmp_path) == ["2", "wal"]
