"""A workspace with the sample's documents, and a frozen conversation in which the agent answered at length."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.offline import harness
from tests.offline.harness import Attempt

Asking = Callable[[str, str], Awaitable[str]]
LONG = "Yes. We do. It is easy. Take the bus. Bring the part. It costs €4.50. Then wait. We call you."


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    shutil.copytree(harness.SAMPLE, tmp_path / "workspace")
    (tmp_path / "home" / "global").mkdir(parents=True)
    return tmp_path / "workspace"


@pytest.fixture
def ask(workspace: Path) -> Asking:
    """The answer to a question under rules that stand in the system prompt."""

    async def asking(question: str, rules: str = "") -> str:
        system = f"# Support\n\n{rules}\n\nWorkspace: {workspace}\nWorking directory: {workspace}"
        return await harness.ask(workspace, question, system, home=workspace.parent / "home")

    return asking


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    folder = tmp_path / "attempt"
    folder.mkdir()
    return harness.attempt(
        folder, [("Where is the workshop?", "In Birch Lane."), ("Can I send a tyre back?", LONG)]
    )
