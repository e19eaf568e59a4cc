"""How long commands take from the call to their answer, and `halo chat` to its first model call."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from agents.providers.testing import ScriptedServer, text
from bench import sample
from bench.measures import Measure, percentiles

ROUNDS = 20


def measure() -> list[Measure]:
    sample.set_up()
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
            what="`halo chat`, `offline`, start to its first model call",
            unit="s",
            figures=percentiles(_first_steps()),
            at_most={"p95": 1.8},
            note="the call is the moment in which the engine notes that it takes the first step of a script",
        ),
        Measure(
            what="`halo chat`, `openai-compatible`, start to its first model call",
            unit="s",
            figures=percentiles(_first_requests()),
            at_most={"p95": 2.8},
            note="the call is the moment in which a server on loopback has read the request",
        ),
    ]


def _times(*arguments: str) -> list[float]:
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        _halo(*arguments)
        times.append(time.perf_counter() - begun)
    return times


def _first_steps() -> list[float]:
    """Seconds from the command's start until the offline engine takes its first step."""
    place = sample.registered()
    script = Path(place[1], "script.yaml")
    script.write_text("- {times: 0, text: It costs €6.90.}\n", encoding="utf-8")
    sample.use_model(place, {"provider": "offline", "id": f"script:{script}"})
    used = Path(f"{script}.used")
    times = []
    for _ in range(ROUNDS):
        used.unlink(missing_ok=True)
        begun = time.time()
        _ask(place)
        times.append(used.stat().st_mtime - begun)
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
        sample.use_model(place, {"provider": "openai-compatible", "id": "m", "endpoint": server.endpoint})
        for _ in range(ROUNDS):
            begun.append(time.perf_counter())
            _ask(place)
    return [end - start for start, end in zip(begun, arrived, strict=True)]


def _ask(place: sample.Place) -> None:
    _halo("chat", "--new", *place, "How much is shipping to Austria?")


def _halo(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "halo_site", *arguments], check=True, stdout=subprocess.DEVNULL)
