"""``/api/``: the rooms' routers under one roof, and every way a request can fail in one form (docs/rest.md)."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

from django.core.cache import cache
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.http.request import RawPostDataException
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, Throttled, ValidationError
from ninja.throttling import SimpleRateThrottle

from core.db.rest.auth import caller_of
from core.db.rest.errors import ApiError, error_response
from core.settings_save import SettingsRefusedError
from evolution.api import router as evolution_router
from evolution.errors import Refused
from halo_site.api_middleware import VERSION
from halo_site.events_api import router as events_router
from halo_site.settings_api import router as settings_router
from sessions_app.chat_api import router as sessions_router
from sessions_app.errors import SessionRefused
from workspaces.api import router as workspaces_router

REQUESTS_A_MINUTE = 1_200

logger = logging.getLogger(__name__)

_FIELDS = {
    "reason_needed": "reason",
    "reason_too_long": "reason",
    "hint_too_long": "hint",
    "nothing_chosen": "runs",
    "several_workspaces": "runs",
    "bad_image": "images",
    "bad_working_dir": "workingDir",
    "empty_message": "text",
    "unknown_agent": "agent",
}
"""Refusals, by code, of a value that can't be, and the field that it came in."""
_STATUS = {"forbidden": 403, "permission": 403, "not_found": 404, **dict.fromkeys(_FIELDS, 400)}
"""Every other is 409: asked rightly, but not possible now."""

_WORDS = {400: "bad_request", 401: "unauthorized", 403: "forbidden", 404: "not_found", 413: "too_large"}


class UserThrottle(SimpleRateThrottle):
    """Counted by user, in each web process for itself."""

    cache = cache

    def get_cache_key(self, request: HttpRequest) -> str | None:
        return f"api-throttle-{caller_of(request).user.pk}"


api = NinjaAPI(
    title="Halo",
    version=VERSION,
    description="Sessions, evolution runs and applies with every decision on them, settings, events.",
    docs_url=None,
    urls_namespace="api",
    throttle=[UserThrottle(f"{REQUESTS_A_MINUTE}/m")],
)
api.add_router("", workspaces_router)
api.add_router("", sessions_router)
api.add_router("/evolution", evolution_router)
api.add_router("", settings_router)
api.add_router("", events_router)


@api.exception_handler(ApiError)
def _api_error(request: HttpRequest, error: ApiError) -> HttpResponse:
    return error_response(error.status, error.code, str(error), **error.details)


@api.exception_handler(Refused)
def _refused(request: HttpRequest, error: Refused) -> HttpResponse:
    return _refusal(error.code, str(error), error.details)


@api.exception_handler(SessionRefused)
def _session_refused(request: HttpRequest, error: SessionRefused) -> HttpResponse:
    return _refusal(error.code, str(error), {})


def _refusal(code: str, text: str, details: Mapping[str, Any]) -> HttpResponse:
    fields = {"fields": [{"field": _FIELDS[code], "message": text}]} if code in _FIELDS else {}
    return error_response(_STATUS.get(code, 409), code, text, **{**details, **fields})


@api.exception_handler(SettingsRefusedError)
def _settings_refused(request: HttpRequest, error: SettingsRefusedError) -> HttpResponse:
    fields = [
        {"field": refusal.key, "found": refusal.found, "wanted": refusal.wanted} for refusal in error.refusals
    ]
    return error_response(400, "settings_refused", str(error), fields=fields)


@api.exception_handler(ValidationError)
def _does_not_fit(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """What is wrong with which field; the value itself isn't repeated."""
    fields = [
        {"field": ".".join(str(part) for part in item["loc"] if part not in ("body", "query", "path"))}
        | {"message": str(item["msg"])}
        for item in error.errors
    ]
    return error_response(422, "does_not_fit", "The request doesn't fit the document.", fields=fields)


@api.exception_handler(AuthenticationError)
def _nobody(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    return error_response(401, "unauthorized", "Log in, or send a token: Authorization: Bearer halo_...")


@api.exception_handler(Throttled)
def _too_fast(request: HttpRequest, error: Throttled) -> HttpResponse:
    response = error_response(
        429, "too_fast", f"At most {REQUESTS_A_MINUTE} requests a minute; wait a little."
    )
    response["Retry-After"] = str(math.ceil(error.wait or 1))
    return response


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    return error_response(error.status_code, _WORDS.get(error.status_code, "error"), str(error))


@api.exception_handler(Http404)
def _missing(request: HttpRequest, error: Http404) -> HttpResponse:
    return error_response(404, "not_found", "There is nothing here.")


@api.exception_handler(PermissionDenied)
def _denied(request: HttpRequest, error: PermissionDenied) -> HttpResponse:
    return error_response(403, "forbidden", str(error))


@api.exception_handler(RequestDataTooBig)
def _too_big(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return error_response(413, "too_large", "The body is too large.")


@api.exception_handler(SuspiciousOperation)
@api.exception_handler(MultiPartParserError)
@api.exception_handler(RawPostDataException)
def _unreadable(request: HttpRequest, error: Exception) -> HttpResponse:
    """A form where JSON is wanted, and not even a whole one: the CSRF check looks into it."""
    return error_response(400, "bad_request", "The body can't be read; send JSON.")


@api.exception_handler(Exception)
def _broken(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.error("%s %s failed", request.method, request.path, exc_info=error)
    return error_response(500, "internal", "Something went wrong here; the web process's log has it.")


def no_such_path(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Whatever under ``/api/`` no operation answers."""
    return error_response(404, "not_found", "There is nothing here; /api/openapi.json lists what is.")


def document() -> dict[str, Any]:
    """The OpenAPI document."""
    return dict(api.get_openapi_schema(path_prefix="/api/"))
