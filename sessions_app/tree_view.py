"""A tree of sessions as people look at it: who started whom, and what each is doing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sessions_app import queue, reports, trees
from sessions_app.models import Session

SHOWN = 200


@dataclass(frozen=True, slots=True)
class Branch:
    """One session of a tree; ``depth`` is 0 for the root. ``leaf`` is the last segment of its id."""

    session: Session
    depth: int
    state: str

    @property
    def leaf(self) -> str:
        return self.session.pk.rsplit(trees.SEPARATOR, 1)[-1]


@dataclass(frozen=True, slots=True)
class TreeView:
    """``branches``: the root and its newest sub-sessions, each parent ahead of its children. ``count``: of all."""

    branches: list[Branch]
    count: int

    @property
    def left_out(self) -> int:
        return self.count - len(self.branches)


def state_of(row: Session) -> str:
    """As far as rows tell: a sub-session that owes a report is at work, about to be, or waits for those below."""
    if row.archived_at is not None:
        return "archived"
    if row.is_root:
        at_work = queue.wants_turn(row.pk) or reports.is_busy_below(row.pk)
        return "running" if at_work else "idle"
    if row.stopped_at is not None:
        return "stopped"
    return "running" if row.report_due else "idle"


def tree_of(session: Session) -> TreeView:
    """The whole tree that this session stands in."""
    root = session if session.is_root else Session.objects.get(pk=session.root_id)
    below = Session.objects.filter(trees.below(root.pk))
    newest = sorted(
        below.order_by("-created_at", "-pk")[:SHOWN], key=lambda row: row.pk.split(trees.SEPARATOR)
    )
    rows = [root, *newest]
    return TreeView([Branch(row, trees.depth_of(row.pk), state_of(row)) for row in rows], 1 + below.count())


def sub_session_counts(roots: Iterable[Session]) -> dict[str, int]:
    """How many sub-sessions each of these roots has; one without any isn't in it."""
    counts: dict[str, int] = {}
    ids = [root.pk for root in roots]
    for parent_id in Session.objects.filter(parent__in=ids).values_list("parent_id", flat=True):
        counts[str(parent_id)] = 0
    for root_id in counts:
        counts[root_id] = Session.objects.filter(trees.below(root_id)).count()
    return counts
