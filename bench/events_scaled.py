"""The same on PostgreSQL with the channel layer on Valkey, on servers that live as long as the measurement."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from bench import events
from bench.measures import Measure
from tests.postgres import postgres_server
from tests.valkey import valkey_server


def measure() -> list[Measure]:
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres_server(Path(folder)) as database,
        valkey_server(Path(folder) / "valkey") as redis,
    ):
        os.environ["DATABASE_URL"], os.environ["REDIS_URL"] = database, redis
        return events.measures("scaled", commit_limit=60.0)
