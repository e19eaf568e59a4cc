"""The same on PostgreSQL, on a server that lives as long as the measurement."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from bench import pipeline
from bench.measures import Measure
from tests.postgres import postgres_server


def measure() -> list[Measure]:
    with tempfile.TemporaryDirectory() as folder, postgres_server(Path(folder)) as url:
        os.environ["DATABASE_URL"] = url
        return pipeline.measures("PostgreSQL", wrapper_limit=1.0)
