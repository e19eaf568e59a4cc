"""How many sessions one process works at once, and who comes next."""

from __future__ import annotations

from collections import Counter

from sessions_app.trees import root_of


class WaitingLine:
    """At most ``bound`` sessions at work; further trees wait in the order in which they came.

    A session of a tree that is at work never waits: what a parent waits for can't stand behind the parent, nor
    a report behind those who came later. So a tree may go beyond ``bound``, and then nobody else begins.
    """

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self._at_work: Counter[str] = Counter()
        self._waiting: dict[str, dict[str, None]] = {}

    def has_room_for(self, session_id: str) -> bool:
        if root_of(session_id) in self._at_work:
            return True
        return not self._waiting and self._at_work.total() < self.bound

    def wait(self, session_id: str) -> None:
        """Its tree keeps the place that it has in the line."""
        self._waiting.setdefault(root_of(session_id), {})[session_id] = None

    def began(self, session_id: str) -> None:
        """It works, whether there was room or not."""
        root_id = root_of(session_id)
        self._at_work[root_id] += 1
        waiting = self._waiting.get(root_id, {})
        waiting.pop(session_id, None)
        if not waiting:
            self._waiting.pop(root_id, None)

    def ended(self, session_id: str) -> None:
        root_id = root_of(session_id)
        self._at_work[root_id] -= 1
        if not self._at_work[root_id]:
            del self._at_work[root_id]

    def admitted(self) -> list[str]:
        """The sessions of the tree that waited longest, once there is room for it; they wait no longer."""
        if not self._waiting or self._at_work.total() >= self.bound:
            return []
        return list(self._waiting.pop(next(iter(self._waiting))))
