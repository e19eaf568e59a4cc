"""Writing to both logs of one session: numbers, durability, and whoever else wrote meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NoReturn

from core import clock
from sessions_app.logs import records as make
from sessions_app.logs.lines import Scan, scan
from sessions_app.logs.log_file import ForeignChangeError, LeaseLostError, LogFile, Stamp
from sessions_app.logs.raw_view import RawView, fold_raw
from sessions_app.logs.records import Message, Record
from sessions_app.logs.repair import last_seq, repaired_raw, repaired_ui
from sessions_app.logs.ui_view import fold_ui, late_row

FsyncPolicy = Literal["turn", "always", "never"]

logger = logging.getLogger(__name__)


class LogWriter:
    """``<folder>/<leaf>.ui.jsonl`` and ``.raw.jsonl``, as their one writer appends to them.

    ``epoch`` is that of the lease held (0: a session that has no lease). ``fence`` is called before every
    write and raises LeaseLostError when the lease held in memory has run out. Where the logs end has to be known
    before the first append (``SessionLog.load``). Not for use by two threads at once.
    """

    def __init__(
        self,
        folder: Path,
        leaf: str,
        *,
        epoch: int = 0,
        fsync: FsyncPolicy = "turn",
        fence: Callable[[], None] = lambda: None,
    ) -> None:
        self.ui_file = LogFile(folder / f"{leaf}.ui.jsonl")
        self.raw_file = LogFile(folder / f"{leaf}.raw.jsonl")
        self.folder, self.leaf = folder, leaf
        self.damaged_path = folder / f"{leaf}.damaged"
        self.epoch = epoch
        self._fsync = fsync
        self._fence = fence
        self._seq = 0
        self._count = 0
        self._covers = ""
        self._lost = ""
        self.memory: Callable[[], tuple[list[Message], list[Sequence[str]]]] | None = None
        """The history as the running turn holds it, with what is about to be appended; None between turns."""

    @property
    def seq(self) -> int:
        """The number of the last record of the ui log."""
        return self._seq

    @property
    def message_count(self) -> int:
        return self._count

    def changed(self) -> bool:
        """Whether another process wrote since this one last read or wrote."""
        return self.ui_file.changed() or self.raw_file.changed()

    def append(self, *, ui: Sequence[Record] = (), raw: Sequence[Record] = (), sync: bool = False) -> None:
        """Append records, those of the raw log first. ``sync``: this save must survive the machine (rule 6).

        Numbers (``seq``, ``n``, ``e``) are filled in here. When somebody else wrote meanwhile: a newer epoch
        raises LeaseLostError and what we had to say is kept in a note, anything else loses to this writer and
        is kept in a note itself. Raises OSError with both logs whole.
        """
        try:
            self._fence()
        except LeaseLostError as error:
            self._give_up([*raw, *ui], str(error))
        if self._lost:
            self._give_up([*raw, *ui], self._lost)
        durable = self._fsync == "always" or (sync and self._fsync == "turn")
        if raw:
            self._append_raw(raw, durable, lost=ui)
        if ui:
            self._append_ui(ui, durable)

    def replace_history(
        self,
        messages: Sequence[Message],
        rows: Sequence[Sequence[str]] | None = None,
        *,
        covers: str = "",
    ) -> None:
        """Write the raw log anew (repair, compaction, images taken out); ``rows`` as in ``RawView.rows``.

        ``covers``: the last row that a new summary stands for; empty when there is no new one.
        """
        self._fence()
        self._covers = covers or self._covers
        data = self._whole_raw(messages, rows or [()] * len(messages))
        while True:
            try:
                self.raw_file.replace(data)
            except ForeignChangeError:
                self._settle_raw(lost=())
                continue
            self._count = len(messages)
            return

    def end_turn(self) -> None:
        """The save point at a turn's end: everything so far is made durable unless the setting says never."""
        if self._fsync == "never":
            return
        for file in (self.raw_file, self.ui_file):
            if file.path.exists():
                file.sync()

    def _whole_raw(self, messages: Sequence[Message], rows: Sequence[Sequence[str]]) -> bytes:
        view = RawView(list(messages), [tuple(ids) for ids in rows], covers=self._covers)
        return repaired_raw(view, self.epoch)

    def _append_raw(self, records: Sequence[Record], durable: bool, *, lost: Sequence[Record]) -> None:
        while True:
            count, numbered = self._count, []
            for record in records:
                if record["t"] == "msg":
                    numbered.append({**record, "n": count, "e": self.epoch})
                    count += 1
                else:
                    numbered.append({**record, "e": self.epoch})
            try:
                self.raw_file.append(make.encode(numbered), sync=durable)
            except ForeignChangeError:
                if self._settle_raw(lost=[*records, *lost]):
                    return
                continue
            self._count = count
            return

    def _append_ui(self, records: Sequence[Record], durable: bool) -> None:
        while True:
            data = make.encode(self._numbered(records))
            try:
                self.ui_file.append(data, sync=durable)
            except ForeignChangeError:
                self._settle_ui(lost=records)
                continue
            self._seq += len(records)
            return

    def _numbered(self, records: Sequence[Record]) -> list[Record]:
        return [
            {"seq": self._seq + place, "e": self.epoch, **record}
            for place, record in enumerate(records, start=1)
        ]

    def _settle_strangers(self) -> None:
        """In the middle of a turn what others wrote loses, as it does at an append."""
        if self.raw_file.changed():
            self._settle_raw(lost=())
        if self.ui_file.changed():
            self._settle_ui(lost=())

    def _settle_raw(self, *, lost: Sequence[Record]) -> bool:
        """The raw log changed under us: yield to a newer epoch, else move the stranger's rows into a note.

        The note is durable before the rows leave the raw log. True: the file had been replaced, and was
        written anew from the turn's memory, which holds what was to be appended.
        """
        known, end = self.raw_file.known, self.raw_file.known_end
        source = self.raw_file.read()
        found = fold_raw(scan(source.data))
        if found.epoch > self.epoch:
            self._give_up(lost, "Another process holds the session now.")
        replaced = _is_other(known, self.raw_file.known, source, end)
        if replaced and self.memory:
            messages, rows = self.memory()
            strange = [make.message(message) for message in found.messages if message not in messages]
            ours = self._whole_raw(messages, rows)
            theirs = Scan(records=strange)
        else:
            ours, theirs = _split(source, source.good_end if replaced else end)
        if theirs.records or theirs.damages:
            self._append_ui([make.add(self._note(theirs))], durable=True)
        self.raw_file.replace(ours)
        self._count = len(fold_raw(scan(ours)).messages)
        return bool(replaced and self.memory)

    def _settle_ui(self, *, lost: Sequence[Record]) -> None:
        known, end = self.ui_file.known, self.ui_file.known_end
        source = self.ui_file.read()
        if fold_ui(source).epoch > self.epoch:
            self._give_up(lost, "Another process holds the session now.")
        replaced = _is_other(known, self.ui_file.known, source, end)
        ours, theirs = _split(source, source.good_end if replaced else end)
        notes = [make.add(self._note(theirs))] if theirs.records or theirs.damages else []
        kept = scan(ours)
        seen = max(self._seq, last_seq(source))
        whole = repaired_ui(kept, fold_ui(kept), epoch=self.epoch, seen=seen, further=notes)
        self.ui_file.replace(whole.data)
        self._seq = whole.seq

    def _note(self, theirs: Scan) -> dict[str, object]:
        kept = [*theirs.records, *({"t": "bytes", "text": repr(damage.data)} for damage in theirs.damages)]
        logger.warning("%s: %d foreign records were put into a note", self.ui_file.path, len(kept))
        return late_row(kept, row_id=make.new_row_id(), at=clock.stamp(clock.now()))

    def _give_up(self, lost: Sequence[Record], reason: str) -> NoReturn:
        """Leave what we still had to say as a late record, which every reader names, and stop writing."""
        self._lost = reason
        if lost:
            data = make.encode([{"t": "late", "e": self.epoch, "records": list(lost)}])
            while True:
                self.ui_file.read()
                try:
                    self.ui_file.append(data, sync=True)
                    break
                except ForeignChangeError:
                    logger.debug("%s changed again", self.ui_file.path)
        raise LeaseLostError(reason)


def _split(source: Scan, end: int) -> tuple[bytes, Scan]:
    """Our own bytes, and what somebody appended behind them."""
    return source.data[:end], scan(source.data[end : source.good_end])


def _is_other(known: Stamp | None, found: Stamp | None, source: Scan, end: int) -> bool:
    """Whether the file isn't ours with something appended: a new file, a shorter one, another content."""
    if known is None or found is None or (end and known.inode != found.inode) or source.good_end < end:
        return True
    return bool(end) and source.data[end - 1 : end] != b"\n"
