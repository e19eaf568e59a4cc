"""Following work in a terminal: a live line with rich, one plain line a step elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TextIO

from evolution.follow import Step, follow
from evolution.models import EvolutionApply, EvolutionRun


def show_progress(
    row: EvolutionRun | EvolutionApply, *, stream: TextIO | None = None, timeout_sec: float | None = None
) -> None:
    """Follow ``row`` until it rests, saying each step on ``stream`` (default: standard error)."""
    output = stream or sys.stderr
    steps = follow(row, timeout_sec=timeout_sec)
    if output.isatty():
        _live(steps, output)
    else:
        for step in steps:
            output.write(words(step) + "\n")
            output.flush()


def words(step: Step) -> str:
    count = f" {step.done} of {step.total}" if step.total else ""
    doing = f": {step.phase}{count}" if step.phase else ""
    return f"  {step.name}  {step.status}{doing}"


def _live(steps: Iterator[Step], output: TextIO) -> None:
    from rich.console import Console

    console = Console(file=output, highlight=False)
    with console.status("") as status:
        for step in steps:
            console.print(words(step), style="dim")
            status.update(words(step).strip())
