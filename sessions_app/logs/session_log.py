"""Both logs of one session, as its one writer opens, mends and shortens them."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence
from typing import Any

from core import clock, collector
from sessions_app.logs import records as make
from sessions_app.logs.agreement import agree
from sessions_app.logs.deletion import Place, marks, unfinished, without_turn
from sessions_app.logs.lines import Scan
from sessions_app.logs.log_file import ForeignChangeError, LeaseLostError
from sessions_app.logs.log_writer import LogWriter
from sessions_app.logs.raw_view import RawView, fold_raw
from sessions_app.logs.records import Record, Row
from sessions_app.logs.repair import keep_aside, repaired_raw, repaired_ui
from sessions_app.logs.segments import ARCHIVE_OVER, moved_out, recovered_head, set_in_segments
from sessions_app.logs.ui_view import UiView, fold_ui, late_row, orphans_row

logger = logging.getLogger(__name__)


class SessionLog(LogWriter):
    """Both logs loaded, mended, shortened. Call ``load`` before the first append."""

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
            self._seq, self._count, self._covers = ui.seq, len(raw.messages), raw.covers
            try:
                if not self._mend(ui_scan, ui, raw, close=close):
                    return ui, raw
            except ForeignChangeError:
                logger.debug("%s changed while it was mended", self.ui_file.path)

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
            notes = [make.add(row) for row in _ui_notes(ui, at)]
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
    return list(dict.fromkeys(itertools.chain.from_iterable(raw.rows)))


def _ui_notes(ui: UiView, at: str) -> list[Row]:
    """What a person is told of the ui log's mending besides the rows that stand for damage."""
    rows = [orphans_row(len(ui.orphans), row_id=make.new_row_id(), at=at)] if ui.orphans else []
    return [*rows, late_row(ui.late, row_id=make.new_row_id(), at=at)] if ui.late else rows


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
