"""What differs between two prompt surfaces, and how far each change reaches. Pure; no Django.

The categories are the table of evolution.md, "Auto-apply". What no rule speaks of is manual.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from core.texts import is_one_line
from evolution.agent_changes import agent_findings
from evolution.category import Category, Finding, Unreadable, is_off, manual, read_mapping, strictest
from evolution.skill_changes import skill_findings
from workspaces.overrides import MAX_PROMPT_BYTES

__all__ = ["Category", "Change", "Content", "NoFile", "Surface", "classify", "hides", "unit", "units"]


class NoFile(Enum):
    """Stands where no content is: for a symlink, which is never looked at, and for an override folder that
    holds no file at all, which hides the one below it all the same (somebody has switched it off)."""

    SYMLINK = "symlink"
    FOLDER = "folder"


Content = bytes | NoFile
Surface = Mapping[str, Content]
"""Files of a ``.halo`` folder by POSIX path, and by theirs the override folders without a file."""


@dataclass(frozen=True, slots=True)
class Change:
    """One surface path that differs; ``why`` says what put it into its category."""

    rel: str
    category: Category
    why: str


_ID = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}"
_PROMPT = r"[^/.\x00-\x1f][^/\x00-\x1f]*"
_UNIT = re.compile(r"((?:agents|skills)/[^/]+|prompts/[^/]+)/.+", re.DOTALL)


def unit(rel: str) -> str:
    """The folder that overrides as a whole (``agents/<id>``, ``skills/<id>``, ``prompts/<scope>``), or the file."""
    match = _UNIT.fullmatch(rel)
    return match[1] if match else rel


def units(surface: Surface) -> set[str]:
    return {unit(rel) for rel in surface}


def hides(live: Surface, hidden: Surface) -> dict[str, Content]:
    """The surface that sessions load: the live files, and the global ones that none of them hides."""
    own = units(live)
    return {**{rel: data for rel, data in hidden.items() if unit(rel) not in own}, **live}


def classify(*, live: Surface, proposed: Mapping[str, Content | None], hidden: Surface) -> tuple[Change, ...]:
    """What ``proposed`` (path to new content, None: taken away) would change for sessions.

    ``live`` is the workspace's surface, ``hidden`` the global one. Byte-equal copies are no change. In name
    order, one entry a path.
    """
    before = hides(live, hidden)
    found = {rel: _finding(rel, content, before) for rel, content in proposed.items()}
    for rel in _left_behind(live, proposed, hidden):
        found.setdefault(rel, manual("a deletion: the new folder hides it"))
    return tuple(
        Change(rel, finding.category, finding.why) for rel, finding in sorted(found.items()) if finding
    )


def _left_behind(live: Surface, proposed: Mapping[str, Content | None], hidden: Surface) -> Iterator[str]:
    """Global files that a new, incomplete override folder would hide."""
    new_units = {unit(rel) for rel, content in proposed.items() if content is not None} - units(live)
    files = (rel for rel, content in hidden.items() if content is not NoFile.FOLDER)
    return (rel for rel in files if unit(rel) in new_units and rel not in proposed)


def _finding(rel: str, content: Content | None, before: Surface) -> Finding | None:
    old = before.get(rel)
    if content == old:
        return None
    if isinstance(content, NoFile) or isinstance(old, NoFile):
        return manual("a symlink")
    if content is None:
        return manual("a deletion")
    if unit(rel) != rel and unit(rel) not in units(before):
        return (
            manual(f"a new folder {unit(rel)}")
            if not rel.startswith("prompts/")
            else _by_path(rel, None, content)
        )
    return _internal(rel, before) or _by_path(rel, old, content)


def _internal(rel: str, before: Surface) -> Finding | None:
    """Every file of an internal agent is manual, and of one that can't be told not to be."""
    parts = rel.split("/")
    if parts[0] != "agents" or len(parts) < 3:
        return None
    if parts[1].startswith("__"):
        return manual("an internal agent")
    definition = before.get(f"agents/{parts[1]}/agent.yaml")
    if definition is None:
        return manual("an agent without agent.yaml")
    if isinstance(definition, NoFile):
        return manual("an agent whose agent.yaml is a symlink")
    try:
        internal = read_mapping(definition).get("internal")
    except Unreadable:
        return manual("an agent whose agent.yaml can't be read")
    return None if is_off(internal) else manual("an internal agent")


def _text(old: bytes | None, new: bytes) -> list[Finding]:
    if len(new) > MAX_PROMPT_BYTES:
        return [manual(f"sessions would leave it out: it is larger than {MAX_PROMPT_BYTES:,} bytes")]
    try:
        if "\0" in new.decode():
            return [manual("it doesn't parse: it holds a NUL character")]
    except UnicodeDecodeError:
        return [manual("it doesn't parse: it is not UTF-8 text")]
    return [Finding(Category.PROMPT, "text")]


def _always(why: str) -> Callable[[bytes | None, bytes], list[Finding]]:
    return lambda _old, _new: [manual(why)]


PATH_RULES: tuple[tuple[re.Pattern[str], Callable[[bytes | None, bytes], list[Finding]]], ...] = tuple(
    (re.compile(pattern), rule)
    for pattern, rule in (
        (r"INSTRUCTIONS\.md|INDEX\.md", _text),
        (rf"agents/{_ID}/AGENT\.md", _text),
        (rf"prompts/(?:bootstrap|all|root)/{_PROMPT}\.md", _text),
        (rf"skills/{_ID}/SKILL\.md", skill_findings),
        (rf"agents/{_ID}/agent\.yaml", agent_findings),
        (r"USER\.md", _always("the profile of a person")),
        (r"(?:agents|skills)/[^/]+/.+", _always("another file of an agent or a skill")),
    )
)
"""The first pattern that matches decides; no match is manual."""


def _by_path(rel: str, old: bytes | None, new: bytes) -> Finding:
    if not is_one_line(rel):
        return manual("sessions would leave it out: its name holds control characters")
    for pattern, rule in PATH_RULES:
        if pattern.fullmatch(rel):
            finding = strictest(rule(old, new))
            return finding or manual("unrecognised")
    return manual("unrecognised")
