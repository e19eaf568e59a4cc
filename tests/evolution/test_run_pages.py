"""The pages of runs and applies: what they show to whom, what each decision does, and what a refusal leaves."""

from __future__ import annotations

import html
import json
import re
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from core import clock
from core.db.api_tokens import issue
from core.paths import halo_home as home_of
from evolution import transitions
from evolution.admin import apply_pages
from evolution.admin.paging import PER_PAGE
from evolution.admin.run_list import seen_value
from evolution.missing_tools import LEAF
from evolution.models import EvolutionApply, EvolutionRun
from evolution.retry import retry
from sessions_app.logs import SessionLog
from sessions_app.logs import records as make
from sessions_app.tool_bundles import NOT_IN_EVALUATION
from tests.evolution.rows import SCORE, Rows, facts, fresh, minutes
from tests.evolution.run_folders import AFTER, BEFORE, TARGET, fill

pytestmark = pytest.mark.django_db

RUNS = "/admin/evolution/evolutionrun/"
APPLIES = "/admin/evolution/evolutionapply/"
HOSTILE = "\u202e\"'><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7|add:7 }}\x1b[31m"
ROLES: dict[str, tuple[str, ...]] = {
    "viewer": ("view",),
    "reviewer": ("view", "review"),
    "operator": ("view", "review", "rollback"),
}


def _client(role: str) -> Client:
    """``anonymous``, ``plain`` (staff without any permission), or one of ``ROLES``."""
    client = Client()
    if role != "anonymous":
        client.force_login(_user(role))
    return client


def _user(role: str) -> User:
    user, _ = User.objects.get_or_create(username=role, defaults={"is_staff": True})
    names = ROLES.get(role, ())
    workspace_wide = Permission.objects.filter(content_type__app_label="workspaces", codename__in=names)
    models = ("view_evolutionrun", "view_evolutionapply") if "view" in names else ()
    user.user_permissions.set([*workspace_wide, *Permission.objects.filter(codename__in=models)])
    return user


def _turned_away(response: Any) -> bool:
    """Sent to the login, or told that it isn't theirs."""
    return response.status_code in (302, 403) and not response.headers.get("Location", "").startswith(RUNS)


def _text(response: Any) -> str:
    assert response.status_code in (200, 409), response.status_code
    return str(response.content.decode())


def _run_url(run: EvolutionRun, what: str = "change") -> str:
    return f"{RUNS}{run.pk}/{what}/"


def _decide(client: Client, run: EvolutionRun, action: str, **fields: str) -> Any:
    apply = run.current_apply_id if run.status == "approved" else ""
    given = {"action": action, "attempt": str(run.attempts), "apply": apply or "", **fields}
    return client.post(_run_url(run, "decide"), given)


PAGES = [
    RUNS,
    RUNS + "{run}/change/",
    RUNS + "{run}/file/?path=tool-flow.md",
    APPLIES,
    APPLIES + "{apply}/change/",
]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    ("role", "status"), [("anonymous", 0), ("plain", 0), ("viewer", 200), ("operator", 200)]
)
def test_who_may_look_at_a_page(rows: Rows, page: str, role: str, status: int) -> None:
    run = rows.in_review()
    fill(run)
    apply = rows.applied(rows.approved([run]))

    response = _client(role).get(page.format(run=run.pk, apply=apply.pk))

    assert response.status_code == status if status else _turned_away(response)
    if role == "anonymous":
        assert "/login/" in response.headers["Location"]


def test_the_run_page_shows_what_a_decision_needs(rows: Rows) -> None:
    run = rows.in_review(user_hint="too long, and the total came last")
    fill(run)

    page = html.unescape(_text(_client("reviewer").get(_run_url(run))))

    for expected in (
        "too long, and the total came last",
        "awaiting review",
        TARGET,
        "+2 \u22121",
        "against the live file of now",
        "Explain how a total is made up before giving it.",
        "Give the total in the first sentence.",
        "repeats message 1 of the conversation",
        "What was really answered",
        "So it comes to 41.80 EUR.",
        "so 18.20 EUR.",
        "The total is 18.20 EUR.",
        "median of 3: 86.7, 88, 88.7; spread 2",
        "(74\u201380)",
        "patch in sandbox: pass ✓",
        "the level is L0.",
        "The conversation had full access and holds no data from outside.",
        "Lowest average 86.7 (80 is wanted), lowest behavior 74, lowest lint 100",
        "It would have passed at L2.",
        "your decision",
        "3 askings, spread 2.0",
        "says the handbook.",
        "agent: reading AGENT.md",
        "wrapper: phase draft",
        "Larger observation",
    ):
        assert expected in page, expected


def test_the_run_page_says_which_prompts_had_changed_since_the_freeze(rows: Rows) -> None:
    run, same = rows.in_review(), rows.in_review()
    fill(run).differs.write_text('["INDEX.md", "agents/default/\\u202eAGENT.md"]')
    fill(same).differs.write_text("[]")

    page = html.unescape(_text(_client("viewer").get(_run_url(run))))

    assert "Changed after the conversation was frozen" in page
    assert 'INDEX.md</bdi>, <bdi class="mono">agents/default/' in page and "\u202e" not in page
    assert "Changed after" not in _text(_client("viewer").get(_run_url(same)))


@pytest.mark.parametrize("damage", ["{", '{"a": 1}', ""])
def test_a_damaged_note_of_them_breaks_no_page(rows: Rows, damage: str) -> None:
    run = rows.in_review()
    fill(run).differs.write_text(damage)
    assert "Changed after" not in _text(_client("viewer").get(_run_url(run)))


def test_the_run_page_says_which_tools_an_evaluation_did_not_have(rows: Rows) -> None:
    """Of the control and of the dry run that counts, not of the one that was corrected."""
    run, other = rows.in_review(), rows.in_review()
    files = fill(run)
    _tried(files.session("dry-run-1"), "query_session")
    _tried(files.session("dry-run-2"), "start_session", "start_session", "web_fetch")
    _tried(files.session("control"), "web_fetch")
    _tried(fill(other).session("control"))

    page = re.sub(r"\s+|</?bdi>", " ", _text(_client("viewer").get(_run_url(run))))

    assert "Called, but not available in an evaluation: " in page
    named = page.split("in an evaluation: ")[1].split(". The agent")[0]
    assert named.replace(" ,", ",").split(", ") == [
        " web_fetch (control)",
        " start_session (dry run)",
        " web_fetch (dry run) ",
    ]
    assert "Called, but" not in _text(_client("viewer").get(_run_url(other)))


def _tried(folder: Path, *tools: str) -> None:
    """The log of an evaluation session whose agent read a file and called ``tools`` in vain."""
    log = SessionLog(folder, LEAF)
    log.load()
    results = [("file_read", "not available in an evaluation, says this file")]
    results += [(tool, NOT_IN_EVALUATION.format(name=tool)) for tool in tools]
    blocks = [
        {"type": "tool_call", "id": str(number), "tool": tool, "args": {}, "result": {"text": text}}
        for number, (tool, text) in enumerate(results)
    ]
    at = clock.stamp(clock.now())
    log.append(ui=[make.add(make.assistant_row(row_id="r1", at=at, blocks=blocks))], raw=[])
    log.end_turn()


def test_only_the_lines_that_repeat_the_conversation_are_marked(rows: Rows) -> None:
    run = rows.in_review()
    fill(run)

    page = _text(_client("viewer").get(_run_url(run)))

    assert page.count("repeats message") == 1
    assert re.search(r"two sentences\.\s*<span class=\"halo-mark\">", page)


def test_a_file_that_changed_since_makes_the_draft_stale_on_page_and_list(rows: Rows) -> None:
    run, other = rows.in_review(), rows.in_review()
    fill(run)
    fill(other, target="prompts/all/tone.md")
    (run.workspace.paths.halo / TARGET).write_text("somebody else's words\n")

    page = _text(_client("viewer").get(_run_url(run)))
    listed = _text(_client("viewer").get(RUNS))

    assert "the live file has changed since the draft was made" in page
    assert "somebody else&#x27;s words" in page
    assert listed.count(">stale<") == 1


@pytest.mark.parametrize("url", [RUNS, RUNS + "{run}/change/", RUNS + "{run}/file/?path=tool-flow.md"])
def test_hostile_text_is_shown_and_never_obeyed(rows: Rows, url: str) -> None:
    run = rows.in_review(user_hint=HOSTILE, agent_id=HOSTILE[:64])
    fill(run, text=HOSTILE)

    page = _text(_client("operator").get(url.format(run=run.pk)))

    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "\u202e" not in page.split("<textarea")[0]
    assert "\x1b" not in page.split("<textarea")[0]
    assert "\\u202e" in page


def test_hostile_text_of_an_apply_is_escaped(rows: Rows) -> None:
    run = rows.in_review(user_hint=HOSTILE)
    apply = rows.failed_apply(rows.approved([run]))
    EvolutionApply.objects.filter(pk=apply.pk).update(
        failure_reason=HOSTILE,
        reviewer_hint=HOSTILE,
        drifted=[HOSTILE],
        needs_person={HOSTILE: [HOSTILE]},
        rollback_outcome={"left": [HOSTILE], "refused": HOSTILE},
    )

    for url in (f"{APPLIES}{apply.pk}/change/", APPLIES):
        page = _text(_client("operator").get(url))
        assert "<script>alert" not in page
        assert "<img src=x" not in page


@pytest.mark.parametrize("role", ["viewer", "reviewer", "operator"])
def test_buttons_are_those_the_person_has_the_permission_for(rows: Rows, role: str) -> None:
    run = rows.in_review()
    fill(run)

    page = _text(_client(role).get(_run_url(run)))

    assert ("Approve…" in page, "Delete…" in page, "Roll back" in page) == {
        "viewer": (False, False, False),
        "reviewer": (True, True, False),
        "operator": (True, True, True),
    }[role]


def test_a_button_that_cannot_be_used_says_why(rows: Rows) -> None:
    run = rows.failed()

    page = _text(_client("operator").get(_run_url(run)))

    assert "is failed; only a run that awaits review, or whose apply failed, can be approved." in page
    assert "Only a pending or running run can be cancelled." in page
    assert "Only an applied change can be rolled back." in page
    assert "Retry…" in page
    assert "Approve…" not in page


DECISIONS = [
    ("approve", {"text": "only wording"}),
    ("reject", {"text": "too broad"}),
    ("retry", {"hint_choice": "new", "text": "shorter"}),
    ("retry", {"hint_choice": "keep"}),
]
AFTERWARDS = {"approve": "approved", "reject": "rejected", "retry": "pending"}


@pytest.mark.parametrize(("action", "fields"), DECISIONS)
@pytest.mark.parametrize("role", ["anonymous", "plain", "viewer", "reviewer"])
def test_decisions_are_a_reviewers(rows: Rows, role: str, action: str, fields: dict[str, str]) -> None:
    run = rows.in_review(user_hint="old")
    client, before = _client(role), facts()

    response = _decide(client, run, action, **fields)

    if role != "reviewer":
        assert _turned_away(response)
        assert facts() == before
        assert LogEntry.objects.count() == 0
        return
    assert response.status_code == 302
    decided = fresh(run)
    assert (decided.status, decided.decided_by) == (AFTERWARDS[action], _user("reviewer"))
    assert decided.user_hint == ("shorter" if fields.get("hint_choice") == "new" else "old")
    entry = LogEntry.objects.filter(object_id=run.pk).get()
    assert entry.user == _user("reviewer")
    assert fields.get("text", "same hint") in entry.change_message


@pytest.mark.parametrize("role", ["anonymous", "plain", "viewer", "reviewer"])
def test_cancelling_is_a_reviewers(rows: Rows, role: str) -> None:
    run = rows.pending()
    apply = rows.approved()

    for url in (_run_url(run, "decide"), f"{APPLIES}{apply.pk}/decide/"):
        _client(role).post(url, {"action": "cancel"})

    expected = ("cancelled", "cancelled") if role == "reviewer" else ("pending", "pending")
    assert (fresh(run).status, fresh(apply).status) == expected
    assert LogEntry.objects.count() == (2 if role == "reviewer" else 0)


def test_approving_leads_to_the_apply_that_it_made(rows: Rows) -> None:
    run = rows.in_review()

    response = _decide(_client("reviewer"), run, "approve", text="only wording")

    apply = EvolutionApply.objects.get()
    assert response.headers["Location"] == f"{APPLIES}{apply.pk}/change/"
    assert apply.reviewer_hint == "only wording"


@pytest.mark.parametrize(
    ("action", "fields", "said"),
    [
        ("reject", {"text": "  "}, "Say why"),
        ("retry", {}, "Say whether the hint stays"),
        ("approve", {"text": "x" * 4001}, "at most 4,000"),
        ("approve", {"attempt": "99"}, "{run} has changed since it was shown"),
        ("reject", {"attempt": "99", "text": "no"}, "{run} has changed since it was shown"),
        ("approve", {"attempt": "<script>"}, "look at the run again"),
        ("cancel", {}, "Only a pending or running run can be cancelled."),
    ],
)
def test_a_refusal_says_why_keeps_the_words_and_changes_nothing(
    rows: Rows, action: str, fields: dict[str, str], said: str
) -> None:
    run = rows.in_review()
    client, before = _client("reviewer"), facts()

    response = _decide(client, run, action, **fields)

    assert response.status_code == 409
    page = html.unescape(_text(response))
    assert "Nothing was changed." in page
    assert said.format(run=run) in page
    assert fields.get("text", "") in page
    assert facts() == before
    assert LogEntry.objects.count() == 0


@pytest.mark.parametrize("url", [RUNS + "{run}/decide/", APPLIES + "{apply}/decide/"])
def test_a_decision_is_never_a_link_nor_an_unknown_word(rows: Rows, url: str) -> None:
    run, apply = rows.in_review(), rows.approved()
    client, address = _client("operator"), url.format(run=run.pk, apply=apply.pk)

    assert client.get(address, {"action": "cancel"}).status_code == 405
    assert client.post(address, {"action": "explode"}).status_code == 404
    assert fresh(apply).status == "pending"


def test_several_runs_are_approved_into_one_apply_or_rejected_together(rows: Rows) -> None:
    runs = [rows.in_review() for _ in range(4)]
    client = _client("reviewer")

    values = [seen_value(run) for run in runs]
    client.post(RUNS, {"action": "approve", "run": values[:2], "text": "both"})
    client.post(RUNS, {"action": "reject", "run": values[2:], "text": "neither"})

    assert [fresh(run).status for run in runs] == ["approved", "approved", "rejected", "rejected"]
    assert fresh(runs[0]).current_apply == fresh(runs[1]).current_apply == EvolutionApply.objects.get()
    assert {fresh(run).decision_reason for run in runs[2:]} == {"neither"}


@pytest.mark.parametrize("action", ["approve", "reject"])
def test_several_are_decided_all_or_none(rows: Rows, action: str) -> None:
    good, decided = rows.in_review(), rows.failed()
    client, before = _client("reviewer"), facts()

    response = client.post(
        RUNS, {"action": action, "run": [seen_value(good), seen_value(decided)], "text": "why"}
    )

    assert response.status_code == 409
    assert seen_value(good) in _text(response)
    assert facts() == before
    assert LogEntry.objects.count() == 0


@pytest.mark.parametrize("role", ["anonymous", "plain", "viewer"])
def test_several_are_not_decided_by_others(rows: Rows, role: str) -> None:
    run = rows.in_review()
    client, before = _client(role), facts()

    response = client.post(RUNS, {"action": "approve", "run": [seen_value(run)]})

    assert _turned_away(response)
    assert facts() == before


@pytest.mark.parametrize("role", ["anonymous", "plain", "viewer", "reviewer"])
def test_deleting_lists_first_what_goes(rows: Rows, role: str) -> None:
    run = rows.in_review()
    fill(run)
    folder, client = run.workspace.paths.evolution.run(run.pk), _client(role)

    shown = client.get(_run_url(run, "delete"))
    token = re.search(r'name="plan" value="([^"]+)"', shown.content.decode())
    client.post(_run_url(run, "delete"), {"plan": html.unescape(token[1]) if token else ""})

    if role == "reviewer":
        assert str(folder) in shown.content.decode()
        assert LogEntry.objects.get().object_repr == f"run-{run.pk}"
    assert EvolutionRun.objects.filter(pk=run.pk).exists() == folder.exists() == (role != "reviewer")


def test_deleting_what_was_not_listed_so_is_refused(rows: Rows) -> None:
    run, other = rows.in_review(), rows.in_review()
    client = _client("reviewer")
    token = re.search(r'name="plan" value="([^"]+)"', _text(client.get(_run_url(other, "delete"))))
    fill(run)

    for plan in ("", "made up", html.unescape(token[1]) if token else ""):
        assert client.post(_run_url(run, "delete"), {"plan": plan}).status_code == 409

    assert EvolutionRun.objects.count() == 2


def test_try_again_is_offered_where_a_person_is_needed(rows: Rows) -> None:
    apply, _ = rows.syncing()
    EvolutionApply.objects.filter(pk=apply.pk).update(needs_person={"why": "the folder is read-only"})
    url, client = f"{APPLIES}{apply.pk}/", _client("reviewer")

    page = _text(client.get(url + "change/"))
    assert "the folder is read-only" in page
    assert "Try again…" in page
    assert client.post(url + "decide/", {"action": "try-again"}).status_code == 302

    assert fresh(apply).needs_person is None
    assert client.post(url + "decide/", {"action": "try-again"}).status_code == 409


def test_the_run_of_an_apply_that_needs_a_person_sends_it_on_as_well(rows: Rows) -> None:
    apply, _ = rows.syncing()
    run, client = apply.source_runs.get(), _client("reviewer")
    assert "Try again" not in _text(client.get(_run_url(run)))
    EvolutionApply.objects.filter(pk=apply.pk).update(needs_person={"why": "the folder is read-only"})

    page = _text(client.get(_run_url(run)))
    assert "stands still and needs a person" in page
    assert "Try again…" not in _text(_client("viewer").get(_run_url(run)))
    form = re.search(
        r'<form method="post" action="([^"]+)">(?:(?!</form>).)*value="try-again"', page, re.DOTALL
    )
    assert form is not None
    answer = client.post(form[1], {"action": "try-again"})

    assert answer.headers["Location"] == f"{APPLIES}{apply.pk}/change/"
    assert fresh(apply).needs_person is None
    assert "Try again" not in _text(client.get(_run_url(run)))


def test_a_rollback_that_has_no_snapshot_says_so_and_begins_nothing(rows: Rows) -> None:
    apply = rows.applied()
    client, before = _client("operator"), facts()

    shown = client.get(f"{APPLIES}{apply.pk}/rollback/")
    asked = client.post(f"{APPLIES}{apply.pk}/rollback/", {"shown": "made up", "force": "1"})

    assert (shown.status_code, asked.status_code) == (409, 409)
    assert "It can&#x27;t be rolled back." in _text(shown) or "It can't be rolled back." in _text(shown)
    assert facts() == before


@pytest.mark.parametrize("role", ["anonymous", "plain", "viewer", "reviewer"])
def test_a_rollback_is_an_operators(rows: Rows, role: str) -> None:
    apply = rows.applied()
    client, before = _client(role), facts()

    for ask in (client.get, client.post):
        response = ask(f"{APPLIES}{apply.pk}/rollback/")
        assert _turned_away(response)
    assert facts() == before


def test_the_list_pages_by_cursor_both_ways(rows: Rows) -> None:
    runs = [rows.pending(user_hint=f"hint {number:03}") for number in range(PER_PAGE * 2 + 5)]
    client = _client("viewer")

    def hints(address: str) -> tuple[list[str], dict[str, str]]:
        page = html.unescape(_text(client.get(address)))
        links = dict(re.findall(r'href="(\?[^"]+)" rel="(prev|next)"', page))
        return re.findall(r"hint \d{3}", page), {rel: link for link, rel in links.items()}

    expected = [run.user_hint for run in reversed(runs)]
    first, links = hints(RUNS)
    second, links_of_second = hints(RUNS + links["next"])
    third, links_of_third = hints(RUNS + links_of_second["next"])
    assert first + second + third == expected
    assert "prev" not in links and "next" not in links_of_third
    assert hints(RUNS + links_of_third["prev"])[0] == second


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, {"waits", "failed", "pending"}),
        ({"status": "failed"}, {"failed"}),
        ({"q": "wait"}, {"waits"}),
        ({"agent": "other"}, {"pending"}),
        ({"observation": "1"}, {"waits"}),
        ({"archived": "only"}, {"old"}),
        ({"archived": "all"}, {"waits", "failed", "pending", "old"}),
        ({"auto": "1"}, set()),
        ({"workspace": "99999999999999999999"}, set()),
        ({"workspace": "²"}, set()),
        ({"q": "\x00"}, set()),
    ],
)
def test_the_list_is_filtered(rows: Rows, query: dict[str, str], found: set[str]) -> None:
    waits = rows.in_review(user_hint="waits")
    rows.failed(user_hint="failed")
    rows.pending(user_hint="pending", agent_id="other")
    old = rows.failed(user_hint="old")
    EvolutionRun.objects.filter(pk=waits.pk).update(has_observation=True)
    EvolutionRun.objects.filter(pk=old.pk).update(archived_at=rows.now + minutes(1))

    page = _text(_client("viewer").get(RUNS, query))

    assert set(re.findall(r"change/\"><bdi>(\w+)</bdi>", page)) == found


def test_the_list_asks_as_much_for_many_rows_as_for_few_and_never_counts(rows: Rows) -> None:
    client = _client("viewer")

    def queries() -> list[str]:
        with CaptureQueriesContext(connection) as caught:
            client.get(RUNS)
        return [query["sql"] for query in caught.captured_queries]

    rows.in_review()
    few = queries()
    for _ in range(PER_PAGE + 3):
        rows.in_review()
    many = queries()

    assert len(many) == len(few) <= 8
    assert not [sql for sql in many if "COUNT(" in sql.upper()]


def test_the_run_page_asks_a_bounded_number_of_questions(rows: Rows) -> None:
    run = rows.in_review()
    fill(run)
    client = _client("operator")

    with CaptureQueriesContext(connection) as caught:
        client.get(_run_url(run))

    assert len(caught) <= 14


@pytest.mark.parametrize("path", ["../../../../etc/passwd", "/etc/passwd", "", "missing", "attempts", "\x00"])
def test_no_file_outside_the_runs_folder_is_shown(rows: Rows, path: str) -> None:
    run = rows.in_review()
    fill(run)

    assert _client("viewer").get(_run_url(run, "file"), {"path": path}).status_code == 404


def test_a_link_out_of_the_runs_folder_is_not_followed(rows: Rows, tmp_path: Any) -> None:
    run = rows.in_review()
    files = fill(run)
    (tmp_path / "secret").write_text("the secret")
    (files.folder / "link").symlink_to(tmp_path / "secret")

    page = _text(_client("viewer").get(_run_url(run)))

    assert ">link<" not in page
    address = _run_url(run, "file")
    rel = f"attempts/{run.attempts}/link"
    assert _client("viewer").get(address, {"path": rel}).status_code == 404


@pytest.mark.parametrize("url", [RUNS + "01NOSUCHRUN/change/", APPLIES + "01NOSUCHAPPLY/change/"])
def test_a_row_that_is_gone_is_not_found(rows: Rows, url: str) -> None:
    assert _client("operator").get(url).status_code == 404


@pytest.mark.parametrize("what", ["list", "run"])
def test_the_pages_bring_no_inline_script_handler_or_style(rows: Rows, what: str) -> None:
    run = rows.in_review()
    fill(run)

    page = _text(_client("operator").get(RUNS if what == "list" else _run_url(run)))

    ours = page.split('<div class="halo" x-ignore>')[1].split("unfold/js/simplebar")[0]
    own = ours[: ours.rindex("halo-pages" if what == "list" else "All runs")]
    assert not re.search(r"<script|<style|\sstyle=|\son[a-z]+=", own)


def test_a_landed_draft_is_shown_against_what_it_was_made_on(rows: Rows) -> None:
    run = rows.in_review()
    fill(run)
    (run.workspace.paths.halo / TARGET).write_text(AFTER)

    page = _text(_client("viewer").get(_run_url(run)))

    assert "landed; shown against what it was made on" in page
    assert "+2 \u22121" in page


def test_what_is_at_work_says_so_and_what_rests_does_not(rows: Rows) -> None:
    waiting, resting = rows.pending(), rows.failed()
    client = _client("viewer")

    assert "data-working" in _text(client.get(_run_url(waiting)))
    assert "data-working" not in _text(client.get(_run_url(resting)))


def test_the_page_of_a_rollback_asks_again_over_conflicts(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = rows.applied()
    snapshot = apply.workspace.paths.evolution.snapshot(apply.pk, apply.snapshot_attempt or 0)
    _snapshot(snapshot, apply)
    live = apply.workspace.paths.halo / "INSTRUCTIONS.md"
    live.write_text("a person's words\n")
    monkeypatch.setattr(apply_pages, "await_outcome", lambda apply_id: None)
    monkeypatch.setattr("evolution.request_rollback.host_name", lambda: "another-host")
    client, url = _client("operator"), f"{APPLIES}{apply.pk}/rollback/"

    page = _text(client.get(url))
    token = re.search(r'name="shown" value="([^"]+)"', page)
    assert token and "modified" in page and "Overwrite exactly these" in page
    shown = html.unescape(token[1])

    refused = client.post(url, {"shown": shown})
    assert refused.status_code == 409
    assert fresh(apply).status == "applied"

    live.write_text("other words since\n")
    assert client.post(url, {"shown": shown, "force": "1"}).status_code == 409
    assert fresh(apply).status == "applied"

    live.write_text("a person's words\n")
    assert client.post(url, {"shown": shown, "force": "1"}).status_code == 302
    begun = fresh(apply)
    assert (begun.status, begun.rollback_force, begun.rolled_back_by) == (
        "rolling_back",
        True,
        _user("operator"),
    )
    assert [item["rel"] for item in begun.rollback_seen] == ["INSTRUCTIONS.md"]
    assert "INSTRUCTIONS.md" in LogEntry.objects.get().change_message


def _snapshot(folder: Any, apply: EvolutionApply) -> None:
    from core import hashes
    from evolution import manifest as manifests
    from evolution.manifest import BEFORE, Manifest, ManifestFile

    old, new = b"old instructions\n", b"new instructions\n"
    (folder / BEFORE).mkdir(parents=True)
    (folder / BEFORE / "INSTRUCTIONS.md").write_bytes(old)
    file = ManifestFile("INSTRUCTIONS.md", "overwrite", hashes.of_bytes(old), hashes.of_bytes(new))
    manifests.write(folder, Manifest(apply.pk, (), "2026-03-01T12:00:00.000Z", (file,), ()))


def test_a_larger_observation_has_its_links_and_says_what_they_quote(rows: Rows) -> None:
    run = rows.in_review()
    fill(run)
    git = rows.workspace.paths.root / ".git" / "config"
    git.parent.mkdir()
    git.write_text('[remote "origin"]\n\turl = https://token@github.com/acme/shop.git\n')

    page = _text(_client("viewer").get(_run_url(run)))

    links = re.findall(r'<a class="halo-btn" href="(https://github.com/[^"]*)"([^>]*)>', page)
    assert [link.split("/issues/")[0] for link, _ in links] == [
        "https://github.com/acme/shop",
        "https://github.com/turmind/halo-agent",
    ]
    assert all('rel="noopener noreferrer"' in attributes for _, attributes in links)
    assert (
        "may quote files or the conversation" in page and "token" not in page.split("Larger observation")[1]
    )
    body = parse_qs(urlsplit(html.unescape(links[0][0])).query)["body"][0]
    assert body.startswith("Prices.") and str(run) in body and TARGET in body and "Score: 90" in body


def test_a_run_without_an_observation_has_no_links(rows: Rows) -> None:
    run = rows.in_review()
    files = fill(run)
    files.patch.write_text(files.patch.read_text().split("## Larger")[0])
    assert "github.com" not in _text(_client("viewer").get(_run_url(run)))


@pytest.mark.parametrize("failed", [False, True])
def test_the_list_says_which_drafts_are_stale_while_somebody_can_still_decide(
    rows: Rows, failed: bool
) -> None:
    run = rows.in_review()
    fill(run)
    if failed:
        rows.failed_apply(rows.approved([run]))
    client = _client("viewer")
    assert ">stale<" not in _text(client.get(RUNS))

    (rows.workspace.paths.halo / TARGET).write_text(BEFORE + "Somebody added this.\n")

    assert ">stale<" in _text(client.get(RUNS)) and ">stale<" in _text(client.get(_run_url(run)))
    output = StringIO()
    call_command("evo", "list", stdout=output)
    assert "stale" in output.getvalue()


def test_a_stale_draft_is_told_by_the_files_the_gates_named_alone(rows: Rows) -> None:
    run = rows.in_review()
    files = fill(run, changes=[{"rel": "../../out"}, {"rel": 3}, "x", {"rel": "skills/gone/SKILL.md"}])
    (rows.workspace.paths.halo / TARGET).write_text(BEFORE + "Somebody added this.\n")
    assert ">stale<" not in _text(_client("viewer").get(RUNS))
    files.verdict.write_text("{")
    assert ">stale<" in _text(_client("viewer").get(RUNS))


@pytest.fixture
def four_eyes(halo_home: Path) -> None:
    settings_file = home_of().settings_file
    settings_file.parent.mkdir(parents=True, exist_ok=True)
    settings_file.write_text("general:\n  evolution:\n    four_eyes: true\n")


@pytest.mark.usefixtures("four_eyes")
@pytest.mark.parametrize("asked_by", ["reviewer", None])
@pytest.mark.parametrize("door", ["page", "several", "rest", "command"])
def test_with_four_eyes_no_door_lets_an_asker_through(rows: Rows, asked_by: str | None, door: str) -> None:
    user = _user("reviewer")
    run = rows.in_review(requested_by=user if asked_by else None)
    fill(run)
    client, before = _client("reviewer"), facts()

    if door == "page":
        answer = _decide(client, run, "approve")
        assert answer.status_code == 409
        button = re.search(r"<b>Approve:</b> ([^<]*)", _text(client.get(_run_url(run))))
        assert button is not None and "four_eyes" in button[1]
    elif door == "several":
        answer = client.post(RUNS, {"action": "approve", "run": seen_value(run)})
        assert answer.status_code == 409
    elif door == "rest":
        secret = issue(user=user, name="t", scopes=["review"], days=1, now=clock.now()).secret
        answer = Client().post(
            f"/api/evolution/runs/{run}/approve",
            json.dumps({"attempt": run.attempts}),
            content_type="application/json",
            headers={"Authorization": f"Bearer {secret}"},
        )
        assert (answer.status_code, answer.json()["error"]) == (409, "four_eyes")
    else:
        with pytest.raises(CommandError, match="four_eyes"):
            call_command("evo", "approve", str(run), "--as", "reviewer")

    assert facts() == before


@pytest.mark.usefixtures("four_eyes")
@pytest.mark.parametrize(("hint", "approves"), [("another", False), (None, True)])
def test_with_four_eyes_a_retry_with_a_hint_of_ones_own_is_asking(
    rows: Rows, hint: str | None, approves: bool
) -> None:
    reviewer = _user("reviewer")
    run = rows.in_review(requested_by=_user("operator"))
    retry(run_id=run.pk, attempt=run.attempts, hint=hint, user=reviewer, now=rows.now)
    claim = transitions.claim_run(run_id=run.pk, attempts=run.attempts, now=rows.now)
    assert claim is not None
    transitions.await_review(claim, score=SCORE, auto_reason="", has_observation=False, now=rows.now)
    run = fresh(run)
    fill(run)

    answer = _decide(_client("reviewer"), run, "approve")

    assert (answer.status_code, fresh(run).status) == (
        (302, "approved") if approves else (409, "awaiting_review")
    )
