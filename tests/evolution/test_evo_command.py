"""``halo evo`` at a terminal: who may decide, what is shown, exit codes and JSON."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evolution.enqueue import EnqueueOutcome
from evolution.errors import Refused
from evolution.find import find
from evolution.live_diff import unified
from evolution.models import EvolutionRun
from sessions_app.models import Session
from tests.evolution.rows import Rows, facts, fresh, make_user

pytestmark = pytest.mark.django_db


def evo(*arguments: str) -> str:
    output = StringIO()
    call_command("evo", *arguments, stdout=output)
    return output.getvalue()


def evo_json(*arguments: str) -> Any:
    return json.loads(evo(*arguments, "--json"))


@pytest.fixture(autouse=True)
def rita(db: None) -> None:
    make_user("rita", "review", "rollback")


def test_the_list_shows_newest_first_and_says_what_to_do_when_empty(rows: Rows) -> None:
    assert "/evo" in evo("list")
    first, second = rows.in_review(user_hint="too long"), rows.pending()

    lines = evo("list").splitlines()

    assert [line.split()[0] for line in lines] == [str(second), str(first)]
    assert "awaiting_review" in lines[1] and "too long" in lines[1] and "90" in lines[1]
    assert [row["id"] for row in evo_json("list", "--status", "pending")] == [str(second)]


def test_approving_names_the_person_and_prints_the_apply(rows: Rows) -> None:
    run = rows.in_review()

    answer = evo_json("approve", str(run), "--as", "rita", "--hint", "wording only")

    run = fresh(run)
    assert answer["id"] == str(run.current_apply)
    assert (answer["approvedBy"], answer["reviewerHint"]) == ("rita", "wording only")
    assert run.status == "approved"


def test_a_decision_about_another_attempt_than_the_one_seen_is_refused(rows: Rows) -> None:
    run = rows.in_review()
    before = facts()

    with pytest.raises(CommandError, match="changed since"):
        evo("approve", str(run), "--as", "rita", "--attempt", "7")

    assert facts() == before


@pytest.mark.parametrize("arguments", [["approve"], ["reject", "--reason", "x"], ["cancel"]])
def test_an_agents_shell_decides_nothing(
    rows: Rows, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    run = rows.in_review()
    monkeypatch.setenv("HALO_SESSION", "abc")
    before = facts()

    with pytest.raises(CommandError, match="HALO_SESSION"):
        evo(arguments[0], str(run), "--as", "rita", *arguments[1:])

    assert facts() == before


def test_a_refusal_is_json_too(rows: Rows) -> None:
    run = rows.in_review()
    make_user("nils")
    output = StringIO()

    with pytest.raises(CommandError):
        call_command("evo", "approve", str(run), "--as", "nils", "--json", stdout=output)

    assert json.loads(output.getvalue())["error"] == "forbidden"


def test_deciding_without_a_name_is_a_usage_error(rows: Rows) -> None:
    with pytest.raises(CommandError, match="--as"):
        evo("approve", str(rows.in_review()))


def test_deleting_asks_first(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    run = rows.failed()
    monkeypatch.setattr("sys.stdin", StringIO("y\n"))  # not a terminal: nobody was asked

    with pytest.raises(CommandError, match="--yes"):
        evo("delete", str(run), "--as", "rita")
    assert EvolutionRun.objects.filter(pk=run.pk).exists()

    assert str(run) in evo("delete", str(run), "--as", "rita", "--yes")
    assert not EvolutionRun.objects.exists()


def test_ids_may_be_shortened_while_they_are_unique(rows: Rows) -> None:
    run, other = rows.in_review(), rows.in_review()
    apply = rows.approved([other])

    assert find(run.pk[-8:]) == run
    assert find(f"apply-{apply.pk[:25]}") == apply
    with pytest.raises(Refused) as nothing:
        find("run-zzzzzzzz")
    assert nothing.value.code == "not_found"
    with pytest.raises(Refused) as several:
        find(f"run-{run.pk[:5]}")
    assert several.value.code == "ambiguous"
    assert set(several.value.details["candidates"]) == {str(run), str(other)}


def test_retry_wants_a_hint_or_the_word_that_the_old_one_stays(rows: Rows) -> None:
    run = rows.failed(user_hint="old")

    with pytest.raises(CommandError, match="--hint"):
        evo("retry", str(run), "--as", "rita")
    evo("retry", str(run), "--as", "rita", "--keep-hint")

    assert (fresh(run).status, fresh(run).user_hint) == ("pending", "old")


def test_a_hint_stands_anywhere_on_the_line(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def enqueue(*, session: Session, hint: str, **_more: Any) -> EnqueueOutcome:
        asked.append((session.pk, hint))
        return EnqueueOutcome(run.pk, created=True)

    run = rows.pending()
    Session.objects.create(
        id="abcdefgh",
        workspace=rows.workspace,
        agent_id="guide",
        agent_name="Guide",
        created_at=rows.now,
        last_activity_at=rows.now,
    )
    monkeypatch.setattr("evolution.enqueue.enqueue", enqueue)

    evo("enqueue", "abcdefgh", "too long", "--as", "rita")
    evo("enqueue", "abcd", "--as", "rita", "too long")
    evo("enqueue", "--as", "rita", "abcdefgh", "--hint", "too long")
    evo("enqueue", "abcdefgh")

    assert asked == [("abcdefgh", "too long")] * 3 + [("abcdefgh", "")]
    with pytest.raises(CommandError, match="twice"):
        evo("enqueue", "abcdefgh", "one", "--hint", "two")
    with pytest.raises(CommandError, match="halo session list"):
        evo("enqueue", "nosuch")


def test_runs_may_stand_on_both_sides_of_an_option(rows: Rows) -> None:
    first, second = rows.in_review(), rows.in_review()

    answer = evo_json("approve", str(first), "--as", "rita", str(second))

    assert answer["runs"] == sorted([str(first), str(second)])


def test_an_empty_list_tells_no_runs_from_none_that_fit(rows: Rows) -> None:
    assert "No runs yet" in evo("list")
    rows.pending()
    for arguments in (("--status", "failed"), ("-w", "nowhere")):
        assert "No such runs" in evo("list", *arguments)


def test_a_name_too_short_for_an_id_says_so(rows: Rows) -> None:
    rows.pending()
    with pytest.raises(CommandError, match="at least 4"):
        evo("show", "run-01")


def test_a_page_steers_no_terminal_and_hides_nothing(rows: Rows) -> None:
    run = rows.in_review(user_hint="calm\x1b]0;pwned\x07 \u202etxet \u200bzero")
    shown = evo("show", str(run))
    assert "hint      calm\\x1b]0;pwned\\x07 \\u202etxet \\u200bzero" in shown
    as_json = evo("show", str(run), "--json")
    assert not {"\x1b", "\x07", "\u202e", "\u200b"} & set(as_json)
    assert json.loads(as_json)["hint"] == run.user_hint


def test_a_diff_shows_line_ends_that_only_look_alike() -> None:
    shown = unified(b"a\nb\n", b"a\nb\r\n", rel="x", before_name="live", after_name="draft")
    assert "+b\r" in shown.split("\n")
    assert "+a\u2028b" in unified(b"a b\n", "a\u2028b\n".encode(), rel="x", before_name="l", after_name="d")
    assert unified(b"a\r\n", b"a\r\n", rel="x", before_name="live", after_name="draft") == ""
