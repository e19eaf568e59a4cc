"""``{{ text|markdown }}`` and ``{{ value|as_json }}`` for what models wrote."""

from __future__ import annotations

import json
from typing import Any

from django import template
from django.utils.safestring import SafeString

from halo_site.markdown import to_html

register = template.Library()


@register.filter
def markdown(text: Any) -> SafeString:
    return to_html(str(text))


@register.filter
def as_json(value: Any) -> str:
    """Plain text, escaped by the template like any other."""
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)
