"""Without JavaScript every page is there and every form works; what follows by itself is asked for anew."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NARROW, TOO_LONG, log_in
from tests.browser.house import House
from tests.browser.watch import assert_fits

PATIENCE_SEC = 120


def test_a_change_is_approved_and_taken_back(house: House, visit: Callable[..., Page]) -> None:
    place = house.furnish({"name": "plain", "runs": [{"hint": TOO_LONG, "to": "review"}]})["plain"]
    before = place.rules.read_text()
    page = visit("/admin/login/", who="", java_script_enabled=False)
    log_in(page, "vera")
    page.goto(f"/admin/evolution/evolutionrun/?workspace={place.workspace}")
    page.get_by_role("link", name=TOO_LONG).click()

    page.get_by_text("Approve…").click()
    page.get_by_label("Hint to the merge, if any").fill("take it as it is")
    page.get_by_role("button", name="Approve into a new apply").click()
    _reload_until(page, "It has landed")
    assert place.rules.read_text() != before
    page.get_by_role("link", name="Roll back").click()
    page.get_by_role("button", name="Roll back").click()

    _reload_until(page, "brought back")
    assert place.rules.read_text() == before


def test_settings_are_changed(house: House, visit: Callable[..., Page]) -> None:
    page = visit("/admin/settings/", java_script_enabled=False, width=NARROW)
    field = page.get_by_label("general.evolution.max_attempts")

    field.fill("4")
    page.get_by_role("button", name="Save").first.click()

    expect(field).to_have_value("4")
    assert house.run("settings", "get", "general.evolution.max_attempts").strip().endswith("4")


@pytest.mark.parametrize("width", [NARROW, 1000])
def test_the_menu_is_opened_used_and_closed_by_keyboard(width: int, visit: Callable[..., Page]) -> None:
    page = visit("/admin/", java_script_enabled=False, width=width)
    menu, runs = page.get_by_role("link", name="Menu", exact=True), page.get_by_role("link", name="Runs")
    expect(runs).to_be_hidden()
    expect(page.get_by_role("button", name="Menu")).to_be_hidden()

    menu.press("Enter")
    expect(runs).to_be_visible()
    assert_fits(page)
    page.get_by_role("link", name="Close the menu").press("Enter")
    expect(runs).to_be_hidden()
    menu.press("Enter")
    page.keyboard.press("Tab")  # from the menu's beginning, not from the page's
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    runs.press("Enter")

    page.wait_for_url("**/evolution/evolutionrun/")
    expect(page.get_by_role("link", name="Runs", exact=True)).to_be_hidden()


def test_where_the_menu_lies_open_there_is_no_button_for_it(visit: Callable[..., Page]) -> None:
    page = visit("/admin/", java_script_enabled=False, width=1280)

    expect(page.get_by_role("link", name="Runs")).to_be_visible()
    expect(page.get_by_role("link", name="Menu", exact=True)).to_be_hidden()
    expect(page.get_by_role("button", name="Show or hide the menu")).to_be_hidden()


def test_the_way_out_is_there(visit: Callable[..., Page]) -> None:
    page = visit("/admin/login/", who="", java_script_enabled=False, width=NARROW)
    log_in(page, "vera")
    page.get_by_role("link", name="Menu", exact=True).click()
    page.locator("summary", has_text="vera").click()
    page.get_by_role("button", name="Log out").click()

    page.goto("/admin/")
    assert "/login/" in page.url


def test_pages_fit_and_are_seen(visit: Callable[..., Page]) -> None:
    for path in ("/admin/", "/admin/evolution/evolutionrun/", "/admin/sessions_app/session/"):
        page = visit(path, java_script_enabled=False, width=NARROW)
        expect(page.get_by_role("main").or_(page.locator("#content, #main")).first).to_be_visible()
        assert page.locator("body").inner_text().strip()
    assert_fits(visit("/admin/evolution/evolutionrun/", width=NARROW))


def _reload_until(page: Page, text: str) -> None:
    deadline = time.monotonic() + PATIENCE_SEC
    while text not in page.locator("body").inner_text():
        assert time.monotonic() < deadline, page.locator("body").inner_text()
        page.wait_for_timeout(1000)
        page.reload()
