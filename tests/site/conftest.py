"""Tests of the web part: each begins with nobody's requests counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.cache import cache

from sessions_app.worker import Worker
from tests.sessions.working import at_work


@pytest.fixture(autouse=True)
def _nobody_has_asked_yet() -> None:
    """The counts of the API's throttle outlive a test; users of two tests have the same numbers."""
    cache.clear()


@pytest.fixture
def working(halo_home: Path) -> Iterator[Worker]:
    """This process's worker, as in a server."""
    with at_work(halo_home) as worker:
        yield worker
