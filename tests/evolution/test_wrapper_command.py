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
