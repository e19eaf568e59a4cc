"""What happens at the end of a turn whose history was compacted: a registry that the upper floors fill.

``register`` is called in an ``AppConfig.ready``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from sessions_app.models import Session

Hook = Callable[[Session, datetime], None]

logger = logging.getLogger(__name__)
_hooks: dict[str, Hook] = {}


def register(name: str, hook: Hook) -> None:
    """Have ``hook`` called once for each turn that compacted; the same name again replaces it.

    It is called off the event loop, with the row as it stands, when the logs hold the shorter history and
    before the session's debt to another one is settled.
    """
    _hooks[name] = hook


def turn_compacted(session: Session, *, now: datetime) -> None:
    """Tell everybody who registered. What fails there is logged: the turn is over and its answer stands."""
    for name, hook in _hooks.items():
        try:
            hook(Session.objects.select_related("workspace").get(pk=session.pk), now)
        except Exception:
            logger.exception("Session %s was compacted; %s failed at it", session.pk, name)
