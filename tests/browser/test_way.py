"""The whole way of a change, from the conversation to its rollback: by mouse, and by keyboard alone.

Nothing is reloaded here by hand: what moves, moves by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import BY_HAND, NARROW, TOO_LONG, WIDE
from tests.browser.house import House, Place
from tests.browser.watch import assert_fits

WORK_MS = 120_000  # the longest that a step of the pipeline is waited for
NEW_RULE = "Answer in at most two sentences."
QUESTION = "How much is shipping to Austria?"
MENU = "Menu"
LOOKS = [(WIDE, "light"), (NARROW, "dark")]


@pytest.fixture
def place(house: House, request: pytest.FixtureRequest) -> Place:
    """A workspace with a session in which nobody has said anything yet."""
    name = "".join(letter for letter in request.node.name if letter.isalnum())
    return house.furnish({"name": name, "runs": [], "open": True})[name]


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_by_mouse(width: int, scheme: str, visit: Callable[..., Page], place: Place) -> None:
    before = place.rules.read_text()
    page = visit(f"/admin/sessions_app/session/{place.session}/chat/", width=width, scheme=scheme)
    message = page.get_by_label("Message", exact=True)
    for text in (QUESTION, f"/evo {TOO_LONG}"):
        message.fill(text)
        page.get_by_role("button", name="Send").click()
        _is_answered(page, text)
        assert_fits(page)

    page.locator("#chat-rows").get_by_role("link", name="run-").click()
    expect(page.locator("#top h1")).to_contain_text(TOO_LONG)
    if width == NARROW:
        page.get_by_role("button", name=MENU).click()
    page.locator("#nav-sidebar").get_by_role("link", name="Runs").click()
    _is_drafted(page, place)
    _run_of(page, place).click()
    expect(page.locator("#evidence").get_by_text(NEW_RULE).first).to_be_visible()
    assert_fits(page)

    page.get_by_text("Approve…").click()
    page.get_by_label("Hint to the merge, if any").fill("take it as it is")
    assert_fits(page)
    page.get_by_role("button", name="Approve into a new apply").click()

    assert _is_landed(page)
    assert NEW_RULE in place.rules.read_text()
    assert_fits(page)
    place.rules.write_text(place.rules.read_text() + BY_HAND)
    page.get_by_role("link", name="Roll back").click()
    expect(page.get_by_text("what is there now is lost")).to_be_visible()
    assert_fits(page)
    page.get_by_role("button", name="Roll back").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was changed")
    assert BY_HAND in place.rules.read_text()
    page.get_by_role("checkbox", name="Overwrite exactly these").check()
    page.get_by_role("button", name="Roll back").click()

    assert _is_taken_back(page)
    assert place.rules.read_text() == before
    assert_fits(page)


@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "dark"), (NARROW, "light")])
def test_by_keyboard_alone(width: int, scheme: str, visit: Callable[..., Page], place: Place) -> None:
    before = place.rules.read_text()
    page = visit(f"/admin/sessions_app/session/{place.session}/chat/", width=width, scheme=scheme)
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    for text in (QUESTION, f"/evo {TOO_LONG}"):
        page.keyboard.type(text)
        page.keyboard.press("Enter")
        _is_answered(page, text)

    if width == NARROW:
        _press(page, page.get_by_role("button", name=MENU), "Enter")
    _press(page, page.get_by_role("link", name="Runs"), "Enter")
    _is_drafted(page, place)
    _press(page, _run_of(page, place), "Enter")
    expect(page.locator("#evidence").get_by_text(NEW_RULE).first).to_be_visible()

    page.keyboard.press("a")
    expect(page.get_by_label("Hint to the merge, if any")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Hint to the merge, if any")).to_be_hidden()
    page.keyboard.press("a")
    page.keyboard.type("take it as it is")
    _press(page, page.get_by_role("button", name="Approve into a new apply"), "Enter")

    assert _is_landed(page)
    assert NEW_RULE in place.rules.read_text()
    place.rules.write_text(place.rules.read_text() + BY_HAND)
    page.keyboard.press("b")
    expect(page.get_by_text("what is there now is lost")).to_be_visible()
    _press(page, page.get_by_role("checkbox", name="Overwrite exactly these"), "Space")
    _press(page, page.get_by_role("button", name="Roll back"), "Enter")

    assert _is_taken_back(page)
    assert place.rules.read_text() == before


def test_several_are_approved_into_one_apply(house: House, visit: Callable[..., Page]) -> None:
    wanted = {
        "name": "several",
        "runs": [
            {"hint": TOO_LONG, "to": "review"},
            {"hint": "write amounts of money with the currency code", "to": "review"},
        ],
    }
    place = house.furnish(wanted)["several"]
    page = visit(f"/admin/evolution/evolutionrun/?workspace={place.workspace}")
    page.get_by_role("button", name="Approve the chosen into one apply").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was changed")

    for box in page.get_by_role("checkbox", name="Choose run-").all():
        box.check()
    page.get_by_role("button", name="Approve the chosen into one apply").click()

    assert _is_landed(page)
    rules = place.rules.read_text()
    assert NEW_RULE in rules
    assert "currency code" in rules


def test_rejecting_needs_a_reason_and_keeps_it(house: House, visit: Callable[..., Page]) -> None:
    place = house.furnish({"name": "rejected", "runs": [{"hint": TOO_LONG, "to": "review"}]})["rejected"]
    before = place.rules.read_text()
    page = visit(f"/admin/evolution/evolutionrun/{place.runs[0].run}/change/")

    page.keyboard.press("r")
    page.keyboard.type("one sentence is enough")
    _press(page, page.get_by_role("button", name="Reject", exact=True), "Enter")

    expect(page.locator("#top .halo-badge")).to_have_text("rejected")
    expect(page.locator("#top")).to_contain_text("one sentence is enough")
    assert place.rules.read_text() == before


def _is_answered(page: Page, text: str) -> None:
    """The question has its answer, or the command its line; nothing works any more."""
    expect(page.locator("#chat-rows")).to_contain_text(
        "Queued as run-" if text.startswith("/evo") else "€6.90", timeout=WORK_MS
    )
    expect(page.locator("#chat-state")).to_contain_text("At rest", timeout=WORK_MS)


def _line_of(page: Page, place: Place) -> Locator:
    return page.locator("#runs tr", has_text=place.path.name)


def _run_of(page: Page, place: Place) -> Locator:
    return _line_of(page, place).get_by_role("link", name=TOO_LONG)


def _is_drafted(page: Page, place: Place) -> None:
    """The list moves by itself until the draft waits for a person."""
    badge = _line_of(page, place).locator(".halo-badge").get_by_text("awaiting review")
    expect(badge).to_be_visible(timeout=WORK_MS)


def _is_landed(page: Page) -> bool:
    """The apply's page is followed until it says that the published bytes were read back."""
    expect(page).to_have_url(re.compile("/evolutionapply/"))
    expect(page.locator("#top")).to_contain_text("It has landed", timeout=WORK_MS)
    return page.locator("#top .halo-badge").first.inner_text() == "applied"


def _is_taken_back(page: Page) -> bool:
    expect(page.locator("#top .halo-badge").first).to_have_text("rolled back", timeout=WORK_MS)
    return "brought back" in page.locator("#evidence").inner_text()


def _press(page: Page, target: Locator, key: str) -> None:
    """Walk to ``target`` by Tab, from where the focus is, and press ``key`` on it."""
    for _ in range(120):
        if target.evaluate("(element) => element === document.activeElement"):
            page.keyboard.press(key)
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab never came to {target}")
