"""Both logs of one session, as its one writer sees them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

from core import clock, collector
from sessions_app.logs import records as make
from sessions_app.logs.agreement import agree
from sessions_app.logs.deletion import Place, marks, unfinished, without_turn
from sessions_app.logs.lines import Scan, scan
from sessions_app.logs.log_file import ForeignChangeError, LeaseLostError, LogFile, Stamp
from sessions_app.logs.raw_view import RawView, fold_raw
from sessions_app.logs.records import Message, Record, Row
from sessions_app.logs.repair import keep_aside, last_seq, repaired_raw, repaired_ui
from sessions_app.logs.segments import ARCHIVE_OVER, moved_out, recovered_head, set_in_segments
from sessions_app.logs.ui_view import UiView, fold_ui, late_row

FsyncPolicy = Literal["turn", "always", "never"]

logger = logging.getLogger(__name__)


class SessionLog:
    """The writer of ``<folder>/<leaf>.ui.jsonl`` and ``.raw.jsonl``.

    ``epoch`` is that of the lease held (0: a session that has no lease). ``fence`` is called before every
    write and raises LeaseLostError when the lease held in memory has run out. Call ``load`` before the first
    append. Not for use by two threads at once.
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

    def load(self) -> tuple[UiView, RawView]:
        """Read both logs, mend them, and take over where they end.

        A deletion that died in between is finished. Damage is moved to ``<leaf>.damaged`` and named by a row;
        rows that only one log holds are made to agree; a row left in flight is closed as interrupted; late
        writers' rows are kept in a note. Raises LeaseLostError when a newer epoch has written.
        """
        return self._load(close=True)

    def _load(self, *, close: bool) -> tuple[UiView, RawView]:
        with collector.at_rest():
            return self._load_whole(close=close)

    def _load_whole(self, *, close: bool) -> tuple[UiView, RawView]:
        self.folder.mkdir(parents=True, exist_ok=True)
        while True:
            ui_scan, raw_scan = self.ui_file.read(), self.raw_file.read()
            ui, raw = fold_ui(ui_scan), fold_raw(raw_scan)
            if max(ui.epoch, raw.epoch) > self.epoch:
                newest = max(ui.epoch, raw.epoch)
                self._lost = (
                    f"{self.ui_file.path} was written by a later holder of the session (epoch {newest}, "
                    f"ours is {self.epoch})."
                )
                raise LeaseLostError(self._lost, epoch=newest)
            self._seq, self._count = ui.seq, len(raw.messages)
            try:
                if not self._mend(ui_scan, ui, raw, close=close):
                    return ui, raw
            except ForeignChangeError:
                logger.debug("%s changed while it was mended", self.ui_file.path)

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
        self, messages: Sequence[Message], rows: Sequence[Sequence[str]] | None = None
    ) -> None:
        """Write the raw log anew (repair, compaction, images taken out); ``rows`` as in ``RawView.rows``."""
        self._fence()
        view = RawView(
            messages=list(messages), rows=[tuple(ids) for ids in rows] if rows else [()] * len(messages)
        )
        data = repaired_raw(view, self.epoch)
        while True:
            try:
                self.raw_file.replace(data)
            except ForeignChangeError:
                self._settle_raw(lost=())
                continue
            self._count = len(messages)
            return

    def archive(self, *, over: int = ARCHIVE_OVER) -> bool:
        """Move all but the newest exchange into segments when the ui log is longer than ``over`` bytes.

        Call it when a compaction is done, also in the middle of a turn, but off the event loop, and not while
        anything else appends. True when rows have moved; then views read the log anew.
        """
        if not self.ui_file.path.exists() or self.ui_file.path.stat().st_size <= over:
            return False
        while True:
            self._fence()
            if self.memory is not None:
                self._settle_strangers()
            ui, raw = self._load(close=False)
            moved = moved_out(self.folder, self.leaf, ui, _named(raw))
            if moved is None:
                return False
            first = self._seq
            numbered = self._numbered(moved.records)
            try:
                self.ui_file.replace(make.encode(numbered), beside=moved.segments)
            except ForeignChangeError:
                logger.debug("%s changed while it was archived", self.ui_file.path)
                continue
            self._seq = first + len(numbered)
            return True

    def delete(self, rows: Sequence[Row], ui: UiView, raw: RawView, place: Place | None) -> None:
        """Mark ``rows`` (of the ui log, or of segments) as deleted; the turn at ``place`` leaves the raw log.

        ``ui`` and ``raw`` as ``load`` returned them just now. Not in the middle of a turn.
        """
        records = marks(rows)
        self._set_archived(records, ui)
        self.append(ui=records, sync=True)
        if place is not None:
            shorter = without_turn(raw, place)
            self.replace_history(shorter.messages, shorter.rows)

    def end_turn(self) -> None:
        """The save point at a turn's end: everything so far is made durable unless the setting says never."""
        if self._fsync == "never":
            return
        for file in (self.raw_file, self.ui_file):
            if file.path.exists():
                file.sync()

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
            ours = repaired_raw(RawView(messages=messages, rows=[tuple(ids) for ids in rows]), self.epoch)
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

    def _mend(self, ui_scan: Scan, ui: UiView, raw: RawView, *, close: bool) -> bool:
        """Write what the logs need; True when something was written, so that they are read again."""
        at = clock.stamp(clock.now())
        if raw.damages or raw.orphans or raw.late or raw.next_n != len(raw.messages):
            if raw.damages or raw.orphans:
                keep_aside(self.damaged_path, log="raw", damages=raw.damages, orphans=raw.orphans, at=at)
            self._append_ui([make.add(row) for row in _raw_notes(raw, at)], durable=True)
            self.raw_file.replace(repaired_raw(raw, self.epoch))
            return True
        head = recovered_head(self.folder, self.leaf, ui, _named(raw))
        if ui.damages or ui.orphans or ui.late or head is not None:
            if ui.damages or ui.orphans:
                keep_aside(self.damaged_path, log="ui", damages=ui.damages, orphans=ui.orphans, at=at)
            notes = [make.add(late_row(ui.late, row_id=make.new_row_id(), at=at))] if ui.late else []
            whole = repaired_ui(ui_scan, ui, epoch=self.epoch, head=head, further=notes)
            self.ui_file.replace(whole.data)
            return True
        shorter = unfinished(ui.rows, raw)
        if shorter is not None:
            self.raw_file.replace(repaired_raw(shorter, self.epoch))
            return True
        missing = agree(ui, raw, close=close)
        if missing:
            self._set_archived(missing, ui)
            self._append_ui(missing, durable=False)
        return bool(missing)

    def _set_archived(self, records: Sequence[Record], ui: UiView) -> None:
        """What ``records`` set on rows in segments is set there; the records tell the views that show them."""
        shown = {row["id"] for row in ui.rows}
        fields: dict[str, dict[str, Any]] = {}
        for record in records:
            if record["t"] == "set" and record["id"] not in shown:
                fields.setdefault(record["id"], {})[record["field"]] = record["value"]
        if fields:
            set_in_segments(self.folder, self.leaf, ui.archived, fields)


def _named(raw: RawView) -> list[str]:
    """The ids of the rows that the messages name, in order, each once."""
    return list(dict.fromkeys(row_id for rows in raw.rows for row_id in rows))


def _raw_notes(raw: RawView, at: str) -> list[Row]:
    """What a person is told of the raw log's mending; empty when only numbers had to be mended."""
    texts = []
    if raw.damages or raw.orphans:
        texts.append(
            f"{len(raw.damages)} damaged and {len(raw.orphans)} orphaned records of what the model sees were "
            "taken out and are kept in the session's .damaged file. Rows the model no longer has are marked."
        )
    elif raw.next_n != len(raw.messages):
        texts.append(
            f"{raw.next_n - len(raw.messages)} messages are missing from the log of what the model sees. Rows "
            "it no longer has are marked."
        )
    rows = [make.system_row(row_id=make.new_row_id(), at=at, kind="damage", text=text) for text in texts]
    if raw.late:
        rows.append(late_row(raw.late, row_id=make.new_row_id(), at=at))
    return rows


def _split(source: Scan, end: int) -> tuple[bytes, Scan]:
    """Our own bytes, and what somebody appended behind them."""
    return source.data[:end], scan(source.data[end : source.good_end])


def _is_other(known: Stamp | None, found: Stamp | None, source: Scan, end: int) -> bool:
    """Whether the file isn't ours with something appended: a new file, a shorter one, another content."""
    if known is None or found is None or (end and known.inode != found.inode) or source.good_end < end:
        return True
    return bool(end) and source.data[end - 1 : end] != b"\n"
