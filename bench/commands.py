"""How long commands take from the call to their answer."""

from __future__ import annotations

import subprocess
import sys
import time

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
    ]


def _times(*arguments: str) -> list[float]:
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        _halo(*arguments)
        times.append(time.perf_counter() - begun)
    return times


def _halo(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "halo_site", *arguments], check=True, stdout=subprocess.DEVNULL)
