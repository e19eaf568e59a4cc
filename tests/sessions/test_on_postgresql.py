"""Queue, trees and debts once more, on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.again_on_postgresql import again_on_postgresql

FILES = (
    "test_queue.py",
    "test_reports.py",
    "test_sub_sessions.py",
    "test_relay.py",
    "test_tree_machine.py",
    "test_lock_order.py",
)


@pytest.mark.postgres
@pytest.mark.timeout(900)
def test_on_postgresql(tmp_path: Path) -> None:
    again_on_postgresql((f"tests/sessions/{name}" for name in FILES), folder=tmp_path)
