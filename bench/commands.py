"""How long commands take from the call to their answer."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from agents.providers.testing import ScriptedServer, text
from bench import sample
from bench.measures import Measure, percentiles

ROUNDS = 15


def measure() -> list[Measure]:
    sample.set_up()
    chat = ("chat", "--new", *sample.registered(), "How much is shipping to Austria?")
    return [
        Measure(
            what="`halo --help`",
            unit="s",
            figures=percentiles(_times("--help")),
            at_most={"p95": 0.4},
        ),
        Measure(
            what="`halo evo list` (a command on the slim settings)",
            unit="s",
            figures=percentiles(_times("evo", "list")),
        ),
        Measure(
            what="`halo chat`, `offline`, start to the end of its first answer",
            unit="s",
            figures=percentiles(_times(*chat)),
            at_most={"p95": 1.8},
            note="the target is to the first model call, which lies before the answer",
        ),
        Measure(
            what="`halo chat`, `openai-compatible`, start to its first request at the server",
            unit="s",
            figures=percentiles(_first_requests()),
            at_most={"p95": 2.8},
        ),
    ]


def _times(*arguments: str) -> list[float]:
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        _halo(*arguments)
        times.append(time.perf_counter() - begun)
    return times


def _first_requests() -> list[float]:
    """Seconds from the command's start until a server on loopback has its request."""
    arrived: list[float] = []

    def answer(handler: Any) -> None:
        arrived.append(time.perf_counter())
        text("It costs €6.90.")(handler)

    place = sample.registered()
    begun = []
    with ScriptedServer([answer] * ROUNDS) as server:
        folder = Path(place[1], ".halo", "agents", place[3])
        model = f"{{provider: openai-compatible, id: m, endpoint: '{server.endpoint}'}}"
        (folder / "agent.yaml").write_text(f"name: Support\nmodel: {model}\ntools: [file_read, grep]\n")
        for _ in range(ROUNDS):
            begun.append(time.perf_counter())
            _halo("chat", "--new", *place, "How much is shipping to Austria?")
    return [end - start for start, end in zip(begun, arrived, strict=True)]


def _halo(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "halo_site", *arguments], check=True, stdout=subprocess.DEVNULL)
