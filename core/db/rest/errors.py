"""Errors as every endpoint answers them: ``{"error": code, "message": text, ...}``."""

from __future__ import annotations

from typing import Any

from django.http import JsonResponse
from ninja import Schema


class ApiError(Exception):
    """The request can't be answered as asked; ``details`` stand beside code and message."""

    def __init__(self, status: int, code: str, message: str, /, **details: Any) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.details = details


class ErrorOut(Schema):
    """Further fields by code: ``fields`` (400, 422), ``conflicts`` (409), and what the page would show."""

    error: str
    message: str


def error_response(status: int, code: str, message: str, /, **details: Any) -> JsonResponse:
    response = JsonResponse({**details, "error": code, "message": message}, status=status)
    if status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="halo"'
    return response


def responses(*, ok: Any, status: int = 200) -> dict[int, Any]:
    """The ``response`` of an operation: what it answers, and that every error has one form."""
    return {status: ok, **dict.fromkeys((400, 401, 403, 404, 409, 413, 422, 429), ErrorOut)}
