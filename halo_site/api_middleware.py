"""What holds for every request under ``/api/`` before and after its operation: version, size, form of errors."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from core.db.rest.errors import error_response

PATH = "/api/"
VERSION_HEADER = "Halo-API-Version"
VERSION = "1"
MAX_BODY_BYTES = 1024 * 1024

_METHOD_NOT_ALLOWED = 405


class ApiMiddleware(MiddlewareMixin):
    """Refuses other versions and large bodies early; answers in JSON where Django would answer in HTML."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if not request.path_info.startswith(PATH):
            return None
        wanted = request.headers.get(VERSION_HEADER, VERSION)
        if wanted != VERSION:
            return error_response(
                400, "unknown_version", f"This is version {VERSION} of the API.", version=VERSION
            )
        if "chunked" in request.headers.get("Transfer-Encoding", "").lower():
            return error_response(411, "length_required", "Say how long the body is: Content-Length.")
        length = request.META.get("CONTENT_LENGTH") or "0"
        if not (length.isascii() and length.isdecimal()):
            return error_response(400, "bad_request", "Content-Length is no number.")
        if len(length) > 9 or int(length) > MAX_BODY_BYTES:
            return error_response(413, "too_large", f"A body has at most {MAX_BODY_BYTES:,} bytes.")
        return None

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if not request.path_info.startswith(PATH):
            return response
        if response.status_code == _METHOD_NOT_ALLOWED:
            allowed = response.get("Allow", "")
            response = error_response(405, "method_not_allowed", f"Here work: {allowed}.")
            response["Allow"] = allowed
        response[VERSION_HEADER] = VERSION
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        return response
