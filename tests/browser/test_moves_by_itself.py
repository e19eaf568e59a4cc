"""What another process changes moves an open page, without a reload and without taking the focus away."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import TOO_LONG
from tests.browser.house import House

WORK_MS = 120_000
_MARK = "window.wasNeverReloaded = true"
_MARKED = "window.wasNeverReloaded === true"


def test_the_list_the_run_and_the_dashboard_follow_a_decision_made_elsewhere(
    house: House, visit: Callable[..., Page]
) -> None:
    place = house.furnish({"name": "elsewhere", "runs": [{"hint": TOO_LONG, "to": "review"}]})["elsewhere"]
    run = place.runs[0].run
    shown = visit(f"/admin/evolution/evolutionrun/{run}/change/")
    listed = visit(f"/admin/evolution/evolutionrun/?workspace={place.workspace}")
    board = visit("/admin/")
    for page in (shown, listed, board):
        page.wait_for_function("window.halo.live.state === 'live'")
        page.evaluate(_MARK)
    expect(shown.locator("#top .halo-badge")).to_have_text("awaiting review")
    link = listed.get_by_role("link", name=TOO_LONG)
    link.focus()

    house.run("evo", "reject", f"run-{run}", "--as", "rita", "--reason", "one sentence is enough")

    expect(shown.locator("#top .halo-badge")).to_have_text("rejected")
    expect(shown.locator("#top")).to_contain_text("one sentence is enough")
    expect(board.locator(".dash-events")).to_contain_text(f"run …{run[-4:]} rejected")
    expect(listed.locator("#runs .halo-badge")).to_have_text("rejected")
    expect(link).to_be_focused()
    assert all(page.evaluate(_MARKED) for page in (shown, listed, board))


def test_a_form_that_is_being_filled_in_is_left_alone(house: House, visit: Callable[..., Page]) -> None:
    place = house.furnish({"name": "typing", "runs": [{"hint": TOO_LONG, "to": "review"}]})["typing"]
    run = place.runs[0].run
    page = visit(f"/admin/evolution/evolutionrun/{run}/change/")
    page.wait_for_function("window.halo.live.state === 'live'")
    page.keyboard.press("a")
    page.keyboard.type("only the wording")

    house.run("evo", "reject", f"run-{run}", "--as", "rita", "--reason", "no")

    expect(page.locator("#top .halo-badge")).to_have_text("rejected")
    expect(page.get_by_label("Hint to the merge, if any")).to_have_value("only the wording")
    page.keyboard.press("Escape")
    expect(page.locator("#acts")).to_contain_text("Approve: ")  # why it can't be used any more


def test_a_tick_is_left_alone_until_it_is_taken_out(house: House, visit: Callable[..., Page]) -> None:
    place = house.furnish({"name": "ticked", "runs": [{"hint": TOO_LONG, "to": "review"}]})["ticked"]
    run = place.runs[0].run
    page = visit(f"/admin/evolution/evolutionrun/?workspace={place.workspace}")
    page.wait_for_function("window.halo.live.state === 'live'")
    page.get_by_role("checkbox", name="Choose run-").check()
    house.run("evo", "reject", f"run-{run}", "--as", "rita", "--reason", "no")
    page.wait_for_timeout(2000)
    expect(page.locator("#runs .halo-badge")).to_have_text("awaiting review")

    page.get_by_role("checkbox", name="Choose run-").uncheck()

    expect(page.locator("#runs .halo-badge")).to_have_text("rejected")
