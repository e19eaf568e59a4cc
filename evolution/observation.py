"""The larger observation of a run as GitHub issues that somebody may open. No Django.

The links lead to github.com's new-issue form; nothing is sent until a person sends it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from core.graphemes import clusters
from core.texts import encodable, for_terminal
from evolution.git_origin import github_origin

PROJECT = "turmind/halo-agent"
MAX_URL_CHARS = 8_000
MAX_FILES = 20
_TITLE_CHARS = 80
_NAME_CHARS = 120
_FACTS_URL_CHARS = 3_000


@dataclass(frozen=True, slots=True)
class IssueLink:
    """``url`` opens github.com's new-issue form of ``repository``, filled in."""

    label: str
    repository: str
    url: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What an issue says beside the observation; ``score`` in words, empty when there is none."""

    run: str
    files: Sequence[str]
    score: str
    version: str


def issue_links(observation: str, facts: Facts, *, workspace: Path) -> list[IssueLink]:
    """The workspace's own repository first, if it has one on github.com; then Halo's."""
    own = github_origin(workspace)
    places = [("this workspace's repository", own), ("the Halo project", PROJECT)]
    return [
        IssueLink(label, repository, issue_url(repository, observation, facts))
        for label, repository in places
        if repository is not None
    ]


def issue_url(repository: str, observation: str, facts: Facts) -> str:
    """At most 8,000 characters; what doesn't fit is cut off the observation where a character ends."""
    text = for_terminal(encodable(observation)).strip()
    title = quote(_clipped(" ".join(text.split()), _TITLE_CHARS), safe="")
    start = f"https://github.com/{repository}/issues/new?title={title}&body="
    end = quote(f"\n\n---\n{_facts(facts)}", safe="")
    return start + _fitting(text, MAX_URL_CHARS - len(start) - len(end)) + end


def _facts(facts: Facts) -> str:
    lines = [f"Run: {facts.run}", f"Score: {facts.score or 'none'}", f"Version: {facts.version}"]
    left = _FACTS_URL_CHARS
    names = []
    for name in facts.files[:MAX_FILES]:
        shown = _clipped(for_terminal(encodable(name)), _NAME_CHARS)
        left -= len(quote(shown, safe="")) + 10
        if left < 0:
            break
        names.append(f"- {shown}")
    if rest := len(facts.files) - len(names):
        names.append(f"- and {rest} more")
    return "\n".join([*lines, *(["Files:", *names] if facts.files else [])])


def _clipped(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    kept = ""
    for cluster in clusters(text[: limit * 2]):
        if len(kept) + len(cluster) > limit - 1:
            break
        kept += cluster
    return kept + "…"


def _fitting(text: str, room: int) -> str:
    """``text`` percent-encoded within ``room`` characters, with an ellipsis where it was cut."""
    whole = quote(text, safe="")
    if len(whole) <= room:
        return whole
    mark = quote(" …", safe="")
    parts, used = [], len(mark)
    for cluster in clusters(text):
        part = quote(cluster, safe="")
        if used + len(part) > room:
            break
        parts.append(part)
        used += len(part)
    return "".join(parts) + mark
