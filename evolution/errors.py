"""What can go wrong, sorted by who must act.

EvolutionError
├── Refused               the caller: asked for something that isn't possible now (``code``: HTTP 409 word)
├── PhaseFailed           the run or apply ends ``failed`` with this reason; a person decides what next
├── PhaseSkipped          the drafter found nothing to change: the run ends ``skipped``
└── ClaimLost             nobody: a newer wrapper or a person owns the row; stop writing and leave
"""

from __future__ import annotations

from typing import Any


class EvolutionError(Exception):
    """Base of everything this package raises on purpose."""


class Refused(EvolutionError):
    """``code`` is stable and machine-read; ``details`` lists what the answer should show."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.details = details


class PhaseFailed(EvolutionError):
    """``reason`` is shown as it is: a code where evolution.md names one, else a sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PhaseSkipped(PhaseFailed):
    """The reason the drafter wrote into ``.skip.md``."""


class ClaimLost(EvolutionError):
    """The row is no longer this wrapper's claim."""
