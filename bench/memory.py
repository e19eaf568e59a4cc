"""What the processes hold: web in rest, and a wrapper with its zygote and its agent children at work."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections import defaultdict
from pathlib import Path

from bench import sample
from bench.measures import Measure

REQUESTS = 200
LOOK_SEC = 0.01
ROUNDS = 3
MEGABYTE = 1024.0


def measure() -> list[Measure]:
    sample.set_up()
    web = _web_in_rest()
    at_work = _at_work()
    return [
        Measure(
            what=f"web in rest, after {REQUESTS} requests",
            unit="MB",
            figures={"rss": web},
            at_most={"rss": 160},
        ),
        Measure(
            what="a wrapper at work",
            unit="MB",
            figures={"rss": max(at_work["wrapper"])},
            at_most={"rss": 60},
        ),
        Measure(what="its zygote", unit="MB", figures={"rss": max(at_work["zygote"])}, at_most={"rss": 110}),
        Measure(
            what="an agent child, its own",
            unit="MB",
            figures={"private": max(at_work["child"])},
            at_most={"private": 30},
        ),
    ]


def _web_in_rest() -> float:
    read_end, write_end = os.pipe()
    web = subprocess.Popen(
        [sys.executable, "-m", "halo_site", "web", "--port", "0", "--ready-fd", str(write_end)],
        pass_fds=(write_end,),
    )
    os.close(write_end)
    try:
        with os.fdopen(read_end) as ready:
            port = json.loads(ready.readline())["port"]
        for _ in range(REQUESTS):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/admin/login/", timeout=10) as page:
                page.read()
        return _figure(web.pid, "Rss")
    finally:
        web.terminate()
        web.wait()


def _at_work() -> dict[str, list[float]]:
    from core.db.clock import database_now
    from evolution.enqueue import enqueue
    from evolution.models import EvolutionRun

    session = sample.conversation()
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        outcome = enqueue(
            session=session, hint=sample.HINT, requested_by=None, trigger="note", now=database_now()
        )
        while True:
            run = EvolutionRun.objects.get(pk=outcome.run_id)
            if run.status not in ("pending", "running"):
                break
            if run.process_pid is not None:
                _look(run.process_pid, found)
            time.sleep(LOOK_SEC)
    return found


def _look(wrapper: int, found: dict[str, list[float]]) -> None:
    try:
        found["wrapper"].append(_figure(wrapper, "Rss"))
        for zygote in _children(wrapper):
            found["zygote"].append(_figure(zygote, "Rss"))
            for child in _children(zygote):
                found["child"].append(_figure(child, "Private_Clean") + _figure(child, "Private_Dirty"))
    except (FileNotFoundError, ProcessLookupError):
        return  # it ended while we looked


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task")
    return [int(word) for task in tasks.iterdir() for word in (task / "children").read_text().split()]


def _figure(pid: int, name: str) -> float:
    """Megabytes, from the kernel's sum over all mappings."""
    match = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    return int(match[1]) / MEGABYTE if match else 0.0
