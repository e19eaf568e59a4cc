"""What another process changes moves an open page, without a reload and without taking the focus away."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, Response, WebSocketRoute, expect

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
    with page.expect_response(_is_list):
        house.run("evo", "reject", f"run-{run}", "--as", "rita", "--reason", "no")
    with page.expect_response(
        _is_list
    ):  # one look waits for the other, so what the first one brought is there
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("#runs .halo-badge")).to_have_text("awaiting review")

    page.get_by_role("checkbox", name="Choose run-").uncheck()

    expect(page.locator("#runs .halo-badge")).to_have_text("rejected")


def _is_list(answer: Response) -> bool:
    return "/evolutionrun/?" in answer.url


def test_the_other_pages_follow_as_well(house: House, visit: Callable[..., Page]) -> None:
    place = house.furnish({"name": "followed", "runs": [], "open": True})["followed"]
    listed = visit("/admin/sessions_app/session/", who="admin")
    shown = visit(f"/admin/sessions_app/session/{place.session}/change/")
    events = visit("/admin/core/event/")
    settings = visit("/admin/settings/")
    pages = (listed, shown, events, settings)
    for page in pages:
        page.wait_for_function("window.halo.live.state === 'live'")
        page.evaluate(_MARK)
    typed = settings.get_by_label("general.evolution.locked")
    typed.fill("agents/*")

    house.run("chat", "-w", str(place.path), "-s", place.session, "What does shipping cost to Norway?")
    house.run("settings", "set", "general.evolution.scenarios_per_apply", "4")

    expect(shown.locator("#about-rows")).to_contain_text("19.90")
    expect(listed.locator("#followed-list")).to_contain_text("What does shipping cost to Norway?")
    expect(events.locator("#followed-list")).to_contain_text("general.evolution.scenarios_per_apply")
    expect(settings.get_by_label("general.evolution.scenarios_per_apply")).to_have_value("4")
    expect(typed).to_have_value("agents/*")
    assert all(page.evaluate(_MARKED) for page in pages)

    settings.get_by_role("button", name="Save").first.click()

    expect(settings.get_by_role("main").or_(settings.locator("body")).first).to_contain_text("Saved")
    assert house.run("settings", "get", "general.evolution.scenarios_per_apply").strip() == "4"
    house.run("settings", "set", "general.evolution.scenarios_per_apply", "--unset")
    house.run("settings", "set", "general.evolution.locked", "--unset")
    expect(settings.get_by_label("general.evolution.locked")).to_have_value("")


def test_a_page_told_to_reload_keeps_what_is_being_typed(house: House, visit: Callable[..., Page]) -> None:
    place = house.furnish({"name": "missed", "runs": [{"hint": TOO_LONG, "to": "review"}]})["missed"]
    run = place.runs[0].run
    page = visit(f"/admin/evolution/evolutionrun/{run}/change/")
    held: list[WebSocketRoute] = []

    def between(socket: WebSocketRoute) -> None:
        """Nothing of what happens reaches the page, until it is told that it missed something."""
        server = socket.connect_to_server()
        socket.on_message(server.send)
        server.on_message(lambda text: None if '"type":"event"' in text else socket.send(text))
        held.append(socket)

    page.route_web_socket("**/ws/", between)
    page.reload()
    page.wait_for_function("window.halo.live.state === 'live'")
    page.evaluate(_MARK)
    page.keyboard.press("a")
    page.keyboard.type("only the wording")
    house.run("evo", "reject", f"run-{run}", "--as", "rita", "--reason", "no")
    expect(page.locator("#top .halo-badge")).to_have_text("awaiting review")

    held[0].send('{"type":"reload","reason":"too_old"}')

    expect(page.locator("#top .halo-badge")).to_have_text("rejected")
    expect(page.get_by_label("Hint to the merge, if any")).to_have_value("only the wording")
    assert page.evaluate(_MARKED)
