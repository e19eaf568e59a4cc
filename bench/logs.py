"""Session logs: appending rows of 1 KB, and opening a session of 10,000 rows."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from bench.measures import Measure
from sessions_app.logs import FsyncPolicy, SessionLog
from sessions_app.logs import records as make

ROWS = 10_000
APPENDS = 20_000
REPEATS = 3
AT = "2026-01-31T09:30:00.123Z"


def measure() -> list[Measure]:
    """One append call a row, without fsync; opening reads, folds and compares both logs. Best of three."""
    with tempfile.TemporaryDirectory(prefix="halo-bench-logs-") as folder:
        rates = [_append(Path(folder) / f"append-{n}") for n in range(REPEATS)]
        session = Path(folder) / "open"
        _fill(session)
        times = [_open(session) for _ in range(REPEATS)]
    return [
        Measure(
            what="session log append, 1 KB rows, without fsync",
            unit="rows/s",
            figures={"rate": max(rates)},
            at_least={"rate": 20_000},
        ),
        Measure(
            what="open a 10,000-row session",
            unit="ms",
            figures={"best": min(times) * 1000},
            at_most={"best": 300},
        ),
    ]


def _append(folder: Path) -> float:
    log = _log(folder, fsync="never")
    records = [make.add(_row(number)) for number in range(APPENDS)]
    started = time.perf_counter()
    for record in records:
        log.append(ui=[record])
    return APPENDS / (time.perf_counter() - started)


def _fill(folder: Path) -> None:
    log = _log(folder, fsync="never")
    rows = [_row(number) for number in range(ROWS)]
    log.append(
        ui=[make.add(row) for row in rows],
        raw=[make.message(_message(row), [row["id"]]) for row in rows],
    )


def _open(folder: Path) -> float:
    started = time.perf_counter()
    ui, raw = _log(folder, fsync="turn", load=False).load()
    elapsed = time.perf_counter() - started
    assert len(ui.rows) == len(raw.messages) == ROWS
    return elapsed


def _log(folder: Path, *, fsync: FsyncPolicy, load: bool = True) -> SessionLog:
    log = SessionLog(folder, "bench", epoch=1, fsync=fsync)
    if load:
        log.load()
    return log


def _row(number: int) -> make.Row:
    row_id = f"{number:016x}"
    if number % 2:
        return make.assistant_row(row_id=row_id, at=AT, blocks=[{"type": "text", "text": "a" * 850}])
    return make.user_row(row_id=row_id, at=AT, stamp=AT, text="q" * 880)


def _message(row: make.Row) -> make.Message:
    if row["role"] == "assistant":
        return {"kind": "response", "parts": [{"part_kind": "text", "content": row["blocks"][0]["text"]}]}
    return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": f"[{AT}] {row['text']}"}]}
