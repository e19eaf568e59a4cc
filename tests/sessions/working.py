"""A process's worker, as in a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.paths import HaloHome
from sessions_app.worker import Worker

PATIENCE_SEC = 30.0


@contextmanager
def at_work(home: Path) -> Iterator[Worker]:
    """It is told of everything in this process; its own looks at the database come when a test is long over."""
    worker = Worker(home=HaloHome(home), look_sec=1000)
    worker.start()
    yield worker
    assert worker.close(wait_sec=PATIENCE_SEC)
