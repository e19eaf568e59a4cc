"""What the templates of rows need: pictures as addresses that load nothing."""

from __future__ import annotations

from typing import Any

from django import template

from sessions_app.images import data_address

register = template.Library()


@register.filter
def image_address(image: Any) -> str:
    return data_address(image)
