"""Links to github.com's new-issue form: whose repository, what they say, and how long they may be."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.graphemes import clusters
from evolution.git_origin import github_origin
from evolution.observation import MAX_URL_CHARS, PROJECT, Facts, issue_links, issue_url
from tests.evolution.phase_world import write

FACTS = Facts(run="run-1", files=("INSTRUCTIONS.md",), score="88.0", version="Halo 3.0.0")


def with_origin(root: Path, url: str, *, head: str = '[remote "origin"]') -> Path:
    write(root / ".git/config", f"[core]\n\tbare = false\n{head}\n\turl = {url}\n\tfetch = +refs/*\n")
    return root


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/acme/shop.git",
        "https://github.com/acme/shop",
        "https://github.com/acme/shop/",
        "https://x-token:ghp_secret@github.com/acme/shop.git",
        "http://www.github.com/acme/shop",
        "git://github.com/acme/shop.git",
        "git@github.com:acme/shop.git",
        "github.com:acme/shop",
        "ssh://git@github.com/acme/shop.git",
        "ssh://git@github.com:22/acme/shop.git",
        "ssh://git@ssh.github.com:443/acme/shop.git",
        '"https://github.com/acme/shop.git" ; mine',
        "https://github.com/acme/shop.git # mine",
        "HTTPS://GitHub.com/acme/shop.git",
    ],
)
def test_an_origin_on_github_is_found_without_its_token(tmp_path: Path, url: str) -> None:
    assert github_origin(with_origin(tmp_path, url)) == "acme/shop"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://gitlab.com/acme/shop.git",
        "https://github.com.evil.example/acme/shop",
        "https://evil.example/github.com/acme/shop",
        "https://evil.example/?github.com/acme/shop",
        "https://github.com@evil.example/acme/shop",
        "https://github.com/acme",
        "https://g\u0131thub.com/acme/shop",
        "https://github.com/\u212acme/shop",
        "https://github.com/acme/shop/../../x",
        "https://github.com/acme/..",
        "https://github.com/acme/shop?title=x",
        'https://github.com/ac"me/shop',
        "javascript:alert(1)//github.com/acme/shop",
        "ext::sh -c 'touch /tmp/x' github.com:acme/shop",
        "../elsewhere",
    ],
)
def test_any_other_origin_is_none(tmp_path: Path, url: str) -> None:
    assert github_origin(with_origin(tmp_path, url)) is None


def test_only_the_remote_called_origin_counts(tmp_path: Path) -> None:
    root = with_origin(tmp_path, "https://github.com/acme/shop", head='[remote "fork"]')
    assert github_origin(root) is None
    write(root / ".git/config", '[REMOTE "origin"] url = git@github.com:acme/shop.git\n')
    assert github_origin(root) == "acme/shop"


def test_a_worktree_leads_to_its_repository(tmp_path: Path) -> None:
    with_origin(tmp_path / "main", "git@github.com:acme/shop.git")
    write(tmp_path / "main/.git/worktrees/wt/commondir", "../..\n")
    write(tmp_path / "wt/.git", f"gitdir: {tmp_path}/main/.git/worktrees/wt\n")
    assert github_origin(tmp_path / "wt") == "acme/shop"


def test_nothing_odd_is_followed_run_or_waited_for(tmp_path: Path) -> None:
    assert github_origin(tmp_path) is None
    (tmp_path / "a").mkdir()
    (tmp_path / "a/.git").symlink_to(with_origin(tmp_path / "real", "git@github.com:acme/shop") / ".git")
    assert github_origin(tmp_path / "a") is None
    (tmp_path / "b/.git").mkdir(parents=True)
    os.mkfifo(tmp_path / "b/.git/config")
    assert github_origin(tmp_path / "b") is None
    write(tmp_path / "c/.git/config", b"\xff\x00" * 100 + b"x" * 70_000)
    assert github_origin(tmp_path / "c") is None
    write(tmp_path / "d/.git", "not a pointer")
    assert github_origin(tmp_path / "d") is None
    hook = '[core]\n\tfsmonitor = touch fired\n\tsshCommand = touch fired\n[remote "origin"]\n\turl = x\n'
    write(tmp_path / "e/.git/config", hook)
    assert github_origin(tmp_path / "e") is None and not (tmp_path / "e/fired").exists()


def test_two_links_one_without_an_origin(tmp_path: Path) -> None:
    assert [link.repository for link in issue_links("Prices.", FACTS, workspace=tmp_path)] == [PROJECT]
    root = with_origin(tmp_path, "git@github.com:acme/shop.git")
    links = issue_links("Prices.", FACTS, workspace=root)
    assert [link.repository for link in links] == ["acme/shop", PROJECT]
    assert links[0].url.startswith("https://github.com/acme/shop/issues/new?title=")


def test_what_an_issue_says() -> None:
    files = tuple(f"agents/a{number}/AGENT.md" for number in range(30))
    url = urlsplit(
        issue_url("acme/shop", "Prices are in two places.\nSay which.", Facts("run-1", files, "88", "3"))
    )
    asked = parse_qs(url.query)
    assert asked["title"] == ["Prices are in two places. Say which."]
    body = asked["body"][0]
    assert body.startswith("Prices are in two places.\nSay which.\n")
    assert "Run: run-1" in body and "Score: 88" in body and "Version: 3" in body
    assert body.count("AGENT.md") == 20 and "and 10 more" in body


@pytest.mark.parametrize("unit", ["a", "ä", "漢", "👩‍👩‍👧‍👦", "e\u0301", "🇩🇪", "%", "\u202e", "\ud800"])
def test_a_link_is_never_too_long_and_never_ends_within_a_character(unit: str) -> None:
    names = tuple(unit * 500 for _ in range(40))
    url = issue_url("a" * 39 + "/" + "b" * 100, unit * 4_000, Facts("run-1", names, "88", "3"))
    assert len(url) <= MAX_URL_CHARS and url.isascii()
    body = parse_qs(urlsplit(url).query)["body"][0]
    text = body.partition("\n\n---")[0].removesuffix(" …")
    assert text and "\ufffd" not in text.replace(
        "\ufffd", "", text.count("\ufffd") if unit == "\ud800" else 0
    )
    if unit not in ("\u202e", "\ud800"):
        assert set(clusters(text)) == {unit}


@given(st.text(max_size=3000), st.lists(st.text(max_size=300), max_size=25))
def test_any_text_gives_a_link_of_a_length_that_opens(text: str, names: list[str]) -> None:
    url = issue_url("acme/shop", text, Facts("run-1", tuple(names), "", "3"))
    assert len(url) <= MAX_URL_CHARS and url.isascii() and " " not in url and '"' not in url
