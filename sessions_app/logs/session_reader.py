"""Both views of a session as its next writer would leave them, without writing anything."""

from __future__ import annotations

from pathlib import Path

from core import collector
from sessions_app.logs.agreement import agree
from sessions_app.logs.lines import Scan, scan
from sessions_app.logs.raw_view import RawView, fold_raw
from sessions_app.logs.ui_view import UiView, fold_ui


def read_session(folder: Path, leaf: str) -> tuple[UiView, RawView]:
    """What a person and the model see; damage, late writers and rows that one side lost are named."""
    with collector.at_rest():
        return _read(folder, leaf)


def _read(folder: Path, leaf: str) -> tuple[UiView, RawView]:
    ui_scan, raw_scan = _scan(folder / f"{leaf}.ui.jsonl"), _scan(folder / f"{leaf}.raw.jsonl")
    raw = fold_raw(raw_scan)
    return fold_ui(ui_scan, agree(fold_ui(ui_scan), raw), raw.late), raw


def _scan(path: Path) -> Scan:
    try:
        return scan(path.read_bytes())
    except FileNotFoundError:
        return Scan()
