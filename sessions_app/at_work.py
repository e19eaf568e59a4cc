"""Whether a turn runs in a session, whichever process works it."""

from __future__ import annotations

from sessions_app import lease, ledger
from sessions_app.models import Session


def is_working(session: Session) -> bool:
    """A server names the sessions of a tree that it works; ``halo chat`` holds the lease of its one root."""
    if lease.live_holder(session.root_id) is None:
        return False
    named = set(ledger.entries(session.root_id).values_list("session_id", flat=True))
    return session.pk in named if named else session.is_root
