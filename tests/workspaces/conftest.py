"""A workspace and a machine-wide folder to write prompt files into."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.paths import HaloHome
from workspaces import overrides
from workspaces.overrides import Surface
from workspaces.publish_lock import SurfaceFiles

Write = Callable[[str, str | bytes], Path]


def writer(folder: Path) -> Write:
    def write(rel: str, content: str | bytes) -> Path:
        path = folder / rel
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def home(tmp_path: Path) -> HaloHome:
    home = HaloHome(tmp_path / "home")
    home.global_folder.mkdir(parents=True)
    return home


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    (root / ".halo").mkdir(parents=True)
    return root


@pytest.fixture
def in_workspace(root: Path) -> Write:
    """Writes below the workspace's root, so ``.halo/...`` and ``AGENTS.md`` alike."""
    return writer(root)


@pytest.fixture
def in_global(home: HaloHome) -> Write:
    return writer(home.global_folder)


@pytest.fixture
def in_builtin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Stands in for the shipped files, so that a test sees only what it wrote."""
    folder = tmp_path / "platform"
    folder.mkdir()
    monkeypatch.setattr(overrides, "PLATFORM_FOLDER", folder)
    return writer(folder)


@pytest.fixture
def surface(root: Path, home: HaloHome, in_builtin: Write) -> Surface:
    return Surface(SurfaceFiles(root / ".halo"), home.global_folder)
