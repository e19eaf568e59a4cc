"""Where a workspace's git ``origin`` is on github.com, read from its config as text: git is never run. No Django.

A repository's config can name programs that git starts by itself (hooks, pagers, helpers); reading runs nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

from core.bounded_read import UnreadableFileError, read_bounded

_MAX_BYTES = 65_536
_SECTION = re.compile(r'\[\s*remote\s+"origin"\s*\]\s*(.*)', re.IGNORECASE)
_URL = re.compile(r"url\s*=\s*(.*)", re.IGNORECASE)
_ON_GITHUB = re.compile(
    r"(?:(?:https?|git|ssh|git\+ssh)://(?:[^\s/@]*@)?(?:www\.)?github\.com(?::\d{1,5})?/"
    r"|(?:ssh://)(?:[^\s/@]*@)?ssh\.github\.com(?::\d{1,5})?/"
    r"|(?:[^\s/@:]+@)?github\.com:/?)"
    r"([A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))/([A-Za-z0-9._-]{1,100}?)(?:\.git)?/?",
    re.IGNORECASE | re.ASCII,
)
"""In ASCII alone: to Unicode a dotless i is another case of ``i``, and names another host."""


def github_origin(root: Path) -> str | None:
    """``owner/name``; None without a repository in ``root`` itself, or with its origin elsewhere.

    What stands before an ``@`` in the address may be a token and is dropped.
    """
    text = _config(root / ".git")
    return None if text is None else _on_github(_origin(text))


def _config(git: Path) -> str | None:
    if git.is_symlink():
        return None
    pointer = _text(git)  # a worktree's or a submodule's: a file that names the folder
    if pointer is not None:
        if not pointer.startswith("gitdir:"):
            return None
        git = git.parent / pointer.removeprefix("gitdir:").strip()
        common = _text(git / "commondir")
        git = git / common.strip() if common is not None else git
    return _text(git / "config")


def _text(path: Path) -> str | None:
    try:
        data = read_bounded(path, limit=_MAX_BYTES)
    except UnreadableFileError:
        return None
    return None if data is None else data.decode(errors="replace")


def _origin(config: str) -> str:
    """The first url of the section: the one that is fetched from."""
    inside = False
    for line in config.split("\n"):
        text = line.strip()
        if text.startswith("["):
            section = _SECTION.fullmatch(text)
            inside, text = section is not None, section[1].strip() if section else ""
        if inside and (found := _URL.fullmatch(text)):
            return _value(found[1])
    return ""


def _value(text: str) -> str:
    if text.startswith('"'):
        return text[1:].partition('"')[0]
    return re.split(r"\s*[#;]", text, maxsplit=1)[0].strip()


def _on_github(url: str) -> str | None:
    found = _ON_GITHUB.fullmatch(url)
    if found is None or found[2] in (".", ".."):
        return None
    return f"{found[1]}/{found[2]}"
