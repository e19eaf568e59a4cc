"""The house itself: which modules the import contracts must hold, whatever is added to them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import get_args

from pydantic import BaseModel

ROOT = Path(__file__).resolve().parents[2]


def _contract(identifier: str) -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    return next(contract for contract in contracts if contract["id"] == identifier)


def test_every_module_of_core_outside_its_database_part_is_held_free_of_django() -> None:
    held = set(_contract("no-django")["source_modules"])
    modules = {
        f"core.{path.stem}"
        for path in (ROOT / "core").iterdir()
        if path.name not in ("__init__.py", "db") and not path.name.startswith("__pycache__")
    }

    assert modules - held == set()


def test_every_frame_of_the_socket_is_described() -> None:
    from core import frames

    text = (ROOT / "docs" / "websocket.md").read_text()
    models = [value for value in vars(frames).values() if isinstance(value, type)]
    types = {
        get_args(model.model_fields["type"].annotation)[0]
        for model in models
        if issubclass(model, BaseModel) and "type" in model.model_fields
    }

    assert {"subscribe", "event", "reload", "error"} <= types
    assert {name for name in types if f'{{"type": "{name}"' not in text} == set()
