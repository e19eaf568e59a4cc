"""The workspace that ships with Halo: its copy for a demo, and the conversation that is played in it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from core import atomic
from core.paths import HaloHome

SAMPLE = Path(__file__).parent / "sample"


@dataclass(frozen=True, slots=True)
class Script:
    agent: str
    messages: tuple[str, ...]
    hint: str
    ask_again: str


def read_script() -> Script:
    value = yaml.safe_load((SAMPLE / "conversation.yaml").read_text(encoding="utf-8"))
    return Script(value["agent"], tuple(value["messages"]), value["hint"], value["ask_again"])


def fresh_copy(home: HaloHome) -> Path:
    """A new copy beside ``HALO_HOME`` (agents may not work inside it): ``halo-demo/shop-1``, ``shop-2``, ...

    The folder's name is what every page calls the workspace.
    """
    parent = home.root.parent / "halo-demo"
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        folder = parent / f"shop-{number}"
        try:
            folder.mkdir()
            break
        except FileExistsError:
            number += 1
    shutil.copytree(SAMPLE / "workspace", folder, dirs_exist_ok=True)
    return folder


def use_model(workspace: Path, *, agent: str, model: dict[str, Any]) -> None:
    """Put ``model`` into the agent's ``agent.yaml``."""
    path = workspace / ".halo" / "agents" / agent / "agent.yaml"
    value = yaml.safe_load(path.read_text(encoding="utf-8"))
    value["model"] = model
    atomic.write_text(path, yaml.safe_dump(value, sort_keys=False, allow_unicode=True))
