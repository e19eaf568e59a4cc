"""Who looks on while sessions are worked in this process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from agents.events import AgentEvent
from sessions_app.running_sessions import Watcher

logger = logging.getLogger(__name__)


class Watchers:
    """From any thread."""

    def __init__(self) -> None:
        self._watchers: dict[str, dict[object, Watcher]] = {}
        self._lock = threading.Lock()

    def add(self, session_id: str, fn: Watcher) -> Callable[[], None]:
        """Returns what takes it out again."""
        key = object()
        with self._lock:
            self._watchers.setdefault(session_id, {})[key] = fn

        def remove() -> None:
            with self._lock:
                held = self._watchers.get(session_id, {})
                held.pop(key, None)
                if not held:
                    self._watchers.pop(session_id, None)

        return remove

    def tell(self, session_id: str, event: AgentEvent) -> None:
        with self._lock:
            watchers = list(self._watchers.get(session_id, {}).values())
        for fn in watchers:
            try:
                fn(event)
            except Exception:  # a view that fails ends no turn
                logger.exception("A view of session %s failed", session_id)
