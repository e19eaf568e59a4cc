"""Where a session's logs lie: ``<workspace>/.halo/sessions/<agentId>/<last segment of its id>.*``."""

from __future__ import annotations

from pathlib import Path

from core.ids import is_session_id
from sessions_app.models import Session


def log_folder(session: Session) -> Path:
    return session.workspace.paths.sessions / session.agent_id


def log_leaf(session: Session) -> str:
    """The name both logs share; ValueError for an id that could leave the folder."""
    if not is_session_id(session.id):
        raise ValueError(f"{session.id!r} is no session id.")
    return session.id.rsplit(">", 1)[-1]


def raw_log(session: Session) -> Path:
    return log_folder(session) / f"{log_leaf(session)}.raw.jsonl"


def ui_log(session: Session) -> Path:
    return log_folder(session) / f"{log_leaf(session)}.ui.jsonl"
