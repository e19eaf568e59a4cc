"""What a change of ``agent.yaml`` may do, key by key: the table of evolution.md in code. Pure; no Django."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from evolution.category import Category, Finding, Unreadable, changed_keys, manual, read_mapping
from workspaces.agent_yaml import parse_agent

CAPABILITY_KEYS: dict[str, tuple[type, ...]] = {"description": (str,), "system_prompt": (str,)}
"""Key and the types it may have; another type is nothing the table speaks of, so it is manual."""

CONTEXT_KEYS: dict[str, tuple[type, ...]] = {"maxTokens": (int,), "compressAt": (int, float)}
MODEL_KEYS: dict[str, tuple[type, ...]] = {
    "id": (str,),
    "maxTokens": (int,),
    "promptCaching": (bool, str),
    "verbosity": (str,),
}
THINKING_KEYS: dict[str, tuple[type, ...]] = {"enabled": (bool,), "effort": (str,)}
KNOWN_TOOLS = frozenset(
    {
        "file_read",
        "file_write",
        "file_edit",
        "file_list",
        "glob",
        "grep",
        "view_image",
        "activate_skill",
        "list_agents",
        "query_agent",
        "start_session",
        "session_list",
        "query_session",
        "interrupt_session",
        "stop_session",
        "archive_session",
        "get_session_output",
        "continue_task",
    }
)
"""Tools that can't carry anything out of the machine. A name that isn't here counts as one that can."""

_EGRESS = re.compile(r"shell_exec|web_fetch|a2a_send|relay_\w*|node_\w*")


def read_agent(data: bytes) -> dict[Any, Any]:
    """Raises Unreadable for whatever the loader of agents calls a fault."""
    _document, faults = parse_agent(data, where="agent.yaml")
    broken = next((fault for fault in faults if fault.severity == "fault"), None)
    if broken is not None:
        raise Unreadable(f"it doesn't parse: {broken}")
    return read_mapping(data)


def agent_findings(before: bytes | None, after: bytes) -> list[Finding]:
    """``before`` None: the agent had no ``agent.yaml``. Empty list: nothing but layout and comments changed."""
    if before is None:
        return [manual("a new agent.yaml")]
    try:
        old, new = read_mapping(before), read_agent(after)
    except Unreadable as error:
        return [manual(str(error))]
    findings: list[Finding] = []
    for key in changed_keys(old, new):
        findings += _key_findings(key, old.get(key), new.get(key))
    return findings or [Finding(Category.CAPABILITY, "comments and layout alone")]


def _key_findings(key: Any, old: Any, new: Any) -> list[Finding]:
    if key in _SPECIAL:
        return _SPECIAL[key](old, new)
    if key in CAPABILITY_KEYS and _fits(new, CAPABILITY_KEYS[key]):
        return [Finding(Category.CAPABILITY, str(key))]
    return [manual(f"{key!s}"[:80])]


def _fits(value: Any, types: tuple[type, ...]) -> bool:
    """None is a key that was taken out. A bool is no number, though Python says so."""
    return value is None or (isinstance(value, types) and (bool in types or not isinstance(value, bool)))


def _below(
    name: str,
    keys: dict[str, tuple[type, ...]],
    nested: Mapping[str, Callable[[Any, Any], list[Finding]]] = MappingProxyType({}),
) -> Callable[[Any, Any], list[Finding]]:
    def findings(old: Any, new: Any) -> list[Finding]:
        old, new = old if old is not None else {}, new if new is not None else {}
        if not isinstance(old, dict) or not isinstance(new, dict):
            return [manual(f"{name} is no mapping")]
        found = [Finding(Category.CAPABILITY, name)]
        for key in changed_keys(old, new):
            if key in nested:
                found += nested[key](old.get(key), new.get(key))
                continue
            harmless = key in keys and _fits(new.get(key), keys[key])
            label = f"{name}.{key!s}"[:80]
            found.append(Finding(Category.CAPABILITY, label) if harmless else manual(label))
        return found

    return findings


def _names(value: Any) -> list[str] | None:
    """A list of names; absent is empty; None: it is something else."""
    if value is None:
        return []
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    return None


def _tools(old: Any, new: Any) -> list[Finding]:
    before, after = _names(old), _names(new)
    if before is None or after is None:
        return [manual("tools is no list of names")]
    found = [Finding(Category.CAPABILITY, "tools")]
    for name in sorted(set(after) - set(before)):
        if _EGRESS.fullmatch(name):
            found.append(manual(f"tools adds {name}, which reaches out of the workspace"))
        elif name not in KNOWN_TOOLS:
            found.append(manual(f"tools adds {name[:60]!r}, which is no known tool"))
    return found


def _skills(old: Any, new: Any) -> list[Finding]:
    before, after = _names(old), _names(new)
    if before is None or after is None:
        return [manual("skills is no list of names")]
    added = sorted(set(after) - set(before))
    return [manual(f"skills adds {name[:60]}") for name in added] or [Finding(Category.CAPABILITY, "skills")]


_SPECIAL: dict[Any, Callable[[Any, Any], list[Finding]]] = {
    "context": _below("context", CONTEXT_KEYS),
    "model": _below("model", MODEL_KEYS, {"thinking": _below("model.thinking", THINKING_KEYS)}),
    "tools": _tools,
    "skills": _skills,
}
