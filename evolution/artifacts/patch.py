"""``patch.md`` and ``.skip.md``, the two ends of a draft."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import safe_yaml
from core.faults import kind_of, shown
from core.paths import UnsafePathError, checked_relative
from evolution.artifacts.files import AttemptFiles

MAX_OBSERVATION_CHARS = 2_000
MAX_PATCH_BYTES = 1_048_576
_FRONTMATTER = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)(.*)\Z", re.DOTALL)
_OBSERVATION = re.compile(r"^##[ \t]+Larger observation[ \t]*#*[ \t]*$", re.MULTILINE | re.IGNORECASE)
_NEXT_SECTION = re.compile(r"^##?[ \t]+\S", re.MULTILINE)
_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class PatchInvalid(ValueError):
    """The text says what is wrong in words for the run page."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """The agent that is asked, the person's message that was answered badly, and the one to try."""

    agent_id: str
    original_message: str
    test_message: str


@dataclass(frozen=True, slots=True)
class Patch:
    """``target`` is relative to ``.halo``; ``body`` says what and why."""

    target: str
    scenario: Scenario
    body: str


def read_patch(path: Path) -> Patch:
    """Raises FileNotFoundError, PatchInvalid."""
    with path.open("rb") as stream:
        data = stream.read(MAX_PATCH_BYTES + 1)
    if len(data) > MAX_PATCH_BYTES:
        raise PatchInvalid(f"it is longer than {MAX_PATCH_BYTES:,} bytes")
    try:
        return parse_patch(data.decode())
    except UnicodeDecodeError as error:
        raise PatchInvalid(f"it is not UTF-8 text (byte {error.start})") from error


def parse_patch(text: str) -> Patch:
    match = _FRONTMATTER.match(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    if match is None:
        raise PatchInvalid("it has no frontmatter between two lines of ---")
    head = _mapping(match[1])
    return Patch(target=_target(head), scenario=_scenario(head), body=match[2].strip())


def _mapping(text: str) -> dict[str, Any]:
    try:
        document = safe_yaml.load(text.encode("utf-8", "replace"), limit=MAX_PATCH_BYTES)
    except safe_yaml.YamlError as error:
        problem = " ".join(str(error).split())[:300]
        raise PatchInvalid(f"its frontmatter is not YAML: {problem}") from error
    for repeated in document.repeated:
        if repeated.conflicting:
            name = ".".join(repeated.path)
            raise PatchInvalid(f"its frontmatter gives {shown(name)} twice, with different values")
    if not isinstance(document.value, dict):
        raise PatchInvalid("its frontmatter is not a list of keys")
    return document.value


def _target(head: dict[str, Any]) -> str:
    target = _text(head, "target", "target")
    try:
        return checked_relative(target.strip().removeprefix("./").removeprefix(".halo/"))
    except UnsafePathError as error:
        raise PatchInvalid(f"its target can't be used: {error}") from error


def _scenario(head: dict[str, Any]) -> Scenario:
    found = head.get("testScenario")
    if not isinstance(found, dict):
        raise PatchInvalid("testScenario is missing; agentId, originalMessage and testMessage are wanted")
    agent_id = _text(found, "agentId", "testScenario.agentId").strip()
    if _AGENT_ID.fullmatch(agent_id) is None:
        raise PatchInvalid(f"testScenario.agentId is {shown(agent_id)}, which is no agent's id")
    if "originalMessage" not in found and "testMessage" not in found and "message" in found:
        message = _text(found, "message", "testScenario.message")
        return Scenario(agent_id, message, message)
    return Scenario(
        agent_id,
        _text(found, "originalMessage", "testScenario.originalMessage"),
        _text(found, "testMessage", "testScenario.testMessage"),
    )


def _text(values: dict[str, Any], key: str, name: str) -> str:
    value = values.get(key)
    if not isinstance(value, str) or not value.strip():
        plain = isinstance(value, str | int | float)
        found = "missing" if value is None else shown(value) if plain else kind_of(value)
        raise PatchInvalid(f"{name} is {found}; text is wanted")
    return value


def larger_observation(text: str) -> str:
    """The section ``## Larger observation`` without its heading, at most 2,000 characters; else empty."""
    match = _OBSERVATION.search(text.replace("\r\n", "\n"))
    if match is None:
        return ""
    rest = text.replace("\r\n", "\n")[match.end() :]
    following = _NEXT_SECTION.search(rest)
    return (rest[: following.start()] if following else rest).strip()[:MAX_OBSERVATION_CHARS]


def without_observation(text: str) -> str:
    """``text`` up to its larger observation: the reason of a skip."""
    match = _OBSERVATION.search(text)
    return (text[: match.start()] if match else text).strip()


def read_observation(folder: Path) -> str:
    """The larger observation of an attempt, whatever became of the draft; the newer file is asked first."""
    files = AttemptFiles(folder)
    found = [path for path in (files.patch, files.skip) if path.is_file()]
    for path in sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True):
        text = path.read_bytes()[:MAX_PATCH_BYTES].decode(errors="replace")
        if observation := larger_observation(text):
            return observation
    return ""
