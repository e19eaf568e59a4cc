"""Everything about rows and claims once more, on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.again_on_postgresql import again_on_postgresql

GROUPS = {
    "rows": (
        "test_transitions.py",
        "test_ticker.py",
        "test_races.py",
        "test_state_machine.py",
        "test_tick_plans.py",
    ),
    "processes": ("test_wrapper_process.py", "test_wrapper_stopped.py"),
    "upkeep": ("test_auto_apply.py", "test_scenarios.py", "test_archive.py", "test_archive_kill.py"),
}
"""What one server sees; each about as long as the others, since they run side by side."""


@pytest.mark.postgres
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("group", GROUPS)
def test_on_postgresql(group: str, tmp_path: Path) -> None:
    again_on_postgresql((f"tests/evolution/{name}" for name in GROUPS[group]), folder=tmp_path)
