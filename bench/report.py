"""The table, for the terminal and for RESULTS.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.measures import Measure

_HEAD = ("what", "measured", "target", "")


def markdown(measures: Sequence[Measure], *, machine: Mapping[str, str], day: str, remarks: str) -> str:
    """``remarks``: what a person wrote about the misses (``notes.md``), kept below the table."""
    described = ", ".join(f"{name} {value}" for name, value in machine.items())
    rows = [cells(measure) for measure in measures]
    lines = [
        "# Measured",
        "",
        "Written by `make bench`; targets are those of a machine with two cores. A missed one says so.",
        "",
        f"{day}: {described}.",
        "",
        "| " + " | ".join(_HEAD) + " |",
        "|---|---|---|---|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    notes = [f"- {measure.what}: {measure.note}" for measure in measures if measure.note]
    lines += ["", "Notes:", "", *notes] if notes else []
    return "\n".join([*lines, "", remarks])


def plain(measures: Sequence[Measure]) -> str:
    rows = [_HEAD, *(cells(measure) for measure in measures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
    )


def cells(measure: Measure) -> tuple[str, str, str, str]:
    measured = ", ".join(f"{name} {number(value)}" for name, value in measure.figures.items())
    targets = [f"{name} ≤ {number(limit)}" for name, limit in measure.at_most.items()]
    targets += [f"{name} ≥ {number(limit)}" for name, limit in measure.at_least.items()]
    unit = f" {measure.unit}" if measure.unit else ""
    return measure.what, measured + unit, ", ".join(targets) + (unit if targets else ""), measure.verdict


def number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
