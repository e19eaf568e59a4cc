"""``/evo`` from the call to its answer, and beside it what the disk takes for the same files alone."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.measures import Measure, percentiles

if TYPE_CHECKING:
    from sessions_app.models import Session

START = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
ROUNDS = 60


def measure() -> list[Measure]:
    _set_up()
    return [found for count in (200, 2_000) for found in _measures(count)]


def _set_up() -> None:
    import django
    from django.core.management import call_command

    os.environ["DJANGO_SETTINGS_MODULE"] = "halo_site.settings.slim"
    django.setup()
    call_command("migrate", verbosity=0)
    from django.conf import settings

    settings.EVOLUTION_TICK_ON_COMMIT = False  # a wrapper at work would be measured with it
    from core.paths import halo_home
    from workspaces.seed import seed

    seed(halo_home())


def _measures(count: int) -> Iterator[Measure]:
    from evolution.enqueue import enqueue

    with tempfile.TemporaryDirectory() as folder:
        session = _session(Path(folder), count)
        times, floors, commits, processor = [], [], [], []
        for number in range(ROUNDS):
            now = START + timedelta(seconds=number)
            begun, busy = time.perf_counter(), time.process_time()
            outcome = enqueue(
                session=session, hint=f"hint {number}", requested_by=None, trigger="note", now=now
            )
            times.append(time.perf_counter() - begun)
            processor.append(time.process_time() - busy)
            commits.append(_commit())
            floors.append(_floor(session.workspace.paths.evolution.run(outcome.run_id)))
    own = [max(0.0, taken - floor) for taken, floor in zip(times, floors, strict=True)]
    limits = {"p50": 10.0, "p95": 30.0} if count == 200 else {}
    note = (
        f"fsync floor of its files p50 {statistics.median(floors) * 1e3:.1f} ms, taken off; "
        f"the commit of its rows, p50 {statistics.median(commits) * 1e3:.1f} ms for one row alone, is not"
    )
    yield Measure(
        what=f"`/evo` on {count} messages, less the fsync floor",
        unit="ms",
        figures=percentiles(own, scale=1e3),
        at_most=limits,
        note=note,
    )
    yield Measure(
        what=f"`/evo` on {count} messages, call to answer", unit="ms", figures=percentiles(times, scale=1e3)
    )
    yield Measure(
        what=f"of it: on the processor, {count} messages",
        unit="ms",
        figures=percentiles(processor, scale=1e3),
    )
    yield Measure(
        what=f"fsync floor of the files frozen at {count} messages",
        unit="ms",
        figures=percentiles(floors, scale=1e3),
    )
    yield Measure(
        what=f"floor of one SQLite commit, beside {count} messages",
        unit="ms",
        figures=percentiles(commits, scale=1e3),
    )


def _commit() -> float:
    """Seconds that the smallest durable transaction takes."""
    from core.db.models import record_event

    begun = time.perf_counter()
    record_event(kind="bench", object_id="", workspace_id=None, payload={}, now=START)
    return time.perf_counter() - begun


def _floor(folder: Path) -> float:
    """Seconds that writing the very same bytes durably takes, without reading, composing or a row."""
    contents = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    copy = folder.with_name(folder.name + "-floor")
    begun = time.perf_counter()
    copy.mkdir()
    for name, data in contents.items():
        descriptor = os.open(copy / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(descriptor, data)
        os.fsync(descriptor)
        os.close(descriptor)
    for synced in (copy, copy.parent):
        descriptor = os.open(synced, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    return time.perf_counter() - begun


def _session(root: Path, count: int) -> Session:
    from core.processes import host_name
    from sessions_app.create import create_session
    from sessions_app.logs import records
    from sessions_app.logs.session_log import SessionLog
    from sessions_app.places import log_folder, log_leaf
    from workspaces.models import Workspace

    halo = root / ".halo"
    for rel, text in {
        "INSTRUCTIONS.md": "Answer well.\n" * 40,
        "agents/guide/agent.yaml": "name: Guide\ntools: [file_read, grep]\n",
        "agents/guide/AGENT.md": "You are the guide.\n" * 60,
        "skills/review/SKILL.md": "---\nname: review\ndescription: Reviews.\n---\nLook twice.\n",
    }.items():
        path = halo / rel
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    workspace = Workspace.objects.create(path=str(root), host=host_name(), created_at=START)
    session = create_session(
        workspace=workspace, agent_id="guide", agent_name="Guide", access_level="full", now=START
    )
    log = SessionLog(log_folder(session), log_leaf(session))
    log.load()
    log.append(raw=[records.message(_message(number)) for number in range(count)])
    return session


_TURN: tuple[Callable[[int], dict[str, Any]], ...] = (
    lambda n: _request(
        {"part_kind": "user-prompt", "content": f"[{_stamp(n)}] Question {n}? " + "word " * 40}
    ),
    lambda n: _response(
        {
            "part_kind": "tool-call",
            "tool_name": "grep",
            "args": {"pattern": "x"},
            "tool_call_id": f"c{n // 4}",
        }
    ),
    lambda n: _request(
        {
            "part_kind": "tool-return",
            "tool_name": "grep",
            "content": "line\n" * 300,
            "tool_call_id": f"c{n // 4}",
        }
    ),
    lambda n: _response({"part_kind": "text", "content": "Answer. " * 60}),
)


def _message(number: int) -> dict[str, Any]:
    """Four make a turn: question, tool call, its result of 1.5 KB, answer."""
    return _TURN[number % 4](number)


def _request(part: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "request", "parts": [part]}


def _response(part: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "response", "parts": [part]}


def _stamp(number: int) -> str:
    from core import clock

    return clock.stamp(START + timedelta(seconds=number))
