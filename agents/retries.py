"""How often and how late a failed model call is tried again (the table "Errors and retries")."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from agents.errors import CallFailed


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Delays in seconds; they double, with up to a quarter of jitter on top, and never pass ``longest``."""

    tries: int = 5
    overload_first: float = 2.0
    connection_first: float = 1.0
    longest: float = 60.0
    jitter: Callable[[], float] = field(default=random.random)

    def delay(self, failure: CallFailed, failures: int) -> float:
        """Seconds to wait after the ``failures``-th failure in a row; the provider's own wish wins.

        A ``Retry-After`` beyond ``longest`` counts as ``longest``: a turn hung for an hour helps nobody.
        """
        if failure.retry_after is not None:
            return min(max(failure.retry_after, 0.0), self.longest)
        first = self.connection_first if failure.kind == "connection" else self.overload_first
        doubled: float = first * 2 ** (failures - 1)
        return min(doubled * (1 + self.jitter() / 4), self.longest)


NO_WAITING = RetryPolicy(overload_first=0.0, connection_first=0.0, longest=0.0)
"""For tests: the same number of tries, at once."""
