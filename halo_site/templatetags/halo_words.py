"""Moments, spans, rows and events as a reader of the first page wants them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django import template
from django.contrib.admin.utils import quote
from django.db.models import Model
from django.template import Context
from django.urls import reverse
from django.utils.text import capfirst

from core.db.models import Event
from evolution.models import EvolutionApply, EvolutionRun

register = template.Library()


@dataclass(frozen=True, slots=True)
class Crumb:
    """``address`` empty: the page that is open."""

    title: str
    address: str = ""


@register.inclusion_tag("halo/trail.html", takes_context=True)
def trail(context: Context) -> dict[str, list[Crumb]]:
    """Where the reader is: the list, the row, and what of the row, each named once and as in the menu.

    A page gives ``title`` as every admin page does, ``original`` or ``object`` if it is about a row, and ``here`` if
    its title says more than its place.
    """
    here = str(context.get("here") or context.get("title") or "")
    opts, path = context.get("opts"), context["request"].path
    if opts is None:
        return {"crumbs": [Crumb(here)]}
    crumbs = []
    for title, address in _ways(context, opts):
        crumbs.append(Crumb(title, address if address != path else ""))
        if address == path:
            return {"crumbs": crumbs}
    return {"crumbs": crumbs if here == crumbs[-1].title else [*crumbs, Crumb(here)]}


def _ways(context: Context, opts: Any) -> Iterator[tuple[str, str]]:
    name = f"admin:{opts.app_label}_{opts.model_name}_changelist"
    address = reverse(name)
    yield _in_menu(context, address) or capfirst(str(opts.verbose_name_plural)), address
    row = context.get("original") or context.get("object")
    if isinstance(row, Model):
        yield str(row), page(row)


def _in_menu(context: Context, address: str) -> str:
    items = (item for group in context.get("sidebar_navigation") or () for item in group["items"])
    return next((str(item["title"]) for item in items if str(item["link"]) == address), "")


@register.filter
def thousands(number: int) -> str:
    """``12,345``"""
    return f"{number:,}"


@register.filter
def clock(span: timedelta) -> str:
    """``0:41``, ``1:02:03``."""
    minutes, seconds = divmod(int(span.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


@register.filter
def page(row: Model) -> str:
    """The admin page of a row."""
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[quote(row.pk)])


@register.filter
def headline(row: EvolutionRun | EvolutionApply) -> str:
    """What it is about in one line: the hint it was asked for with, else its name."""
    hint = row.user_hint if isinstance(row, EvolutionRun) else row.reviewer_hint
    line = " ".join(hint.split())
    if not line:
        return f"{'Run' if isinstance(row, EvolutionRun) else 'Apply'} …{row.pk[-4:]}"
    return line if len(line) <= 90 else f"{line[:90]}…"


@register.filter
def event_words(event: Event) -> str:
    """``run …7k2 awaiting review``; an event of a kind this page doesn't know is named by its kind."""
    payload: dict[str, Any] = event.payload if isinstance(event.payload, dict) else {}
    match event.kind:
        case "evolution:run_changed" | "evolution:apply_changed":
            kind = event.kind.removeprefix("evolution:").removesuffix("_changed")
            state = "deleted" if payload.get("deleted") else str(payload.get("to", "changed"))
            need = ", needs a person" if payload.get("needs_person") else ""
            return f"{kind} …{event.object_id[-4:]} {state.replace('_', ' ')}{need}"
        case "evolution:progress":
            count = f" {payload.get('done', 0)}/{payload['total']}" if payload.get("total") else ""
            phase = str(payload.get("phase", "")).replace("_", " ")
            return f"{payload.get('kind', 'row')} …{event.object_id[-4:]} {phase}{count}"
        case "evolution:scenario_changed":
            state = next((word for word in ("deleted", "kept", "retired") if payload.get(word)), "restored")
            return f"scenario …{event.object_id[-4:]} {state}"
        case "session:changed":
            return f"session …{event.object_id[-4:]} {payload.get('change', 'changed')}"
        case "settings:changed":
            return f"setting {event.object_id} changed"
    return f"{event.kind} {event.object_id[-12:]}"
