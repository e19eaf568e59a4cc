"""The house itself: which modules the import contracts must hold, whatever is added to them."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
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


# -- docs/evolution.md

CODE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*(?=:|$)")
SAID_BY = {
    "Refused": 0,
    "PhaseFailed": 0,
    "SpawnFailed": 0,
    "_refused": 0,
    "RollbackInspection": 1,
    "_held_by": 0,
    "NoActor": 0,
}
"""Calls that give a reason, and the place of its code among their arguments; what is no code is a sentence."""


def _codes_of(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        said: list[ast.expr | None] = []
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name == "Gate":
                said = list(node.args[1:2])
            elif name in SAID_BY:
                said = list(node.args[SAID_BY[name] : SAID_BY[name] + 1])
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "reason":
            said = [node.value]
        elif isinstance(node, ast.FunctionDef) and node.name == "reason":
            said = [found.value for found in ast.walk(node) if isinstance(found, ast.Return)]
        for value in said:
            start = value.values[0] if isinstance(value, ast.JoinedStr) and value.values else value
            if isinstance(start, ast.Constant) and (found := CODE.match(str(start.value))):
                yield found[0]


def test_every_reason_of_the_evolution_stands_in_its_docs_and_no_other() -> None:
    below = [ROOT / "workspaces" / "lock_file.py", ROOT / "core" / "db" / "acting_user.py"]
    paths = [*(ROOT / "evolution").rglob("*.py"), *below]
    source = {path: path.read_text() for path in paths}
    codes = {code for text in source.values() for code in _codes_of(ast.parse(text))}
    codes |= {f"{name}_too_long" for name in ("hint", "reason")}  # evolution.words makes them of two parts

    listed = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "evolution.md").read_text(), re.MULTILINE))

    assert {"level", "category_manual", "drift", "changed", "conflict", "auto_recheck"} <= codes
    assert codes - listed == set(), "docs/evolution.md does not say what these mean"
    assert listed - codes == set(), "docs/evolution.md explains what nothing says any more"
