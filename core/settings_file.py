"""The settings of a machine and of a workspace: read, resolved, explained.

Order: workspace file, global file, default. Reading never fails: what can't be used is a fault and the next
source counts. ``core.settings_save`` writes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from core import clock
from core.bounded_read import UnreadableFileError, read_bounded
from core.faults import Fault, kind_of, shown
from core.paths import HaloHome, UnsafePathError, WorkspacePaths, inside
from core.safe_yaml import MAX_BYTES, Document, YamlError, load
from core.setting import Setting
from core.settings_schema import PROVIDER_KEY_VARIABLES, SCHEMA, near_keys, setting_of

Source = Literal["workspace", "global", "default"]

_PLACEHOLDER = re.compile(r"<<([A-Za-z_][A-Za-z0-9_]*)>>")
_SETTLED_SEC = 0.1

PROTECTED_VARIABLES = frozenset(
    {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "HALO_NODE_TOKEN"}
    | {name for names in PROVIDER_KEY_VARIABLES.values() for name in names}
)
_PROTECTED_PIECES = (
    "KEY",
    "TOKEN",
    "SECRET",
    "PASS",
    "PWD",
    "CREDENTIAL",
    "AUTH",
    "COOKIE",
    "HEADERS",
    "DSN",
    "_PAT",
    "_URL",
    "_URI",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the files said when ``load`` was called; loading again is how a change is seen, and is cheap."""

    home: HaloHome
    workspace: WorkspacePaths | None
    faults: tuple[Fault, ...]
    _values: Mapping[str, Any] = field(repr=False)
    _sources: Mapping[str, Source] = field(repr=False)
    _secret_variables: frozenset[str] = frozenset()

    @classmethod
    def load(cls, home: HaloHome, workspace: WorkspacePaths | None = None) -> Settings:
        """Never raises for what the files hold; see ``faults``."""
        values: dict[str, Any] = {}
        sources: dict[str, Source] = {}
        faults: list[Fault] = []
        secret_variables: set[str] = set()
        layers: list[tuple[Source, Path]] = [("global", home.settings_file)]
        if workspace is not None:
            layers.append(("workspace", workspace.settings_file))
        for source, path in layers:
            document = _document(path, source, workspace, faults)
            secret_variables.update(_secret_variables(document))
            for key, value in _usable(document, path, source, faults):
                values[key] = value
                sources[key] = source
        return cls(home, workspace, tuple(faults), values, sources, frozenset(secret_variables))

    def get(self, key: str) -> Any:
        """The value in force. Raises UnknownSettingError for a key outside the schema."""
        setting = setting_of(key)
        if key in self._values:
            return self._values[key]
        if setting.derived is not None:
            return setting.derived(self.get)
        return list(setting.default) if setting.kind == "list" else setting.default

    def source(self, key: str) -> Source:
        """Where the value in force comes from."""
        setting_of(key)
        return self._sources.get(key, "default")

    def secret_variables(self) -> frozenset[str]:
        """The environment variables that secrets are read from by ``<<NAME>>``; no child may inherit them."""
        return self._secret_variables

    def public(self, key: str) -> Any:
        """The value as it may be shown: of a secret only whether it is set."""
        value = self.get(key)
        if setting_of(key).secret:
            return "(set, hidden)" if value else "(not set)"
        return value


def read_document(path: Path) -> Document:
    """The file as it is now; an absent one is empty. Raises YamlError or UnreadableFileError.

    Parsed once per change: a file that was written a moment ago is read anew each time, because a second
    write within the clock's grain leaves size and time as they were.
    """
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return Document({})
    except OSError as error:
        raise UnreadableFileError(f"can't be opened: {error.strerror}") from error
    signature = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    cached = _cache.get(path)
    if cached is not None and cached[0] == signature:
        return cached[1]
    data = read_bounded(path, limit=MAX_BYTES)
    document = load(data or b"")
    if document.value is None:
        document = Document({})
    if clock.now().timestamp() - max(status.st_mtime, status.st_ctime) > _SETTLED_SEC:
        _cache[path] = (signature, document)
    return document


_cache: dict[Path, tuple[tuple[int, int, int, int], Document]] = {}


def _document(path: Path, source: Source, workspace: WorkspacePaths | None, faults: list[Fault]) -> Document:
    try:
        if source == "workspace" and workspace is not None:
            inside(workspace.root, path.relative_to(workspace.root).as_posix())
        document = read_document(path)
    except YamlError as error:
        faults.append(
            Fault(str(path), error.line, "", error.problem, "YAML; nothing in this file is in force")
        )
        return Document({})
    except (UnreadableFileError, UnsafePathError, OSError) as error:
        faults.append(Fault(str(path), None, "", str(error), "a readable file; nothing in it is in force"))
        return Document({})
    if not isinstance(document.value, dict):
        found = kind_of(document.value)
        faults.append(Fault(str(path), 1, "", found, "a mapping that starts with a key such as 'general:'"))
        return Document({})
    for repeated in document.repeated:
        faults.append(
            Fault(
                str(path), repeated.line, ".".join(repeated.path), "the key twice", "it once; the last counts"
            )
        )
    return document


def _usable(document: Document, path: Path, source: Source, faults: list[Fault]) -> Iterator[tuple[str, Any]]:
    """Every known key whose value is in order; a fault for each other one."""
    for key_path, raw in _leaves(document.value, ()):
        key = ".".join(key_path)
        line = document.line(*key_path)
        setting = SCHEMA.get(key)
        if setting is None:
            faults.append(_unknown(key, line, path, raw))
            continue
        if setting.is_global and source == "workspace":
            wanted = "it in the machine's own settings file, the only one it is read from"
            faults.append(Fault(str(path), line, key, "a global key", wanted))
            continue
        value, missing = _substituted(setting, raw, protected=source == "workspace")
        replaced = value != raw
        if missing is not None:
            faults.append(Fault(str(path), line, key, f"<<{missing[0]}>>", missing[1]))
        problem = setting.problem(value)
        if problem is None:
            yield key, value
        elif missing is None:
            found = f"{shown(raw)}, whose value doesn't fit" if replaced else problem
            faults.append(Fault(str(path), line, key, found, f"{setting.wanted}; the default is used"))


def _secret_variables(document: Document) -> Iterator[str]:
    for path, raw in _leaves(document.value, ()):
        setting = SCHEMA.get(".".join(path))
        match = _PLACEHOLDER.fullmatch(raw) if isinstance(raw, str) else None
        if setting is not None and setting.secret and match is not None:
            yield match[1]


def _unknown(key: str, line: int | None, path: Path, raw: Any) -> Fault:
    """A prefix of known keys that holds a plain value is a fault, any other unknown key a warning."""
    if any(known.startswith(f"{key}.") for known in SCHEMA):
        return Fault(str(path), line, key, kind_of(raw), "a mapping with keys below it")
    near = near_keys(key)
    hint = f"a known key ({' or '.join(near)}?)" if near else "a known key"
    return Fault(str(path), line, shown(key).strip("'"), "an unknown key", f"{hint}; it is kept", "warning")


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Paths and values: down to a known key, or to where the file has no further mapping."""
    if not isinstance(value, dict) or ".".join(path) in SCHEMA:
        yield path, value
        return
    for key, item in value.items():
        yield from _leaves(item, (*path, str(key)))


def _substituted(setting: Setting, raw: Any, *, protected: bool) -> tuple[Any, tuple[str, str] | None]:
    """``raw`` with ``<<NAME>>`` replaced; the second part: a variable that wasn't, and what is wanted."""
    if isinstance(raw, list) and setting.kind == "list":
        pairs = [_substituted_text(item, protected=protected) for item in raw]
        return [value for value, _ in pairs], next((missing for _, missing in pairs if missing), None)
    value, missing = _substituted_text(raw, protected=protected)
    if value is not raw and setting.kind in ("integer", "boolean", "list"):
        value = scalar(value)
    return value, missing


def is_protected(name: str) -> bool:
    """Whether a workspace's settings may not name this variable.

    Such a file comes with a cloned repository, and its values end in prompts. Addresses count as well, since
    passwords are often part of them.
    """
    return name in PROTECTED_VARIABLES or any(piece in name.upper() for piece in _PROTECTED_PIECES)


def _substituted_text(raw: Any, *, protected: bool) -> tuple[Any, tuple[str, str] | None]:
    match = _PLACEHOLDER.fullmatch(raw) if isinstance(raw, str) else None
    if match is None:
        return raw, None
    name = match[1]
    if protected and is_protected(name):
        return raw, (name, "another value: a workspace can't read this variable")
    value = os.environ.get(name)
    if value is None:
        return raw, (name, f"the environment variable {name} to be set; the text stays as it is")
    return value, None


def scalar(text: str) -> Any:
    """Text from the environment or the command line as YAML reads it; itself when it isn't YAML."""
    try:
        return load(text.encode("utf-8", "surrogateescape")).value
    except (YamlError, yaml.YAMLError):
        return text
