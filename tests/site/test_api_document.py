"""Requests made from the OpenAPI document: none is answered with a fault of ours, all answers fit it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from tests.evolution.rows import Rows
from tests.site.api_world import World, bearer, person, token_for

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]
schema = schemathesis.openapi.from_wsgi("/api/openapi.json", get_wsgi_application())


@pytest.fixture
def secret(db: None, tmp_path: Path, halo_home: Path) -> Iterator[str]:
    """Requests keep the test's connection, as they do with Django's own test client."""
    World.make(Rows.make(tmp_path))
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield token_for(person("operator"))
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@schema.parametrize()
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
def test_whatever_fits_the_document_or_nearly_does(case: schemathesis.Case, secret: str) -> None:
    case.headers = {**(case.headers or {}), **bearer(secret)}

    case.call_and_validate(checks=CHECKS)
