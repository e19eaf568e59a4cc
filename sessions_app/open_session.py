"""A root session while this process works it: lease, logs, history. Every function here is whole and synchronous."""

from __future__ import annotations

import base64
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from agents import history as wire
from agents.context_size import context_tokens
from agents.events import Message, Usage
from agents.turn import TurnOutcome
from core import clock, folders
from core.db.text import storable
from core.paths import HaloHome
from core.settings_file import Settings
from sessions_app import lease, queue, reply_to, stamps
from sessions_app.count_tokens import count_tokens
from sessions_app.create import announce
from sessions_app.errors import SessionRefused, SessionUnreadable
from sessions_app.logs import FsyncPolicy, LeaseLostError, RawView, SessionLog, UiView
from sessions_app.logs import records as make
from sessions_app.models import QueuedMessage, Session, TokensOnDay
from sessions_app.places import log_folder, log_leaf
from sessions_app.settlement import settle_turn
from sessions_app.titles import title_of
from sessions_app.turn_compacted import turn_compacted

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class OpenSession:
    """``history`` and ``rows`` (which ui rows show each message) agree with the raw log at every moment.

    ``stamps``: of every message that stands in the logs. ``pending``: ids of queued messages that stand in the
    history and whose turn hasn't ended. ``compacted``: a turn that hasn't ended has shortened the history.
    ``report_chars``: where a report of this session is cut. ``to_wake``: sessions that were told something.
    """

    row: Session
    held: lease.Lease
    log: SessionLog
    history: list[Message]
    rows: list[Sequence[str]]
    stamps: set[str]
    pending: list[int] = field(default_factory=list)
    compacted: bool = False
    report_chars: int = 8192
    to_wake: list[str] = field(default_factory=list)


def open_session(session_id: str, *, home: HaloHome, held: lease.Lease | None = None) -> OpenSession:
    """Read the logs, mended, under the lease of the tree; without ``held`` the lease is taken first.

    Raises SessionHeld, SessionRefused, OSError; SessionUnreadable when the workspace isn't there: its history
    isn't either, so nothing may be answered, and what waits goes on waiting.
    """
    own = lease.acquire(session_id.split(">", 1)[0]) if held is None else None
    try:
        return _opened(session_id, home, held or own)
    except BaseException:
        if own is not None:
            lease.release(own)
        raise


def _opened(session_id: str, home: HaloHome, held: lease.Lease | None) -> OpenSession:
    row = Session.objects.select_related("workspace").filter(pk=session_id).first()
    if row is None or held is None:
        raise SessionRefused(f"There is no session {session_id}.", "not_found")
    _make_log_folder(row)
    settings = Settings.load(home, row.workspace.paths)
    log, ui, raw = _opened_log(row, held, settings.get("general.session.fsync"))
    # A compaction takes stamps out of the history; the rows keep them, archived ones in the log's head.
    known = stamps.in_history(raw.messages) | set(ui.stamps)
    known |= {line["stamp"] for line in ui.rows if line.get("stamp")}
    opened = OpenSession(row, held, log, raw.messages, list(raw.rows), known)
    opened.report_chars = settings.get("general.limits.auto_report_chars")
    _settle_answered(opened)
    return opened


def close_session(opened: OpenSession) -> bool:
    """Give the lease back; True when messages came in that another pass has to work."""
    lease.release(opened.held)
    return queue.wants_turn(opened.row.pk)


def take_batch(opened: OpenSession) -> bool:
    """Put everything that waits into the history, durably; True when a turn is due for it.

    Nothing is taken unless some message asks for a turn.
    """
    rows = queue.waiting(opened.row.pk)
    if not any(row.starts_turn for row in rows):
        return False
    _take(opened, rows)
    return True


def _take(opened: OpenSession, rows: Sequence[QueuedMessage]) -> None:
    """A message whose stamp stands in the history already isn't put there again."""
    fresh = [row for row in rows if row.stamp not in opened.stamps]
    if fresh:
        _append(opened, fresh)
    opened.pending = [row.pk for row in rows]


def finish_turn(
    opened: OpenSession, outcome: TurnOutcome, *, spent: Usage, context_tokens: int, now: datetime
) -> None:
    """The end of a turn: logs durable, then the row, the queue and the event in one transaction.

    A turn that ended softly leaves its messages pending: the follow-up turn answers them. Raises
    LeaseLostError, and then nothing is marked: a successor answers.
    """
    opened.log.end_turn()
    if outcome.status != "interrupted":
        _tell_compacted(opened, now)
    with transaction.atomic():
        _hold(opened)
        lease.confirm(opened.held)
        if outcome.status != "interrupted":
            queue.mark_worked(opened.pending, now=now)
        values: dict[str, object] = {
            "total_output_tokens": F("total_output_tokens") + spent.output_tokens,
            "last_activity_at": now,
        }
        if outcome.status == "completed":
            values |= _answered_with(outcome.text)
        if context_tokens:
            values["context_tokens"] = context_tokens
        Session.objects.filter(pk=opened.row.pk).update(**values)
        announce(opened.row, change="turn_ended", now=now)
        told = settle_turn(opened.row.pk, outcome, max_chars=opened.report_chars, now=now)
        _count(opened, spent, now)  # last: every turn of the workspace writes this row
    opened.to_wake += told
    if outcome.status != "interrupted":
        opened.pending = []


def _hold(opened: OpenSession) -> None:
    """The rows that the end of a root's turn writes to, in the order in which everybody locks them."""
    if opened.row.is_root:
        reply_to.hold(opened.row.pk)


def finish_compaction(opened: OpenSession, *, spent: Usage, now: datetime) -> None:
    """The end of a compaction that was asked for: as the end of a turn, but nothing was answered."""
    opened.log.end_turn()
    values: dict[str, object] = {"total_output_tokens": F("total_output_tokens") + spent.output_tokens}
    if opened.compacted:
        values["context_tokens"] = context_tokens(opened.history)
    _tell_compacted(opened, now)
    with transaction.atomic():
        lease.confirm(opened.held)
        _count(opened, spent, now)
        Session.objects.filter(pk=opened.row.pk).update(last_activity_at=now, **values)
        announce(opened.row, change="compacted", now=now)


def _count(opened: OpenSession, spent: Usage, now: datetime) -> None:
    count_tokens(workspace_id=opened.row.workspace_id, use=TokensOnDay.Use.CHAT, spent=spent, now=now)


def _tell_compacted(opened: OpenSession, now: datetime) -> None:
    """Once for each turn that compacted, whoever takes an interest or not."""
    if opened.compacted:
        opened.compacted = False
        _archive(opened)
        turn_compacted(opened.row, now=now)


def _archive(opened: OpenSession) -> None:
    """A ui log that is long now gets short; one that can't be archived stays long, and nothing is lost."""
    try:
        opened.log.archive()
    except OSError:
        logger.exception("Session %s: its earlier rows could not be archived", opened.row.pk)


def land_turn(opened: OpenSession, *, spent: Usage, now: datetime) -> None:
    """A turn that a shutdown cut off: what is there stays, its messages go on waiting for the successor."""
    note(opened, "The server was shut down during this turn; it goes on when the server is up again.")
    opened.log.end_turn()
    last = opened.history[-1] if opened.history else None
    values: dict[str, object] = {
        "total_output_tokens": F("total_output_tokens") + spent.output_tokens,
        "last_activity_at": now,
    }
    if last is not None and last["kind"] == "response" and wire.message_text(last):
        values["output"] = storable(wire.message_text(last))
    with transaction.atomic():
        lease.confirm(opened.held)
        _count(opened, spent, now)
        Session.objects.filter(pk=opened.row.pk).update(**values)
        announce(opened.row, change="turn_ended", now=now)


def fold_unanswered(opened: OpenSession, *, now: datetime) -> int:
    """After a stop (``stop_tree.mark_stopped``): what waited goes into the history without a turn.

    What came in after the stop goes on waiting for its turn. Returns how many messages were folded.
    """
    _take(opened, [row for row in queue.waiting(opened.row.pk) if not row.starts_turn])
    count = len(opened.pending)
    opened.log.end_turn()
    with transaction.atomic():
        lease.confirm(opened.held)
        queue.mark_worked(opened.pending, now=now)
        Session.objects.filter(pk=opened.row.pk).update(last_activity_at=now)
        announce(opened.row, change="stopped", now=now)
    opened.pending = []
    return count


def note(opened: OpenSession, text: str, *, kind: str = "note") -> None:
    """A system row in what a person sees; the model doesn't."""
    row = make.system_row(row_id=make.new_row_id(), at=clock.stamp(clock.now()), kind=kind, text=text)
    opened.log.append(ui=[make.add(row)])


def _make_log_folder(row: Session) -> None:
    paths = row.workspace.paths
    try:
        folders.make_below(paths.halo, log_folder(row))
    except FileNotFoundError as gone:
        raise SessionUnreadable(
            f"The workspace {paths.root} is gone, or its .halo folder is. Put it back, or run: halo workspace "
            f"move {paths.root} NEW_PATH. What was accepted is kept and worked then."
        ) from gone


def _opened_log(row: Session, held: lease.Lease, fsync: FsyncPolicy) -> tuple[SessionLog, UiView, RawView]:
    """The log under this lease, loaded.

    A log with a higher epoch than the row (an older database was put back) lifts the lease above it: we hold
    the row.
    """

    def made() -> SessionLog:
        return SessionLog(log_folder(row), log_leaf(row), epoch=held.epoch, fsync=fsync, fence=held.check)

    log = made()
    try:
        return log, *log.load()
    except LeaseLostError as error:
        held.check()
        lease.lift(held, above=error.epoch)
    log = made()
    return log, *log.load()


def ends_answered(history: Sequence[Message]) -> bool:
    """Whether the last message is a reply that ended its turn, not one that a shutdown cut off."""
    if not history or history[-1]["kind"] != "response" or wire.tool_calls(history[-1]):
        return False
    return not wire.message_text(history[-1]).endswith(wire.PARTIAL_SHUTDOWN)


def _settle_answered(opened: OpenSession) -> None:
    """Messages that an earlier process answered, but didn't mark any more before it died: the turn's end."""
    if not ends_answered(opened.history):
        return
    answered = [row.pk for row in queue.waiting(opened.row.pk) if row.stamp in opened.stamps]
    if not answered:
        return
    now = clock.now()
    outcome = TurnOutcome("completed", wire.message_text(opened.history[-1]))
    with transaction.atomic():
        _hold(opened)
        lease.confirm(opened.held)
        queue.mark_worked(answered, now=now)
        Session.objects.filter(pk=opened.row.pk).update(last_activity_at=now, **_answered_with(outcome.text))
        announce(opened.row, change="turn_ended", now=now)
        told = settle_turn(opened.row.pk, outcome, max_chars=opened.report_chars, now=now)
    opened.to_wake += told


def _answered_with(text: str) -> dict[str, Any]:
    """The row after an answer; one without a text leaves the last output as it is."""
    values: dict[str, Any] = {"exchange_count": F("exchange_count") + 1}
    return values | ({"output": storable(text)} if text else {})


def _append(opened: OpenSession, fresh: Sequence[QueuedMessage]) -> None:
    """One message of the history for the whole batch, one ui row for each."""
    parts, shown, ids = [], [], []
    for row in fresh:
        text = stamps.stamped(row.stamp, row.text, source=row.source_session)
        images = [(image["media_type"], base64.urlsafe_b64decode(image["data"])) for image in row.images]
        parts += wire.user_message(text, images)["parts"]
        ids.append(make.new_row_id())
        shown.append(
            make.user_row(
                row_id=ids[-1],
                at=row.stamp,
                stamp=row.stamp,
                text=row.text,
                images=row.images,
                source=row.source_session,
            )
        )
    message: Message = {"kind": "request", "parts": parts}
    opened.log.append(raw=[make.message(message, ids)], ui=[make.add(row) for row in shown], sync=True)
    opened.history.append(message)
    opened.rows.append(tuple(ids))
    opened.stamps.update(row.stamp for row in fresh)
    title = title_of(fresh[0].text)
    if title:
        Session.objects.filter(pk=opened.row.pk, title="").update(title=title)
