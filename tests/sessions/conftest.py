from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.processes import host_name
from sessions_app.create import create_session
from sessions_app.models import Session
from sessions_app.worker import Worker
from tests.sessions.working import at_work
from workspaces.models import Workspace

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


@pytest.fixture
def workspace(db: None, tmp_path: Path) -> Workspace:
    root = tmp_path / "workspace"
    (root / ".halo").mkdir(parents=True)
    return Workspace.objects.create(path=str(root.resolve()), host=host_name(), created_at=NOW)


@pytest.fixture
def session(workspace: Workspace) -> Session:
    return create_session(
        workspace=workspace, agent_id="helper", agent_name="Helper", access_level="full", now=NOW
    )


@pytest.fixture
def agent(workspace: Workspace) -> Path:
    """The agent ``helper`` with file tools; returns its folder."""
    folder = workspace.paths.halo / "agents" / "helper"
    folder.mkdir(parents=True)
    (folder / "agent.yaml").write_text("name: Helper\ntools: [file_read, glob]\n")
    (folder / "AGENT.md").write_text("You help.\n")
    return folder


@pytest.fixture
def working(tmp_path: Path) -> Iterator[Worker]:
    with at_work(tmp_path / "home") as worker:
        yield worker
