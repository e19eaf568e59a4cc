"""What a browser may do with a page of ours, said in the headers of every response."""

from __future__ import annotations

from collections.abc import Callable

from csp.constants import UNSAFE_EVAL
from csp.decorators import csp_update
from csp.middleware import CSPMiddleware
from django.http import HttpRequest
from django.http.response import HttpResponseBase

_FEATURES = "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"


class PagePolicyMiddleware(CSPMiddleware):
    """The content security policy of the settings, and no device of the reader's."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response = super().process_response(request, response)
        response.headers.setdefault("Permissions-Policy", _FEATURES)
        return response


def with_alpine(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """For unfold's pages: its Alpine evaluates the expressions of its own templates.

    Text of a model or a person never stands in an attribute that Alpine or htmx reads.
    """
    allowed: Callable[..., HttpResponseBase] = csp_update({"script-src": [UNSAFE_EVAL]})(view)
    return allowed
