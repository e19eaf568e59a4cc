"""Deleting one exchange: soft for people, physical for the model, whole pairs, every refusal changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User

from agents import history as wire
from agents.repair import is_sound
from sessions_app import lease
from sessions_app.delete_exchange import DELETED, SUMMARY_MAY_HOLD, delete_exchange
from sessions_app.errors import SessionRefused
from sessions_app.logs import SessionLog, read_session
from sessions_app.logs import records as make
from sessions_app.logs.deletion import places_of, rows_of_turn
from sessions_app.logs.records import Message
from sessions_app.logs.segments import read_segment
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf
from sessions_app.stamps import stamped
from tests.sessions.conftest import NOW
from tests.sessions.conversations import exchange, stamp_of, talked


def opened(session: Session) -> SessionLog:
    log = SessionLog(log_folder(session), log_leaf(session), epoch=session.lease_epoch)
    log.load()
    return log


def delete(session: Session, number: int, archives: int | None = None, user: Any = None) -> str:
    return delete_exchange(
        session=session, stamp=stamp_of(number), archives=archives, user=user, now=NOW
    ).text


def messages(session: Session) -> list[Message]:
    return read_session(log_folder(session), log_leaf(session))[1].messages


def said(session: Session) -> list[str]:
    """Every part of the raw log in a word or two."""
    return [
        str(part.get("tool_call_id") or part["content"]).rsplit("] ", 1)[-1]
        for message in messages(session)
        for part in message["parts"]
    ]


def deleted_rows(session: Session) -> list[str]:
    ui, _ = read_session(log_folder(session), log_leaf(session))
    return [row["id"] for row in ui.rows if row.get("deleted")]


def prompt(number: int, text: str = "") -> dict[str, Any]:
    words = stamped(stamp_of(number), text or f"question {number}")
    return {"part_kind": "user-prompt", "content": words}


def write(session: Session, *entries: tuple[Message, list[str]]) -> None:
    """Messages with their rows: a row for each stamped text, one for a reply."""
    log = opened(session)
    for message, ids in entries:
        rows: list[make.Row] = []
        if message["kind"] == "response":
            rows = [make.assistant_row(row_id=row_id, at="", blocks=[]) for row_id in ids]
        else:
            prompts = [part for part in message["parts"] if part["part_kind"] == "user-prompt"]
            for row_id, part in zip(ids, prompts, strict=True):
                text = part["content"] if isinstance(part["content"], str) else part["content"][-1]
                rows.append(make.user_row(row_id=row_id, at="", stamp=text[1:25], text=text[27:]))
        log.append(raw=[make.message(message, ids)], ui=[make.add(row) for row in rows])


def call(name: str) -> dict[str, Any]:
    return wire.tool_call_part(call_id=name, tool="grep", arguments={})


def result(name: str) -> dict[str, Any]:
    return wire.tool_result_part(call_id=name, tool="grep", text="found")


def request(*parts: dict[str, Any]) -> Message:
    return {"kind": "request", "parts": list(parts)}


def reply(*parts: dict[str, Any]) -> Message:
    return wire.reply_message(parts)


def test_message_and_answer_go_for_the_model_and_are_greyed_for_people(session: Session) -> None:
    talked(session, 3)
    assert delete(session, 1, archives=0) == DELETED
    assert said(session) == ["question 0", "answer 0", "question 2", "answer 2"]
    assert deleted_rows(session) == ["u1", "a1"]
    ui, raw = read_session(log_folder(session), log_leaf(session))
    assert [row["id"] for row in ui.rows] == ["u0", "a0", "u1", "a1", "u2", "a2"], "greyed, not gone"
    assert raw.rows == [("u0",), ("a0",), ("u2",), ("a2",)]
    session.refresh_from_db()
    exchange(opened(session), 3)
    assert said(session)[-2:] == ["question 3", "answer 3"]
    assert lease.live_holder(session.pk) is None


def test_the_admins_log_names_who_deleted_what(session: Session) -> None:
    talked(session, 3)
    user = User.objects.create_user("ann")
    with pytest.raises(SessionRefused):
        delete(session, 1, user=user)
    user.user_permissions.add(Permission.objects.get(codename="chat"))
    user = User.objects.get(pk=user.pk)
    with pytest.raises(SessionRefused):
        delete(session, 7, user=user)
    assert not LogEntry.objects.exists(), "what was refused was not decided"
    assert delete(session, 1, user=user) == DELETED
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id) == (user, session.pk)
    assert entry.change_message == f"Deleted the message of {stamp_of(1)} with its answers."


def test_calls_and_results_go_with_their_turn(session: Session) -> None:
    write(
        session,
        (request(prompt(0)), ["u0"]),
        (reply(call("c0")), ["a0"]),
        (request(result("c0")), []),
        (reply(wire.text_part("done 0")), ["b0"]),
        (request(prompt(1)), ["u1"]),
        (reply(wire.text_part("done 1")), ["a1"]),
    )
    delete(session, 0)
    assert said(session) == ["question 1", "done 1"]
    assert deleted_rows(session) == ["u0", "a0", "b0"]


def soft_interrupt(session: Session) -> None:
    """Question 1 came in while call c0 ran: it stands behind c0's result."""
    write(
        session,
        (request(prompt(0)), ["u0"]),
        (reply(call("c0")), ["a0"]),
        (request(result("c0"), prompt(1)), ["u1"]),
        (reply(call("c1")), ["a1"]),
        (request(result("c1"), prompt(2)), ["u2"]),
        (reply(wire.text_part("done")), ["a2"]),
    )


@pytest.mark.parametrize(
    ("number", "left"),
    [
        (0, ["question 1", "c1", "c1", "question 2", "done"]),
        (1, ["question 0", "c0", "c0", "question 2", "done"]),
        (2, ["question 0", "c0", "c0", "question 1", "c1", "c1"]),
    ],
)
def test_pairs_are_never_split_where_turns_interrupted_each_other(
    session: Session, number: int, left: list[str]
) -> None:
    soft_interrupt(session)
    delete(session, number)
    assert said(session) == left
    assert is_sound(messages(session)), "every call has its result, every result its call"


@pytest.mark.parametrize(
    ("numbers", "left", "greyed"),
    [
        ([0], ["question 1", "question 2", "done"], ["u0"]),
        ([1], ["question 0", "question 2", "done"], ["u1"]),
        ([2], ["question 0", "question 1"], ["u2", "a2"]),
        ([2, 0], ["question 1"], ["u0", "u2", "a2"]),
        ([0, 1, 2], [], ["u0", "u1", "u2", "a2"]),
    ],
)
def test_of_merged_messages_the_last_one_owns_the_reply(
    session: Session, numbers: list[int], left: list[str], greyed: list[str]
) -> None:
    merged = request(prompt(0), prompt(1), prompt(2))
    write(session, (merged, ["u0", "u1", "u2"]), (reply(wire.text_part("done")), ["a2"]))
    for number in numbers:
        delete(session, number)
    assert said(session) == left
    assert deleted_rows(session) == greyed


def test_images_go_with_their_text(session: Session) -> None:
    picture = ("image/png", b"\x89PNG")
    first = wire.user_message(stamped(stamp_of(0), "see"), [picture])["parts"][0]
    refused = {"part_kind": "user-prompt", "content": [wire.IMAGE_REMOVED, stamped(stamp_of(1), "and this")]}
    third = wire.user_message(stamped(stamp_of(2), "mine"), [picture])["parts"][0]
    write(session, (request(first, refused, third), ["u0", "u1", "u2"]), (reply(wire.text_part("ok")), ["a"]))
    delete(session, 1)
    delete(session, 0)
    (kept,) = messages(session)[0]["parts"]
    assert kept == third


def test_texts_in_one_part_are_told_apart_with_their_images(session: Session) -> None:
    image = {"kind": "binary", "media_type": "image/png", "data": "AAAA"}
    content = [image, stamped(stamp_of(0), "see"), image, image, stamped(stamp_of(1), "these")]
    log = opened(session)
    log.append(
        raw=[make.message(request({"part_kind": "user-prompt", "content": content}), ["u0", "u1"])],
        ui=[make.add(make.user_row(row_id=f"u{n}", at="", stamp=stamp_of(n), text="see")) for n in range(2)],
    )
    delete(session, 0)
    assert messages(session)[0]["parts"][0]["content"] == content[2:]
    assert read_session(log_folder(session), log_leaf(session))[1].rows == [("u1",)]


def summarised(session: Session, *, keep: int) -> None:
    log = opened(session)
    _, raw = read_session(log_folder(session), log_leaf(session))
    summary = wire.summary_message("They talked.", of=len(raw.messages) - keep, kept=keep)
    log.replace_history([summary, *raw.messages[-keep:]], [(), *raw.rows[-keep:]])


def test_a_row_older_than_the_summary_is_deleted_for_people_alone(session: Session) -> None:
    talked(session, 3)
    summarised(session, keep=2)
    before = messages(session)
    assert delete(session, 0) == SUMMARY_MAY_HOLD
    assert messages(session) == before
    assert deleted_rows(session) == ["u0", "a0"]
    assert delete(session, 2) == DELETED, "kept word for word behind the summary"
    assert said(session) == ["They talked."]


def test_an_archived_row_is_greyed_in_its_segment(session: Session) -> None:
    talked(session, 3)
    summarised(session, keep=4)
    opened(session).archive(over=0)
    assert delete(session, 0, archives=1) == SUMMARY_MAY_HOLD
    assert delete(session, 1, archives=1) == DELETED
    rows = read_segment(log_folder(session), log_leaf(session), 1).rows
    assert [row["id"] for row in rows if row.get("deleted")] == ["u0", "a0", "u1", "a1"]
    assert said(session) == ["They talked.", "question 2", "answer 2"]


def files(session: Session) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(log_folder(session).iterdir())}


def refused(session: Session, number: int, code: str, **more: Any) -> None:
    before = files(session)
    with pytest.raises(SessionRefused) as found:
        delete(session, number, **more)
    assert found.value.code == code
    assert files(session) == before, "a refusal changes nothing"


def test_refused_while_the_session_runs(session: Session) -> None:
    talked(session, 2)
    held = lease.acquire(session.pk)
    refused(session, 0, "running")
    assert Session.objects.get(pk=session.pk).lease_epoch == held.epoch


def test_refused_without_the_permission(session: Session) -> None:
    talked(session, 2)
    user = User.objects.create_user("viewer")
    refused(session, 0, "forbidden", user=user)
    user.user_permissions.add(Permission.objects.get(codename="chat"))
    assert delete(session, 0, user=User.objects.get(pk=user.pk)) == DELETED


def test_refused_when_an_archive_moved_the_start(session: Session) -> None:
    talked(session, 3).archive(over=0)
    refused(session, 2, "archived", archives=0)
    assert delete(session, 2, archives=1) == DELETED


def test_refused_for_an_unknown_stamp_and_for_what_was_deleted(session: Session) -> None:
    talked(session, 2)
    refused(session, 7, "not_found")
    delete(session, 1)
    refused(session, 1, "deleted")


@pytest.mark.parametrize("summary", [False, True])
def test_refused_when_a_later_row_is_not_in_the_raw_history(session: Session, summary: bool) -> None:
    log = talked(session, 2)
    if summary:
        summarised(session, keep=2)
        log = opened(session)
    row = make.user_row(row_id="u9", at="", stamp=stamp_of(9), text="question 0")
    log.append(ui=[make.add(row)])
    refused(session, 9, "raw_unmatched")


def test_refused_when_a_stamp_stands_twice(session: Session) -> None:
    log = talked(session, 2)
    log.append(raw=[make.message(request(prompt(0)))])
    refused(session, 0, "raw_unmatched")
    row = make.user_row(row_id="again", at="", stamp=stamp_of(1), text="twin")
    log.append(ui=[make.add(row)])
    refused(session, 1, "raw_unmatched")


def test_refused_in_a_damaged_segment(session: Session) -> None:
    talked(session, 30).archive(over=0)
    path = log_folder(session) / f"{log_leaf(session)}.arch.1.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-9])
    refused(session, 0, "damaged")


def test_a_deletion_that_died_in_between_is_finished_by_the_next_writer(session: Session) -> None:
    log = talked(session, 3)
    ui, raw = read_session(log_folder(session), log_leaf(session))
    log.append(ui=[make.set_field(row["id"], "deleted", True) for row in rows_of_turn(ui.rows, 2)])
    assert places_of(stamp_of(1), raw.messages)
    opened(session)
    assert said(session) == ["question 0", "answer 0", "question 2", "answer 2"]


def test_hostile_stamps_find_nothing(session: Session, tmp_path: Path) -> None:
    talked(session, 1)
    before = files(session)
    for stamp in ("", "[", "../x", "\0", "x" * 100_000, "%"):
        with pytest.raises(SessionRefused, match="No message"):
            delete_exchange(session=session, stamp=stamp, archives=None, user=None, now=NOW)
    assert files(session) == before
