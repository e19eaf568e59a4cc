"""What a change of ``SKILL.md`` may do, key by key: the table of evolution.md in code. Pure; no Django."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.settings_file import scalar
from evolution.category import Category, Finding, Unreadable, changed_keys, manual, same
from workspaces.skill_md import parse_skill, split_frontmatter

PROMPT_KEYS = ("name", "description")
CAPABILITY_KEYS = ("disable-model-invocation", "user-invocable")
HALO_KEYS = ("command", "verbs", "requiresAccess", *CAPABILITY_KEYS)
"""Halo's own keys; each is read at the top level and, with ``halo-`` before it, under ``metadata``."""

VERB_KEYS = frozenset({"name", "desc", "requiresAccess"})
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Skill:
    """``head``: Halo's keys and the public format's at one level; ``body``: what ``activate_skill`` loads."""

    head: dict[Any, Any]
    body: str


def read_skill(data: bytes) -> Skill:
    """Raises Unreadable for whatever the loader of skills calls a fault, and for a key that contradicts itself."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"it doesn't parse: it is not UTF-8 text (byte {error.start})") from error
    if "\0" in text:
        raise Unreadable("it doesn't parse: it holds a NUL character")
    faults = parse_skill(data, skill_id="skill", where="SKILL.md").faults
    broken = next((fault for fault in faults if fault.severity == "fault"), None)
    if broken is not None:
        raise Unreadable(f"it doesn't parse: {broken}")
    document, body = split_frontmatter(data, where="SKILL.md", faults=[])
    if document is None:
        raise Unreadable("it doesn't parse: it has no frontmatter")
    return Skill(_flattened(document.value), body)


def _flattened(raw: dict[Any, Any]) -> dict[Any, Any]:
    """Halo's keys lifted out of ``metadata``; what is given in both places must agree."""
    head = {key: value for key, value in raw.items() if key != "metadata"}
    metadata = raw.get("metadata")
    if metadata is None:
        return head
    if not isinstance(metadata, dict):
        raise Unreadable("it doesn't parse: metadata is no mapping of keys")
    lifted: dict[str, Any] = {}
    for key, value in metadata.items():
        plain = _plain_key(key)
        target, name = (head, plain) if plain else (lifted, key)
        if target.get(name, _ABSENT) is not _ABSENT and not same(target[name], value):
            raise Unreadable(f"{name} is given twice in conflict, at the top and under metadata")
        target[name] = value
    return {**head, "metadata": lifted} if lifted else head


def _plain_key(key: Any) -> str | None:
    if not isinstance(key, str):
        return None
    known = {f"halo-{name}": name for name in HALO_KEYS}
    return known.get(key)


def skill_findings(before: bytes | None, after: bytes) -> list[Finding]:
    """``before`` None: there was no such skill."""
    if before is None:
        return [manual("a new skill")]
    try:
        old, new = read_skill(before), read_skill(after)
    except Unreadable as error:
        return [manual(str(error))]
    findings = [Finding(Category.PROMPT, "body")] if old.body != new.body else []
    for key in changed_keys(old.head, new.head):
        findings.append(_key_finding(key, old.head, new.head))
    if not _same_verb_access(old.head, new.head):
        findings.append(manual("the access that a verb requires"))
    return findings or [Finding(Category.CAPABILITY, "comments and layout of the frontmatter alone")]


def _key_finding(key: Any, old: dict[Any, Any], new: dict[Any, Any]) -> Finding:
    if key in PROMPT_KEYS:
        return Finding(Category.PROMPT, key)
    if key in CAPABILITY_KEYS or (key == "verbs" and _verbs(new) is not None):
        return Finding(Category.CAPABILITY, key)
    return manual(f"{key!s}"[:80])


def _same_verb_access(old: dict[Any, Any], new: dict[Any, Any]) -> bool:
    before, after = _verbs(old), _verbs(new)
    if before is None or after is None:
        return same(old.get("verbs"), new.get("verbs")) and same(
            old.get("requiresAccess"), new.get("requiresAccess")
        )
    return same(before, after)


def _verbs(head: dict[Any, Any]) -> dict[str, Any] | None:
    """``{verb: the access it requires, its own or else the skill's}``; None: they can't be read."""
    verbs = head.get("verbs")
    if isinstance(verbs, str):
        verbs = scalar(verbs)
    if verbs is None:
        return {}
    if not isinstance(verbs, list):
        return None
    access: dict[str, Any] = {}
    for verb in verbs:
        if not isinstance(verb, dict) or not verb.keys() <= VERB_KEYS:
            return None
        name = verb.get("name")
        if not isinstance(name, str) or name in access:
            return None
        own = verb.get("requiresAccess")
        access[name] = own if own is not None else head.get("requiresAccess")
    return access
