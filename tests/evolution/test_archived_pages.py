"""What an archived run or apply still shows: what its zip holds, and in words what it holds no more."""

from __future__ import annotations

import html
import json
import re
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from evolution.archive import archive
from evolution.artifacts.files import AttemptFiles
from evolution.models import EvolutionRun
from evolution.places import zip_of
from evolution.reject import reject
from tests.evolution.phase_world import write
from tests.evolution.rows import START, Rows, facts, fresh, make_user, seen
from tests.evolution.run_folders import SAID, TARGET, fill
from tests.evolution.test_run_pages import APPLIES, RUNS, _client, _text

pytestmark = pytest.mark.django_db

SHOWN = (
    TARGET,
    "Give the total in the first sentence.",
    "Explain how a total is made up before giving it.",
    "What is the total of order 18?",
    "Totals came last; they lead now.",
    "An order&#x27;s total consists of several parts.",
    "The total is 18.20 EUR.",
    "The total leads now.",
    "Prices.",
    "agent: reading AGENT.md",
    SAID,
)


@pytest.fixture
def run(rows: Rows) -> EvolutionRun:
    """Rejected, packed."""
    run = rows.in_review(user_hint="too long")
    fill(run)
    reject(run=seen(run), user=make_user("rita", "review"), reason="no", now=START)
    packed()
    return fresh(run)


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Looking leaves nothing behind, wherever it reads."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    yield
    assert list(scratch.iterdir()) == []


def packed() -> None:
    report = archive(now=START + timedelta(days=15))
    assert report.archived and not report.failed


def page_of(run: EvolutionRun) -> str:
    return _text(_client("viewer").get(f"{RUNS}{run.pk}/change/"))


def files_of(rows: Rows) -> list[str]:
    root = rows.workspace.paths.evolution.root
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


def test_the_page_shows_what_it_showed_before(rows: Rows) -> None:
    run = rows.in_review()
    fill(run)
    reject(run=seen(run), user=make_user("rita", "review"), reason="no", now=START)
    before = page_of(run)
    packed()
    assert not rows.workspace.paths.evolution.run(run.pk).exists()
    there, known = files_of(rows), facts()

    after = page_of(run)

    for expected in SHOWN:
        assert expected in before and expected in after, expected
    assert f"archive/{run}.zip" in after and "Not shown" not in after
    evidence = re.compile(r'<div id="evidence".*?<section class="halo-card" id="more"', re.DOTALL)
    assert evidence.search(before)[0] == evidence.search(after)[0]  # type: ignore[index]
    assert (files_of(rows), facts()) == (there, known)


def test_each_of_its_files_can_be_read(run: EvolutionRun) -> None:
    client, page = _client("viewer"), page_of(run)
    links = [html.unescape(link) for link in re.findall(r'href="([^"]*/file/[^"]*)"', page)]
    assert len(links) >= 10
    for link in links:
        assert client.get(link).status_code == 200, link
    assert "Totals came last" in _text(client.get(f"{RUNS}{run.pk}/file/?path=attempts/1/patch.md"))
    for path in ("../../../INSTRUCTIONS.md", "/etc/passwd", "attempts/9/patch.md"):
        assert client.get(f"{RUNS}{run.pk}/file/", {"path": path}).status_code == 404


def test_the_command_shows_it_as_well(run: EvolutionRun) -> None:
    text = shown(run)
    for expected in ("Give the total in the first sentence.", "The total is 18.20 EUR.", "Totals came last"):
        assert expected in text
    assert f"archived  2026-03-16 12:00 UTC into {zip_of(run)}" in text
    value = json.loads(shown(run, "--json"))
    assert value["changes"][0]["file"] == TARGET and value["answers"]["dry_run"] == "The total is 18.20 EUR."
    assert (value["folder"], value["unread"]) == (str(zip_of(run)), [])
    assert value["archivedAt"].startswith("2026-03-16T12:00")
    assert _client("viewer").get(f"/api/evolution/runs/{run.pk}").json() == value


def shown(run: EvolutionRun, *options: str) -> str:
    out = StringIO()
    call_command("evo", "show", str(run), *options, stdout=out)
    return out.getvalue()


def damage(archive: Path, how: str) -> None:
    data = archive.read_bytes()
    if how == "gone":
        archive.unlink()
    elif how == "cut":
        archive.write_bytes(data[:-40])
    elif how == "emptied":
        archive.write_bytes(b"")
    else:
        archive.unlink()
        archive.mkdir()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("gone", "is gone"),
        ("cut", "is damaged"),
        ("emptied", "is damaged"),
        ("a folder", "can't be read (Is a directory)"),
    ],
)
def test_a_zip_that_is_gone_or_damaged_is_said_in_words(run: EvolutionRun, how: str, words: str) -> None:
    damage(zip_of(run), how)
    page = html.unescape(page_of(run))
    assert f"archive/{run}.zip {words}" in page and "only what its row says can be shown" in page
    assert "too long" in page and "Decided by <bdi>rita</bdi>" in page
    assert words in shown(run)
    answer = _client("viewer").get(f"/api/evolution/runs/{run.pk}")
    assert answer.status_code == 200 and words in answer.json()["unread"][0]
    assert _client("viewer").get(f"{RUNS}{run.pk}/file/?path=tool-flow.md").status_code == 404


def test_a_hostile_name_in_what_is_not_shown_is_text(run: EvolutionRun, monkeypatch: Any) -> None:
    hostile = "In archive/x.zip \u202e<script>alert(1)</script> is damaged."
    monkeypatch.setattr("evolution.places.read_out", lambda *_given, **_more: [hostile])
    page = page_of(run)
    assert "<script>alert(1)" not in page and "\u202e" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; is damaged." in page


def test_an_apply_shows_its_merge_and_regression_and_the_run_its_answer_after_it(rows: Rows) -> None:
    run = rows.in_review()
    fill(run)
    apply = rows.failed_apply(rows.approved([run]))
    paths = rows.workspace.paths.evolution
    files = AttemptFiles(paths.apply_attempt(apply.pk, apply.attempts))
    write(files.apply_log, f"{run}: applied {TARGET}: all of it\n")
    write(files.regress(run.pk).dry_run_output, "It comes to 18.20 EUR, all told.")
    write(files.child_log, "agent: merging\n")
    reject(run=seen(fresh(run)), user=make_user("rita", "review"), reason="no", now=START)
    archive(now=START + timedelta(days=15))
    apply = fresh(apply)
    assert apply.archived_at is not None and not paths.apply(apply.pk).exists()

    page = _text(_client("viewer").get(f"{APPLIES}{apply.pk}/change/"))
    assert f"applied {TARGET}: all of it" in page and "agent: merging" in page
    assert f"archive/{apply}.zip" in page and "a retry" not in page

    assert "It comes to 18.20 EUR, all told." in page_of(run)

    zip_of(apply).write_bytes(b"no zip")
    page = html.unescape(_text(_client("viewer").get(f"{APPLIES}{apply.pk}/change/")))
    assert f"archive/{apply}.zip is damaged" in page and "all of it" not in page
    assert "It comes to 18.20 EUR, all told." not in page_of(run)
