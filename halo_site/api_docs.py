"""``/api/docs``: the OpenAPI document as one plain page, rendered here, without a script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from core.db.api_tokens import SCOPES
from halo_site.api import document


@dataclass(frozen=True, slots=True)
class Described:
    """One operation, as the page shows it."""

    method: str
    path: str
    summary: str
    scope: str
    permission: str
    parameters: list[dict[str, Any]]
    body: str


def docs_page(request: HttpRequest) -> HttpResponse:
    found = document()
    return render(
        request,
        "halo_site/api_docs.html",
        {
            "title": found["info"]["title"],
            "version": found["info"]["version"],
            "description": found["info"]["description"],
            "operations": list(_operations(found)),
            "schemas": [
                (name, json.dumps(schema, indent=2))
                for name, schema in sorted(found["components"]["schemas"].items())
            ],
            "scopes": SCOPES.items(),
        },
    )


def _operations(found: dict[str, Any]) -> Iterator[Described]:
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            yield Described(
                method=method.upper(),
                path=path,
                summary=operation.get("summary", ""),
                scope=operation["x-scope"],
                permission=operation["x-permission"],
                parameters=operation.get("parameters", []),
                body=_body_name(operation),
            )


def _body_name(operation: dict[str, Any]) -> str:
    try:
        reference: str = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    except KeyError:
        return ""
    return reference.rsplit("/", 1)[-1]
