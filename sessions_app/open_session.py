"""Opening a session to work it: its logs read and mended, its history, and what an earlier process left open."""

from __future__ import annotations

from core import folders
from core.paths import HaloHome
from core.settings_file import Settings
from sessions_app import lease, stamps
from sessions_app.errors import SessionRefused, SessionUnreadable
from sessions_app.finish_turn import finish_answered
from sessions_app.logs import FsyncPolicy, LeaseLostError, RawView, SessionLog, UiView
from sessions_app.models import Session
from sessions_app.opened_session import OpenSession
from sessions_app.places import log_folder, log_leaf


def open_session(session_id: str, *, home: HaloHome, held: lease.Lease) -> OpenSession:
    """Under ``held``, the lease of its tree; a turn that is answered and wasn't ended is ended.

    Raises SessionRefused, LeaseLostError, OSError; SessionUnreadable when the workspace isn't there: its history
    isn't either, so nothing may be answered, and what waits goes on waiting.
    """
    row = Session.objects.select_related("workspace").filter(pk=session_id).first()
    if row is None:
        raise SessionRefused(f"There is no session {session_id}.", "not_found")
    _make_log_folder(row)
    settings = Settings.load(home, row.workspace.paths)
    log, ui, raw = _opened_log(row, held, settings.get("general.session.fsync"))
    # A compaction takes stamps out of the history; the rows keep them, archived ones in the log's head.
    known = stamps.in_history(raw.messages) | set(ui.stamps)
    known |= {line["stamp"] for line in ui.rows if line.get("stamp")}
    opened = OpenSession(row, held, log, raw.messages, list(raw.rows), known)
    opened.report_chars = settings.get("general.limits.auto_report_chars")
    finish_answered(opened)
    return opened


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
