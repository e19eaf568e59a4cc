"""A page of rows by their ids: the ten-thousandth costs what the first one does, and nothing is counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import urlencode

from django.db.models import Model, QuerySet

from core.db.text import storable

PER_PAGE = 25

RowT = TypeVar("RowT", bound=Model)


@dataclass(frozen=True, slots=True)
class Page(Generic[RowT]):
    """``newer`` and ``older`` are query strings of the neighbouring pages, empty where there is none."""

    rows: list[RowT]
    newer: str
    older: str


def page_of(rows: QuerySet[RowT], query: Mapping[str, str], given: Mapping[str, str]) -> Page[RowT]:
    """Newest first. ``query`` holds ``before`` or ``after`` an id; ``given`` the filters, which links keep."""
    before, after = storable(query.get("before", "")), storable(query.get("after", ""))
    if after:
        found = list(rows.filter(pk__gt=after).order_by("pk")[: PER_PAGE + 1])
        more_newer, more_older = len(found) > PER_PAGE, True
        shown = found[:PER_PAGE][::-1]
    else:
        found = list((rows.filter(pk__lt=before) if before else rows).order_by("-pk")[: PER_PAGE + 1])
        more_newer, more_older = bool(before), len(found) > PER_PAGE
        shown = found[:PER_PAGE]
    return Page(
        rows=shown,
        newer=urlencode({**given, "after": shown[0].pk}) if more_newer and shown else "",
        older=urlencode({**given, "before": shown[-1].pk}) if more_older and shown else "",
    )


def filters_of(query: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Those that are given, fit for a database."""
    return {name: text for name in names if (text := storable(query.get(name, "")).strip())}


def in_workspace(rows: QuerySet[RowT], number: str) -> QuerySet[RowT]:
    """``number`` as an address gave it; what can't be one finds nothing."""
    fits = number.isascii() and number.isdigit() and len(number) < 18  # what a column of numbers can hold
    return rows.filter(workspace_id=int(number)) if fits else rows.none()
