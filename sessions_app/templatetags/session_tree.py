"""``{% session_tree session %}``: the tree it stands in, each session a link to its transcript."""

from __future__ import annotations

from typing import Any

from django import template

from sessions_app.models import Session
from sessions_app.tree_view import tree_of

register = template.Library()


@register.inclusion_tag("sessions/tree.html")
def session_tree(session: Session) -> dict[str, Any]:
    return {"tree": tree_of(session), "current": session.pk}
