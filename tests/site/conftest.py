"""Tests of the web part: each begins with nobody's requests counted."""

from __future__ import annotations

import pytest
from django.core.cache import cache


@pytest.fixture(autouse=True)
def _nobody_has_asked_yet() -> None:
    """The counts of the API's throttle outlive a test; users of two tests have the same numbers."""
    cache.clear()
