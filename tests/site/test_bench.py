"""The benches: no test runs them, so what they import is tried here at least."""

from __future__ import annotations

import importlib

import pytest

from bench.__main__ import PARTS


@pytest.mark.parametrize("part", PARTS)
def test_every_part_finds_what_it_imports(part: str) -> None:
    assert callable(importlib.import_module(f"bench.{part}").measure)
