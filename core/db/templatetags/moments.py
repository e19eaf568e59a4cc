"""Moments on a page: how long ago where that is what counts, else the moment itself; the exact one is always there."""

from __future__ import annotations

from datetime import datetime

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from core import clock
from core.texts import moment_words, span_words

register = template.Library()


@register.filter
def age(moment: datetime | None, now: datetime | None = None) -> SafeString | str:
    """``12 min``"""
    return _time(moment, span_words((now or clock.now()) - moment), titled=True) if moment else ""


@register.filter
def ago(moment: datetime | None, now: datetime | None = None) -> SafeString | str:
    """``12 min ago``"""
    return _time(moment, f"{span_words((now or clock.now()) - moment)} ago", titled=True) if moment else ""


@register.filter
def exact(moment: datetime | None) -> SafeString | str:
    """``2026-01-31 09:30:00 UTC``"""
    return _time(moment, moment_words(moment), titled=False) if moment else ""


def _time(moment: datetime, text: str, *, titled: bool) -> SafeString:
    title = format_html(' title="{}"', moment_words(moment)) if titled else ""
    return format_html('<time datetime="{}"{}>{}</time>', clock.stamp(moment), title, text)
