"""The leases this process holds: one for each tree, however many of its sessions are at work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from core import clock
from core.db.threads import DatabaseThreads
from core.paths import HaloHome
from sessions_app import lease, queue, requests
from sessions_app.restart import settle

LOOK_SEC = 1.0

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Tree:
    """A tree at work here. ``users``: how many of its sessions are being worked."""

    held: lease.Lease
    users: int = 0
    keeper: asyncio.Task[None] | None = None


@dataclass(slots=True)
class _Lock:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look at the database found for a tree: messages that wait for a turn, and what is asked of us."""

    waiting: dict[str, set[int]]
    asked: dict[str, str]


@dataclass(slots=True)
class TreeLeases:
    """``look`` is told every second what a tree's rows say; ``lost`` when a successor has taken the tree."""

    home: HaloHome
    threads: DatabaseThreads
    look: Callable[[Seen], None]
    lost: Callable[[str], None]
    _trees: dict[str, Tree] = field(default_factory=dict)
    _locks: dict[str, _Lock] = field(default_factory=dict)

    @asynccontextmanager
    async def hold(self, root_id: str) -> AsyncIterator[lease.Lease]:
        """The tree's lease, taken by the first session and given back by the last.

        Raises SessionHeld, SessionRefused, OSError.
        """
        tree = await self._enter(root_id)
        try:
            yield tree.held
        finally:
            await self._leave(root_id, tree)

    @asynccontextmanager
    async def _locked(self, root_id: str) -> AsyncIterator[None]:
        """One of this process's sessions of a tree at a time; in rest no lock is kept."""
        lock = self._locks.setdefault(root_id, _Lock())
        lock.users += 1
        try:
            async with lock.lock:
                yield
        finally:
            lock.users -= 1
            if not lock.users:
                self._locks.pop(root_id, None)

    async def _enter(self, root_id: str) -> Tree:
        async with self._locked(root_id):
            tree = self._trees.get(root_id)
            if tree is None:
                tree = Tree(await self.threads.run(_take, root_id, self.home))
                tree.keeper = asyncio.create_task(self._keep(tree))
                self._trees[root_id] = tree
            tree.users += 1
            return tree

    async def _leave(self, root_id: str, tree: Tree) -> None:
        async with self._locked(root_id):
            tree.users -= 1
            if tree.users:
                return
            if tree.keeper is not None:
                tree.keeper.cancel()
            self._trees.pop(root_id, None)
            await self.threads.run(lease.release, tree.held)

    async def _keep(self, tree: Tree) -> None:
        """Renew the lease, and look for what other processes accepted or asked."""
        renewed_at = clock.suspended_seconds()
        while True:
            await asyncio.sleep(LOOK_SEC)
            try:
                if clock.suspended_seconds() - renewed_at >= lease.RENEW_SEC:
                    if not await self.threads.run(lease.renew, tree.held):
                        self.lost(tree.held.root_id)
                        return
                    renewed_at = clock.suspended_seconds()
                self.look(await self.threads.run(_look, tree.held))
            except Exception:  # the lease's own deadline ends the writing if this goes on
                logger.exception("Session %s: lease and queue could not be looked after", tree.held.root_id)


def _take(root_id: str, home: HaloHome) -> lease.Lease:
    held = lease.acquire(root_id)
    try:
        settle(held, home=home, now=clock.now())
    except BaseException:
        lease.release(held)
        raise
    return held


def _look(held: lease.Lease) -> Seen:
    return Seen(queue.waiting_in_tree(held.root_id), requests.take_asked(held))
