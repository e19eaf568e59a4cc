"""Whole conversations in a session's logs, as a writer leaves them."""

from __future__ import annotations

from sessions_app.logs import SessionLog
from sessions_app.logs import records as make
from sessions_app.logs.records import Message
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf
from sessions_app.stamps import stamped


def stamp_of(number: int) -> str:
    return f"2026-01-31T09:{number // 60:02d}:{number % 60:02d}.000Z"


def exchange(log: SessionLog, number: int) -> list[Message]:
    """Question and answer ``number``, in both logs."""
    stamp, question, answer = stamp_of(number), f"question {number}", f"answer {number}"
    messages: list[Message] = [
        {
            "kind": "request",
            "parts": [{"part_kind": "user-prompt", "content": stamped(stamp, question)}],
        },
        {"kind": "response", "parts": [{"part_kind": "text", "content": answer}]},
    ]
    blocks = [{"type": "text", "text": answer}]
    log.append(
        raw=[make.message(messages[0], [f"u{number}"]), make.message(messages[1], [f"a{number}"])],
        ui=[
            make.add(make.user_row(row_id=f"u{number}", at=stamp, stamp=stamp, text=question)),
            make.add(make.assistant_row(row_id=f"a{number}", at=stamp, blocks=blocks)),
        ],
    )
    return messages


def talked(session: Session, exchanges: int) -> SessionLog:
    log = SessionLog(log_folder(session), log_leaf(session), epoch=session.lease_epoch)
    log.load()
    for number in range(exchanges):
        exchange(log, number)
    return log


def with_an_archive(session: Session) -> None:
    """Three exchanges, the first two of them archived."""
    talked(session, 3).archive(over=0)
