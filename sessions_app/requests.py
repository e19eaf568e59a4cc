"""What is wanted of the process that works a session, when that is another one: stop, or interrupt.

A column of the session's row, which the holder of the tree's lease looks at every second. It is about that
lease: a holder that comes later takes no notice.
"""

from __future__ import annotations

from core.processes import ProcessIdentity
from sessions_app import trees
from sessions_app.lease import Lease, live_holder
from sessions_app.models import Session


def is_worked_elsewhere(session_id: str) -> bool:
    """Whether another process holds the tree."""
    return live_holder(trees.root_of(session_id)) not in (None, ProcessIdentity.current())


def ask(session_id: str, what: str) -> bool:
    """Ask whoever holds the tree; False when nobody else does. A stop isn't weakened to an interrupt."""
    if not is_worked_elsewhere(session_id):
        return False
    epoch = Session.objects.values_list("lease_epoch", flat=True).get(pk=trees.root_of(session_id))
    rows = Session.objects.filter(pk=session_id)
    if what != Session.Asked.STOP:
        rows = rows.exclude(asked=Session.Asked.STOP, asked_epoch=epoch)
    rows.update(asked=what, asked_epoch=epoch)
    return True


def take_asked(held: Lease) -> dict[str, str]:
    """What is asked of the holder, by session id; each is taken once."""
    rows = Session.objects.filter(trees.within(held.root_id))
    found = list(rows.exclude(asked="").values_list("pk", "asked", "asked_epoch"))
    taken = {}
    for session_id, what, epoch in found:
        rows = Session.objects.filter(pk=session_id, asked=what, asked_epoch=epoch)
        if rows.update(asked=Session.Asked.NOTHING) and epoch == held.epoch:
            taken[session_id] = what
    return taken
