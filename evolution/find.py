"""Runs and applies by the names people type: ``run-<id>``, ``apply-<id>``, shortened as long as it is unique."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from django.db.models import Q, QuerySet

from core.db.text import storable
from evolution.errors import Refused
from evolution.models import EvolutionApply, EvolutionRun, RegressionScenario

MIN_SHORT = 4


def find(text: str) -> EvolutionRun | EvolutionApply:
    """Raises Refused ``not_found`` or ``ambiguous`` (details: ``candidates``)."""
    kind, short = _split(text)
    if len(short) < MIN_SHORT:
        raise Refused(
            "not_found", f"{text!r} is too short for an id; at least {MIN_SHORT} characters of it are wanted."
        )
    found: list[EvolutionRun | EvolutionApply] = []
    if kind != "apply":
        found += _matching(EvolutionRun.objects.select_related("workspace", "current_apply"), short)
    if kind != "run":
        found += _matching(EvolutionApply.objects.select_related("workspace"), short)
    if not found:
        raise Refused("not_found", f"There is no run or apply {text!r}; `halo evo list` shows them.")
    if len(found) > 1:
        raise _ambiguous(text, found)
    return found[0]


def find_run(text: str) -> EvolutionRun:
    """Raises Refused ``not_found``, ``ambiguous`` or ``not_a_run``."""
    row = find(text)
    if isinstance(row, EvolutionRun):
        return row
    raise Refused("not_a_run", f"{row} is an apply; this works on runs. Its runs: halo evo show {row}")


def find_apply(text: str) -> EvolutionApply:
    """An apply, or the current one of the run that was named. Raises Refused."""
    row = find(text)
    if isinstance(row, EvolutionApply):
        return row
    if row.current_apply is None:
        raise Refused("no_apply", f"{row} is {row.status} and has no apply.")
    return row.current_apply


def find_scenario(text: str) -> RegressionScenario:
    """Raises Refused ``not_found`` or ``ambiguous`` (details: ``candidates``)."""
    short = storable(text).strip().lower().removeprefix("scenario-")
    rows = RegressionScenario.objects.select_related("workspace", "retired_by")
    found = _matching(rows, short) if len(short) >= MIN_SHORT else []
    if not found:
        raise Refused(
            "not_found", f"There is no kept scenario {text!r}; `halo evo scenarios list --all` shows them."
        )
    if len(found) > 1:
        raise _ambiguous(text, found)
    row: RegressionScenario = found[0]
    return row


def _ambiguous(text: str, found: Sequence[object]) -> Refused:
    names = sorted(map(str, found))
    return Refused("ambiguous", f"{text!r} fits {', '.join(names[:5])}; type more of it.", candidates=names)


def _split(text: str) -> tuple[Literal["run", "apply", ""], str]:
    word = storable(text).strip().lower()
    if word.startswith("run-"):
        return "run", word.removeprefix("run-")
    if word.startswith("apply-"):
        return "apply", word.removeprefix("apply-")
    return "", word


def _matching(rows: QuerySet[Any], short: str) -> list[Any]:
    """By its beginning or its end: ids made in the same minute begin alike."""
    return list(rows.filter(Q(pk__startswith=short) | Q(pk__endswith=short)).order_by("-pk")[:6])
