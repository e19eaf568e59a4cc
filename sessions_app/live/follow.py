"""One follower for each session that somebody looks at in this process."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakKeyDictionary

from core.db.threads import DatabaseThreads
from core.frames import ChatSubscribed
from sessions_app.live import local
from sessions_app.live.catch_up import missed, row_id_of, row_now
from sessions_app.live.condition import Condition, changes, read_condition
from sessions_app.live.items import Item, discard_item, row_item
from sessions_app.live.view import MERGE_SEC, View
from sessions_app.logs.records import GrowingRow, Record
from sessions_app.logs.tail import LogRewrittenError, Tail
from sessions_app.logs.ui_view import merge_blocks

LOOK_SEC = 0.2
CONDITION_SEC = 1.0

logger = logging.getLogger(__name__)
in_thread = DatabaseThreads(count=2, name="chat-views").run
_followers: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Follower]] = WeakKeyDictionary()


def follower(session_id: str, path: Path) -> Follower:
    """This process's follower of the session; ``path`` is its ui log."""
    followers = _followers.setdefault(asyncio.get_running_loop(), {})
    if session_id not in followers:
        followers[session_id] = Follower(session_id, path, on_end=lambda: followers.pop(session_id, None))
    return followers[session_id]


@dataclass(slots=True)
class _Look:
    """What one look found. ``condition`` None: it wasn't time to ask."""

    items: list[Item] = field(default_factory=list)
    condition: Condition | None = None


class Follower:
    """Looks at the log five times a second, and as often as frames are merged while a reply streams here."""

    def __init__(self, session_id: str, path: Path, *, on_end: Callable[[], object]) -> None:
        self._session_id = session_id
        self._path = path
        self._on_end = on_end
        self._views: set[View] = set()
        self._joining = 0
        self._looking = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._log = _LogReader(session_id, path)
        self._found: list[Item] = []
        self._condition: Condition | None = None
        self._asked_at = 0.0

    async def join(self, view: View, *, after: int) -> None:
        """From here on the view has everything behind ``after``. Raises ReloadNeeded, OSError."""
        self._joining += 1
        if self._task is None:
            self._task = asyncio.create_task(self._follow())
        try:
            async with self._looking:
                await self._look_or_start_anew(ask=True)
                up_to, condition = self._log.tail.seq, self._condition or Condition()
                view.grow(self._log.growing)
                self._views.add(view)
            items = await in_thread(
                lambda: missed(self._session_id, self._path, after=after, up_to=up_to, html=view.html)
            )
            here = ChatSubscribed(session=self._session_id, last=up_to, working=condition.working)
            view.begin(items, [here.to_text(), *changes(self._session_id, None, condition)])
        except BaseException:
            self._views.discard(view)
            raise
        finally:
            self._joining -= 1
            self._end_if_unused()

    def leave(self, view: View) -> None:
        self._views.discard(view)
        self._end_if_unused()

    def _end_if_unused(self) -> None:
        if self._views or self._joining or self._task is None:
            return
        self._on_end()
        self._task.cancel()
        self._task = None

    async def _follow(self) -> None:
        with local.watching(self._session_id) as changed:
            while True:
                streams = self._log.growing is not None and local.growing(self._session_id) is not None
                await changed.wait(MERGE_SEC if streams else LOOK_SEC)
                try:
                    async with self._looking:
                        due = time.monotonic() - self._asked_at >= CONDITION_SEC
                        await self._look_or_start_anew(ask=due)
                except (
                    Exception
                ):  # the database or the share is away: views keep what they have until it is back
                    logger.exception("Session %s can't be looked at", self._session_id)
                    await asyncio.sleep(CONDITION_SEC)
                await asyncio.sleep(MERGE_SEC)

    async def _look_or_start_anew(self, *, ask: bool) -> None:
        try:
            await self._look(ask=ask)
        except LogRewrittenError as why:
            logger.info("Session %s is looked at anew: %s", self._session_id, why)
            self._start_anew()
            await self._look(ask=True)

    async def _look(self, *, ask: bool) -> None:
        here = local.growing(
            self._session_id
        )  # before the log: a row that the log retires isn't taken for new
        html = any(view.html for view in self._views)
        look = await in_thread(lambda: self._read(ask=ask, html=html))
        for item in [*look.items, *self._log.grow(here)]:
            for view in self._views:
                view.put(item)
        if look.condition is not None:
            self._asked_at = time.monotonic()
            for text in changes(self._session_id, self._condition, look.condition):
                for view in self._views:
                    view.tell(text)
            self._condition = look.condition
        for view in self._views:
            view.grow(self._log.growing)

    def _read(self, *, ask: bool, html: bool) -> _Look:
        """What was read of the log is kept for the next look when the database doesn't answer."""
        self._found += self._log.read(html=html)
        condition = None
        if ask or self._found:
            condition = read_condition(self._session_id, shown=self._log.stamps)
        look, self._found = _Look(self._found, condition), []
        return look

    def _start_anew(self) -> None:
        """Every view is told to, and follows nothing any more; who is just joining finds a new reader."""
        self._log = _LogReader(self._session_id, self._path)
        self._found = []
        for view in self._views:
            view.end("rewritten")
        self._views.clear()
        self._end_if_unused()


class _LogReader:
    """The log's records as items; which row grows, and in which order rows stand."""

    def __init__(self, session_id: str, path: Path) -> None:
        self._session_id = session_id
        self._path = path
        self._order: dict[str, None] = {}
        self._finished: set[str] = set()
        self._in_log: GrowingRow | None = None
        self._vanished = ""
        self._is_primed = False
        self.tail = Tail(path)
        self.stamps: set[str] = set()
        self.growing: GrowingRow | None = None

    def read(self, *, html: bool) -> list[Item]:
        """Off the loop. The first look makes none: nobody has joined. Raises LogRewrittenError, OSError."""
        records = self.tail.read()
        try:
            return self._items(records, html=html)
        except Exception as error:  # the tail is behind these records: what they say isn't read again
            raise LogRewrittenError(f"{self._path} can't be shown from here on: {error}") from error

    def _items(self, records: Sequence[Record], *, html: bool) -> list[Item]:
        items = []
        for record in records:
            if record["t"] == "head":
                self.stamps.update(record.get("stamps", ()))
            row_id = row_id_of(record)
            if not row_id:
                continue
            self._take(row_id, record)
            if self._is_primed and record["t"] != "inflight":
                items.append(self._item(row_id, record, html=html))
        self._is_primed = True
        return [item for item in items if item is not None]

    def grow(self, here: GrowingRow | None) -> list[Item]:
        """Choose what grows now: what streams in this process is ahead of the log.

        A row that streamed here and is nowhere any more was a call that failed before it was first saved;
        seen twice, since the log's last word on a row comes an instant after it has stopped streaming.
        """
        if here is not None and here.id in self._finished:
            here = None
        now, before = here or self._in_log, self.growing
        gone = before is not None and before.id not in self._finished and (now is None or now.id != before.id)
        if gone and before is not None and before.id not in self._order:
            if self._vanished != before.id:
                self._vanished = before.id
                return []
            self.growing = now
            return [discard_item(self._session_id, before.id, seq=None)]
        self._vanished = ""
        self.growing = now
        return []

    def _take(self, row_id: str, record: Record) -> None:
        if record["t"] == "inflight":
            self._grow_in_log(row_id, record)
            return
        self._finished.add(row_id)
        if record["t"] == "drop":
            self._order.pop(row_id, None)
        else:
            self._order.setdefault(row_id)
        stamp = record["row"].get("stamp") if record["t"] == "add" else None
        if isinstance(stamp, str):
            self.stamps.add(stamp)
        if self._in_log is not None and self._in_log.id == row_id:
            self._in_log = None
        if self.growing is not None and self.growing.id == row_id:
            self.growing = None

    def _grow_in_log(self, row_id: str, record: Record) -> None:
        if row_id in self._finished:
            return
        self._order.setdefault(row_id)
        known = self._in_log if self._in_log is not None and self._in_log.id == row_id else None
        blocks = list(known.blocks) if known else []
        merge_blocks(blocks, record["blocks"])
        self._in_log = GrowingRow(row_id, str(record.get("at", "")), tuple(blocks))

    def _item(self, row_id: str, record: Record, *, html: bool) -> Item | None:
        seq = record["seq"]
        if record["t"] == "drop":
            return discard_item(self._session_id, row_id, seq=seq)
        row = record["row"] if record["t"] == "add" else row_now(self._path, row_id)
        if row is None:
            return None
        before = record.get("before") or self._finished_behind(row_id)
        return row_item(self._session_id, row, seq=seq, before=before, html=html)

    def _finished_behind(self, row_id: str) -> str | None:
        """The next row behind it that views have: one that began later and ended earlier."""
        behind = None
        for known in reversed(self._order):
            if known == row_id:
                break
            if known in self._finished:
                behind = known
        return behind
