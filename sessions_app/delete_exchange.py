"""Deleting one user turn with its answers: greyed in what a person sees, gone from what the model sees."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from agents import history as wire
from sessions_app import lease, queue
from sessions_app.admin_log import note
from sessions_app.create import announce
from sessions_app.errors import NotInServer, SessionHeld, SessionRefused
from sessions_app.logs import LeaseLostError, RawView, Row, SessionLog, UiView
from sessions_app.logs.deletion import Place, places_of, rows_of_turn
from sessions_app.logs.segments import read_segment
from sessions_app.models import Session
from sessions_app.places import log_folder, log_leaf
from sessions_app.worker import worker

CHAT = "workspaces.chat"

DELETED = "The exchange was deleted."
SUMMARY_MAY_HOLD = (
    "The exchange was deleted from what is shown here. It is older than the last summary, which may still hold "
    "its content."
)


@dataclass(frozen=True, slots=True)
class Deleted:
    """``text``: what the person is told."""

    text: str


def delete_exchange(
    *, session: Session, stamp: str, archives: int | None, user: Any, now: datetime
) -> Deleted:
    """Delete the turn of the message with this arrival stamp. ``user`` None: a person at the terminal.

    ``archives``: how many archived parts the caller's view counted (None: it shows no numbers, as REST without
    it). Raises SessionRefused, and then nothing was changed: ``forbidden``, ``not_found``, ``running`` (a turn
    or a compaction), ``archived``, ``deleted``, ``damaged`` (an archived part), ``raw_unmatched``. Raises OSError.
    """
    if user is not None and not user.has_perm(CHAT):
        raise SessionRefused(
            f"You may not delete anything here: the permission {CHAT} is needed.", "forbidden"
        )
    try:
        held = lease.acquire(session.root_id)
    except SessionHeld as error:
        raise SessionRefused(
            "The session is at work (a turn or a compaction). Stop it, or wait until it has ended.", "running"
        ) from error
    try:
        text = _deleted(session, held, stamp, archives)
    except LeaseLostError as error:
        raise SessionRefused(f"Another process works this session now: {error}", "running") from error
    finally:
        lease.release(held)
        _wake(session)
    with transaction.atomic():
        announce(session, change="exchange_deleted", now=now)
        note(session, f"Deleted the message of {stamp[:40]} with its answers.", user=user, now=now)
    return Deleted(text)


def _deleted(session: Session, held: lease.Lease, stamp: str, archives: int | None) -> str:
    log = SessionLog(log_folder(session), log_leaf(session), epoch=held.epoch, fence=held.check)
    try:
        ui, raw = log.load()
    except LeaseLostError as error:
        lease.lift(held, above=error.epoch)
        log = SessionLog(log_folder(session), log_leaf(session), epoch=held.epoch, fence=held.check)
        ui, raw = log.load()
    if archives is not None and archives != ui.archived:
        raise SessionRefused(
            "Earlier rows of this session were archived since this page was opened. Load it again.",
            "archived",
        )
    rows, place = _found(session, ui, stamp)
    target = rows[place]
    if target.get("deleted"):
        raise SessionRefused("This exchange was deleted before.", "deleted")
    spot = _spot(ui, raw, target, stamp)
    log.delete(rows_of_turn(rows, place), ui, raw, spot)
    return DELETED if spot is not None else SUMMARY_MAY_HOLD


def _found(session: Session, ui: UiView, stamp: str) -> tuple[list[Row], int]:
    """The rows of the part that shows the message, and where in them its own row stands."""
    found = [(ui.rows, place) for place in _places(ui.rows, stamp)]
    for number in range(ui.archived, 0, -1) if not found else ():
        segment = read_segment(log_folder(session), log_leaf(session), number)
        there = [(segment.rows, place) for place in _places(segment.rows, stamp)]
        if there and not segment.whole:
            raise SessionRefused(
                f"Part {number} of the earlier conversation is damaged, so nothing in it can be changed.",
                "damaged",
            )
        found += there
    if not found:
        raise SessionRefused(f"No message with the stamp {stamp[:40]} is shown here.", "not_found")
    if len(found) > 1:
        raise SessionRefused(
            "Two messages carry this stamp, so neither can be told apart in the history.", "raw_unmatched"
        )
    return found[0]


def _places(rows: list[Row], stamp: str) -> list[int]:
    return [n for n, row in enumerate(rows) if stamp and row["role"] == "user" and row.get("stamp") == stamp]


def _spot(ui: UiView, raw: RawView, target: Row, stamp: str) -> Place | None:
    """Where the model reads it; None for a row that a summary stands for now."""
    places = places_of(stamp, raw.messages)
    if len(places) == 1:
        return places[0]
    if not places and _is_older_than_summary(ui, raw, target):
        return None
    reason = "stands there twice" if places else "isn't there: it never reached the model"
    raise SessionRefused(
        f"The history that the model reads can't be matched: the message {reason}. Nothing was deleted.",
        "raw_unmatched",
    )


def _is_older_than_summary(ui: UiView, raw: RawView, target: Row) -> bool:
    """Rows before the first that a message still names went into the summary; archived ones did in any case."""
    if not any(map(wire.is_summary, raw.messages)):
        return False
    shown = {row["id"]: place for place, row in enumerate(ui.rows)}
    if target["id"] not in shown:
        return True
    named = [shown[row_id] for rows in raw.rows for row_id in rows if row_id in shown]
    return shown[target["id"]] < min(named, default=len(ui.rows))


def _wake(session: Session) -> None:
    """A message that came in meanwhile found the session held."""
    if queue.wants_turn(session.pk):
        with suppress(NotInServer):
            worker().wake(session.pk)
