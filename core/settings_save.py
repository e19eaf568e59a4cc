"""Changing a settings file: all changes are in order and written, or none is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from core import atomic
from core.bounded_read import UnreadableFileError
from core.folders import exclusive
from core.paths import HaloHome, UnsafePathError, WorkspacePaths, inside
from core.safe_yaml import YamlError, unshared
from core.settings_file import read_document
from core.settings_schema import UnknownSettingError, setting_of

UNSET = object()
"""As a value in ``save``: take the key out of the file, so that the next source counts."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """``wanted`` is the bound; ``found`` the value (of a secret its kind)."""

    key: str
    found: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.key}: {self.found} can't be saved; wanted {self.wanted}."


class SettingsRefusedError(Exception):
    """Nothing was written; ``refusals`` says for each key why (HTTP 400)."""

    def __init__(self, *refusals: Refusal) -> None:
        super().__init__(" ".join(str(refusal) for refusal in refusals))
        self.refusals = refusals


def save(
    home: HaloHome, changes: Mapping[str, Any], *, workspace: WorkspacePaths | None = None
) -> tuple[str, ...]:
    """Write ``changes`` into the workspace's file when one is given, else into the machine's.

    Returns the keys whose value changed. Everything else in the file stays, unknown keys included; comments
    and layout don't. Raises SettingsRefusedError, and OSError when the file can't be written.
    """
    refusals = [r for key, value in changes.items() if (r := _refusal(key, value, workspace)) is not None]
    if refusals:
        raise SettingsRefusedError(*refusals)
    path = _target(home, workspace)
    with exclusive(path.parent):  # two people who change different keys both keep theirs
        tree = _tree(path)
        changed = [key for key, value in changes.items() if _put(tree, key.split("."), value)]
        if changed:
            text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True) if tree else ""
            atomic.write_text(path, text, mode=0o600 if workspace is None else 0o644)
    return tuple(changed)


def _refusal(key: str, value: Any, workspace: WorkspacePaths | None) -> Refusal | None:
    try:
        setting = setting_of(key)
    except UnknownSettingError as error:
        near = f" such as {' or '.join(error.near)}" if error.near else ""
        return Refusal(key, "an unknown key", f"a key of the schema{near}")
    if setting.is_global and workspace is not None:
        return Refusal(key, "a global key", "it in the machine's own settings file")
    if value is UNSET or _is_placeholder(value):
        return None
    problem = setting.problem(value)
    return None if problem is None else Refusal(key, problem, setting.wanted)


def _is_placeholder(value: Any) -> bool:
    return (
        isinstance(value, str)
        and value.startswith("<<")
        and value.endswith(">>")
        and value[2:-2].isidentifier()
    )


def _target(home: HaloHome, workspace: WorkspacePaths | None) -> Path:
    """The file itself when a person keeps a symlink there; a workspace's must not lead out of it."""
    if workspace is None:
        home.secrets.mkdir(parents=True, exist_ok=True, mode=0o700)
        home.secrets.chmod(0o700)
        return home.settings_file.resolve()
    path = workspace.settings_file
    try:
        return inside(workspace.root, path.relative_to(workspace.root).as_posix())
    except UnsafePathError as error:
        raise SettingsRefusedError(Refusal("", str(error), "a settings file inside the workspace")) from error


def _tree(path: Path) -> dict[Any, Any]:
    """The file's content to change; refused when it can't be read whole, so that nothing in it is lost."""
    mend = f"a file that can be read; mend {path} first"
    try:
        document = read_document(path)
    except (YamlError, UnreadableFileError) as error:
        raise SettingsRefusedError(Refusal("", f"{path}: {error}", mend)) from error
    conflicts = [".".join(repeated.path) for repeated in document.repeated if repeated.conflicting]
    if conflicts:
        found = f"{path}: {', '.join(conflicts)} given twice with different values"
        raise SettingsRefusedError(Refusal("", found, mend))
    if not isinstance(document.value, dict):
        raise SettingsRefusedError(Refusal("", f"{path}: no mapping", mend))
    return unshared(document.value)


def _put(tree: dict[Any, Any], path: list[str], value: Any) -> bool:
    """Set or remove one key; whether that changed anything. Mappings left empty by a removal go."""
    head, *rest = path
    if not rest:
        if value is UNSET:
            return tree.pop(head, UNSET) is not UNSET
        before = tree.get(head, UNSET)
        tree[head] = value
        return before is UNSET or before != value or type(before) is not type(value)
    child = tree.get(head)
    if not isinstance(child, dict):
        if value is UNSET:
            return False
        if child is not None:
            key = head
            raise SettingsRefusedError(Refusal(key, "a plain value", "a mapping; mend the file first"))
        child = tree[head] = {}
    changed = _put(child, rest, value)
    if value is UNSET and not child:
        del tree[head]
    return changed
