"""Reads the briefs of ``evolution.briefs``: headings, ``Label: value`` lines, fenced blocks.

What stands inside a fence is never taken for a heading or a label, so foreign text can't steer the engine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_FIELD = re.compile(r"^([A-Z][A-Za-z ]{0,30}): (.+)$")
_FENCE = re.compile(r"^(~{4,}) (.*)$")


@dataclass(slots=True)
class Section:
    """``blocks``: (label, text) in order. The first line with a label counts."""

    title: str
    fields: dict[str, str] = field(default_factory=dict)
    blocks: list[tuple[str, str]] = field(default_factory=list)
    bullets: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def block(self, label: str) -> str:
        return next((text for name, text in self.blocks if name == label), "")


@dataclass(slots=True)
class Brief:
    kind: str
    sections: list[Section]

    def section(self, title: str) -> Section:
        return next((item for item in self.sections if item.title == title), Section(title))

    def field(self, label: str) -> str:
        """The value of the first line with this label, in any section; empty when there is none."""
        return next((item.fields[label] for item in self.sections if label in item.fields), "")


def parse(text: str) -> Brief | None:
    """None when the message is no brief."""
    lines = text.lstrip().split("\n")
    if not lines[0].startswith("# Brief: "):
        return None
    brief = Brief(lines[0].removeprefix("# Brief: ").strip(), [Section("")])
    fence, label, held = "", "", list[str]()
    for line in lines[1:]:
        current = brief.sections[-1]
        if fence:
            if line == fence:
                current.blocks.append((label, "\n".join(held)))
                fence, held = "", []
            else:
                held.append(line)
        elif opened := _FENCE.match(line):
            fence, label = opened[1], opened[2]
        elif line.startswith("## "):
            brief.sections.append(Section(line.removeprefix("## ").strip()))
        else:
            _plain(current, line)
    return brief


def _plain(section: Section, line: str) -> None:
    section.lines.append(line)
    if line.startswith("- "):
        section.bullets.append(line.removeprefix("- "))
    elif found := _FIELD.match(line):
        section.fields.setdefault(found[1], found[2].strip())
