"""From a conversation in the browser to a run: a question, its answer, ``/evo`` and what was wrong with it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NARROW, TOO_LONG, WIDE
from tests.browser.house import House
from tests.browser.watch import assert_fits

WORK_MS = 120_000


@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
def test_a_bad_answer_becomes_a_run(
    width: int, scheme: str, house: House, visit: Callable[..., Page]
) -> None:
    name = f"talk{width}"
    place = house.furnish({"name": name, "runs": [], "open": True})[name]
    page = visit(f"/admin/sessions_app/session/{place.session}/chat/", width=width, scheme=scheme)
    message = page.get_by_label("Message", exact=True)
    message.focus()

    page.keyboard.type("How much is shipping to Austria?")
    page.keyboard.press("Enter")
    expect(page.locator("#chat-rows")).to_contain_text("€6.90", timeout=WORK_MS)
    expect(page.locator("#chat-state")).to_contain_text("At rest", timeout=WORK_MS)
    assert_fits(page)
    message.focus()
    page.keyboard.type(f"/evo {TOO_LONG}")
    page.keyboard.press("Enter")
    expect(page.locator("#chat")).to_contain_text("run-", timeout=WORK_MS)

    page.goto(f"/admin/evolution/evolutionrun/?workspace={place.workspace}")
    expect(page.locator("#runs .halo-badge").get_by_text("awaiting review")).to_be_visible(timeout=WORK_MS)
    page.get_by_role("link", name=TOO_LONG).click()
    expect(page.locator("#evidence")).to_contain_text("€6.90")
    assert_fits(page)
