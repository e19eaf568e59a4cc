"""What holds for every test: no real model, a home of its own, and nothing skipped in silence."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from tests.postgres import postgres_folder

# A loaded machine makes no test fail: time says nothing about what a property promises.
hypothesis_settings.register_profile("halo", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("halo")

IN_CI = os.environ.get("CI") == "true"

NEEDS = {
    "browser": (lambda: shutil.which("chromium") is not None, "chromium"),
    "sandbox": (lambda: shutil.which("bwrap") is not None, "bubblewrap"),
    "postgres": (lambda: postgres_folder() is not None, "postgresql"),
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.sharing_out import SharingOut

    return SharingOut(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for marker, (is_here, package) in NEEDS.items():
        if is_here():
            continue
        reason = f"{package} is missing; it is installed by: sudo apt-get install {package}"
        for item in items:
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))
    items.sort(key=_place)


def _place(item: pytest.Item) -> tuple[bool, float]:
    """The longest go first, so that at the end no worker is left alone with one.

    But before them those whose transaction is rolled back: the others empty every table when they end, also of
    what migrations put there (the ready groups).
    """
    database, timeout = item.get_closest_marker("django_db"), item.get_closest_marker("timeout")
    empties = database is not None and bool(database.kwargs.get("transaction"))
    empties = empties or "transactional_db" in getattr(item, "fixturenames", ())
    return empties, -float(timeout.args[0]) if timeout is not None else 0.0


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """CI skips nothing: a skipped test there is a failed run, however green the rest is."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if IN_CI and reporter is not None and exitstatus == 0 and reporter.stats.get("skipped"):
        reporter.write_line("CI skips nothing, and these tests were skipped (see above).", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session", autouse=True)
def no_real_model() -> None:
    """A test that would call a real model fails; processes it starts have no key to call one with.

    Tests that talk to a scripted server on loopback say so with ``models.override_allow_model_requests``.
    """
    from pydantic_ai import models

    models.ALLOW_MODEL_REQUESTS = False
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        del os.environ[name]


@pytest.fixture
def halo_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty ``HALO_HOME`` for a test that starts processes of its own."""
    home = tmp_path / "halo-home"
    monkeypatch.setenv("HALO_HOME", str(home))
    return home
