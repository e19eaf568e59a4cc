"""The page about settings says what the schema says."""

from __future__ import annotations

from pathlib import Path

from core.settings_docs import render
from core.settings_schema import SCHEMA

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"


def test_the_page_is_in_step_with_the_schema() -> None:
    assert PAGE.read_text() == render(), "run: make docs"


def test_every_key_has_help_and_a_place_on_the_page() -> None:
    for key, setting in SCHEMA.items():
        assert f"`{key}`" in render()
        assert setting.help.endswith("."), key
        assert setting.is_global or not setting.secret, key
