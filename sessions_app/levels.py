"""Access levels along a tree: nobody below has more than anybody above."""

from __future__ import annotations

from typing import get_args

from agents.turn import AccessLevel
from sessions_app import trees
from sessions_app.models import Session

LEVELS: tuple[AccessLevel, ...] = tuple(reversed(get_args(AccessLevel)))
"""The lowest first."""


def effective_level(session: Session) -> AccessLevel:
    """The lowest level of the session and of those above it, as the rows are now.

    A root that a person lowers takes its tree along; a value that no version wrote counts as the lowest.
    """
    rows = Session.objects.filter(pk__in=trees.line_of(session.pk))
    ranks = [_rank(level) for level in rows.values_list("access_level", flat=True)]
    return LEVELS[min(ranks, default=0)]


def _rank(level: str) -> int:
    return next((rank for rank, known in enumerate(LEVELS) if known == level), 0)
