"""A session's two append-only logs: what a person sees (``ui``), what the model sees (``raw``). No Django.

The format, precise enough to write a reader from, is in ``docs/sessions.md``. The rooms: ``records``
(shapes), ``lines`` (bytes to records), ``ui_view`` and ``raw_view`` (folds), ``log_file`` (one file and its
foreign writers), ``log_writer`` (appending to both), ``session_log`` (opening, mending and shortening them),
``agreement`` (what one view has and the other lost), ``recorder`` (events of a turn into both logs).
"""

from sessions_app.logs.log_file import LeaseLostError
from sessions_app.logs.log_writer import FsyncPolicy
from sessions_app.logs.raw_view import RawView, read_raw, read_raw_view
from sessions_app.logs.recorder import TurnRecorder
from sessions_app.logs.records import Message, Row
from sessions_app.logs.session_log import SessionLog
from sessions_app.logs.session_reader import read_session
from sessions_app.logs.ui_view import UiView, read_ui

__all__ = [
    "FsyncPolicy",
    "LeaseLostError",
    "Message",
    "RawView",
    "Row",
    "SessionLog",
    "TurnRecorder",
    "UiView",
    "read_raw",
    "read_raw_view",
    "read_session",
    "read_ui",
]
