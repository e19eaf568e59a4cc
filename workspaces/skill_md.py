"""``skills/<id>/SKILL.md``: frontmatter and body, in the public Agent Skills format with Halo's own keys.

Halo's keys are read at the top level and, as ``halo-<key>``, under ``metadata``; both at once with different
values is a fault. A skill with a fault stays listed, is marked broken and counts as restricted: a restriction
that can't be read is not an open door.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.bounded_read import UnreadableFileError
from core.faults import Fault, kind_of
from core.paths import UnsafePathError
from core.safe_yaml import Document, YamlError, load_small
from core.settings_file import scalar
from workspaces.fields import Fields
from workspaces.overrides import Folder, Scope, decoded

ACCESS_LEVELS = ("full", "workspace", "readonly")
MAX_BODY_BYTES = 1024 * 1024

_COMMAND = re.compile(r"/?[a-z0-9][a-z0-9_-]{0,63}")
_ARGUMENT = re.compile(r"\$(ARGUMENTS\b|[1-9][0-9]?)")


@dataclass(frozen=True, slots=True)
class Verb:
    """``requires_access`` is the effective level: the verb's own, else the skill's."""

    name: str
    description: str = ""
    requires_access: str | None = None


@dataclass(frozen=True, slots=True)
class SkillConfig:
    """One skill. ``requires_access`` None: open to every session; a broken skill needs ``full``."""

    id: str
    scope: Scope
    file: str
    name: str
    description: str = ""
    license: str = ""
    compatibility: str = ""
    allowed_tools: tuple[str, ...] = ()
    command: str | None = None
    verbs: tuple[Verb, ...] = ()
    requires_access: str | None = None
    disable_model_invocation: bool = False
    user_invocable: bool = True
    locked: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    body: str = ""
    faults: tuple[Fault, ...] = ()

    @property
    def broken(self) -> bool:
        return any(fault.severity == "fault" for fault in self.faults)

    @property
    def restricted(self) -> bool:
        return self.broken or self.requires_access is not None


def load_skill(folder: Folder) -> SkillConfig:
    """The skill in ``folder``, with its faults; never raises for what the file holds."""
    where = folder.shown("SKILL.md")
    faults: list[Fault] = []
    try:
        data = folder.read("SKILL.md")
    except (UnreadableFileError, UnsafePathError, OSError) as error:
        faults.append(Fault(where, None, "", str(error), "a readable file"))
        data = None
    else:
        if data is None:
            faults.append(Fault(where, None, "", "no file", "a SKILL.md with frontmatter and a body"))
    if data is None:
        return SkillConfig(
            folder.id, folder.scope, where, folder.id, requires_access="full", faults=tuple(faults)
        )
    return parse_skill(data, skill_id=folder.id, scope=folder.scope, where=where, faults=faults)


def parse_skill(
    data: bytes, *, skill_id: str, scope: Scope = "workspace", where: str, faults: list[Fault] | None = None
) -> SkillConfig:
    """A SKILL.md by its bytes (also a draft's); faults are in the result."""
    found = [] if faults is None else faults
    if len(data) > MAX_BODY_BYTES:
        found.append(Fault(where, None, "", f"{len(data)} bytes", f"at most {MAX_BODY_BYTES}"))
        return SkillConfig(skill_id, scope, where, skill_id, requires_access="full", faults=tuple(found))
    document, body = split_frontmatter(data, where=where, faults=found)
    values = _values(Fields(document.value, document, where, found, first_line=2)) if document else {}
    values["name"] = values.get("name") or skill_id
    if any(fault.severity == "fault" for fault in found):
        values["requires_access"] = "full"
    return SkillConfig(skill_id, scope, where, body=body, faults=tuple(found), **values)


def split_frontmatter(data: bytes, *, where: str, faults: list[Fault]) -> tuple[Document | None, str]:
    """The mapping between the two ``---`` lines, and the rest. None and a fault when it can't be read."""
    text = decoded(data, where, faults)
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        faults.append(
            Fault(where, 1, "", "no frontmatter", "'---' as the first line, then name and description")
        )
        return None, text
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        faults.append(Fault(where, 1, "", "frontmatter without an end", "a line '---' after it"))
        return None, ""
    body = "\n".join(lines[end + 1 :]).lstrip("\n")
    try:
        document = load_small("\n".join(lines[1:end]).encode())
    except YamlError as error:
        line = None if error.line is None else error.line + 1
        faults.append(Fault(where, line, "", error.problem, "YAML (a text with ': ' in it needs quotes)"))
        return None, body
    if not isinstance(document.value, dict):
        faults.append(Fault(where, 2, "", kind_of(document.value), "a mapping with name and description"))
        return None, body
    for repeated in document.repeated:
        faults.append(
            Fault(
                where,
                repeated.line + 1,
                ".".join(repeated.path),
                "the key twice" + (", with different values" if repeated.conflicting else ""),
                "it once",
                "fault" if repeated.conflicting else "warning",
            )
        )
    return document, body


def expand_arguments(body: str, arguments: str) -> str:
    """The body with ``$1``.. and ``$ARGUMENTS`` replaced by what followed the slash command.

    Replaced in one pass, so that a ``$2`` inside an argument stays text; a missing argument is empty.
    """
    words = arguments.split()

    def value(match: re.Match[str]) -> str:
        if match[1] == "ARGUMENTS":
            return arguments
        position = int(match[1]) - 1
        return words[position] if position < len(words) else ""

    return _ARGUMENT.sub(value, body)


def _values(fields: Fields) -> dict[str, Any]:
    metadata = fields.mapping("metadata")
    own = _Halo(fields, metadata)
    requires_access = own.fields("requiresAccess").choice(own.key("requiresAccess"), ACCESS_LEVELS)
    command = own.fields("command").text(own.key("command")) or None
    if command is not None and _COMMAND.fullmatch(command) is None:
        own.fields("command").report(own.key("command"), repr(command)[:60], "a word such as review")
    values: dict[str, Any] = {
        "name": fields.text("name", required=True),
        "description": fields.text("description", required=True),
        "license": fields.text("license"),
        "compatibility": fields.text("compatibility"),
        "allowed_tools": _tools(fields),
        "command": command and command.removeprefix("/"),
        "requires_access": requires_access,
        "verbs": _verbs(own.fields("verbs"), own.key("verbs"), requires_access),
        "disable_model_invocation": own.flag("disable-model-invocation", default=False),
        "user_invocable": own.flag("user-invocable", default=True),
        "locked": _locked(fields, metadata),
        "metadata": dict(metadata.everything()) if metadata is not None else {},
    }
    own.check_conflicts()
    values["extra"] = fields.warn_unknown()
    return values


def _locked(top: Fields, metadata: Fields | None) -> bool:
    """``halo-locked`` in either place; the public format's metadata holds texts, so ``"true"`` counts there."""
    if metadata is not None and metadata.raw("halo-locked") == "true":
        return True
    below = metadata is not None and metadata.flag("halo-locked", default=False)
    return top.flag("halo-locked", default=False) or below


class _Halo:
    """Halo's own keys, wherever they stand: the top level first, then ``metadata`` with the prefix."""

    def __init__(self, top: Fields, metadata: Fields | None) -> None:
        self._top = top
        self._metadata = metadata
        self._asked: list[str] = []

    def _prefixed(self, key: str) -> bool:
        return self._metadata is not None and not self._top.has(key) and self._metadata.has(f"halo-{key}")

    def fields(self, key: str) -> Fields:
        self._asked.append(key)
        return self._metadata if self._metadata is not None and self._prefixed(key) else self._top

    def key(self, key: str) -> str:
        return f"halo-{key}" if self._prefixed(key) else key

    def flag(self, key: str, *, default: bool) -> bool:
        """The public format's metadata holds texts only, so ``"true"`` counts as true there."""
        fields, name = self.fields(key), self.key(key)
        if self._prefixed(key) and fields.raw(name) in ("true", "false"):
            return bool(fields.raw(name) == "true")
        return fields.flag(name, default=default)

    def check_conflicts(self) -> None:
        for key in self._asked:
            if self._metadata is None or not self._top.has(key) or not self._metadata.has(f"halo-{key}"):
                continue
            if self._top.raw(key) != self._metadata.raw(f"halo-{key}"):
                self._top.report(key, f"another value than metadata.halo-{key}", "one of the two")


def _tools(fields: Fields) -> tuple[str, ...]:
    """``allowed-tools``: the public format writes them as one text, a list is read as well."""
    if isinstance(fields.raw("allowed-tools"), str):
        return tuple(fields.text("allowed-tools").replace(",", " ").split())
    return fields.texts("allowed-tools")


def _verbs(fields: Fields, key: str, skill_access: str | None) -> tuple[Verb, ...]:
    """A list of mappings; under ``metadata``, whose values are texts, the same list written as YAML text."""
    value = fields.raw(key)
    if value is None:
        return ()
    if isinstance(value, str) and key.startswith("halo-"):
        value = scalar(value)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        fields.report(key, kind_of(value), "a list of mappings with name, desc and requiresAccess")
        return ()
    verbs = []
    for index, item in enumerate(value):
        verb = fields.below(item, key, str(index))
        access = verb.choice("requiresAccess", ACCESS_LEVELS, default=skill_access)
        verbs.append(Verb(verb.text("name", required=True), verb.text("desc"), access))
        verb.warn_unknown()
    return tuple(verbs)
