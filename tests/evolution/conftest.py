"""A workspace with rows, for every test of claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evolution.rows import Rows


@pytest.fixture
def rows(db: None, tmp_path: Path) -> Rows:
    return Rows.make(tmp_path)
