"""What every page shares: who asks, and the HTTP status that a refusal has."""

from __future__ import annotations

from typing import cast

from django.contrib.auth.models import User
from django.http import HttpRequest

STATUS_OF = {"forbidden": 403, "not_found": 404}
"""Every other refusal is a conflict with how things are now: 409."""


def person(request: HttpRequest) -> User:
    """Who asks; the admin lets nobody in who has no name."""
    return cast(User, request.user)
