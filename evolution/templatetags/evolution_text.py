"""Text of models and people on a page: escaped by the template, and nothing in it hides or turns the line."""

from __future__ import annotations

from django import template

from core.texts import for_terminal

register = template.Library()


@register.filter
def visible(value: object) -> str:
    """Plain text with what would steer or hide itself shown as an escape; still to be autoescaped."""
    return "" if value is None else for_terminal(str(value))


@register.filter
def figure(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}".removesuffix(".0")


@register.filter
def words(status: str) -> str:
    return status.replace("_", " ").replace("-", " ")
