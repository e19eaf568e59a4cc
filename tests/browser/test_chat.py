"""The chat page as a person uses it: by keyboard alone, while a reply streams, with what a hostile model says."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from agents.providers.testing import ScriptedServer, Step, text
from tests.browser.conftest import NARROW, WIDE
from tests.browser.house import House, Place
from tests.browser.watch import assert_accessible, assert_fits

ANSWER_MS = 60_000
EVIL = (
    "<script>window.pwned = 1</script> <img src=x onerror='window.pwned = 1'> "
    "![seen](http://evil.example/seen.png) [link](javascript:window.pwned=1) **bold**"
)
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(scope="module")
def place(house: House) -> Place:
    return house.furnish({"name": "chatting", "runs": []})["chatting"]


def streaming(*pieces: str) -> Step:
    """Streams ``pieces``, a while apart, and then nothing more until the client goes away."""

    def step(handler: Any) -> None:
        handler.start_stream()
        for piece in pieces:
            handler.chunk({"content": piece})
            handler.scripted.closing.wait(0.1)
        handler.wait_for_the_end()

    return step


@pytest.fixture
def model(place: Place) -> Iterator[Callable[..., str]]:
    """Makes an agent whose model answers by a script; returns the name it is chosen by."""
    servers: list[ScriptedServer] = []

    def make(name: str, *script: Step) -> str:
        server = ScriptedServer(script)
        server.__enter__()
        servers.append(server)
        folder = place.path / ".halo/agents" / name
        folder.mkdir(parents=True)
        choice = f"model: {{provider: openai-compatible, id: m, endpoint: '{server.endpoint}'}}\n"
        (folder / "agent.yaml").write_text(f"name: {name}\n{choice}")
        (folder / "AGENT.md").write_text("You answer.\n")
        return f"{place.workspace}:{name}"

    yield make
    for server in servers:
        server.__exit__(None, None, None)


def started(visit: Callable[..., Page], agent: str, **options: Any) -> Page:
    page = visit("/admin/sessions_app/session/new/", **options)
    page.get_by_label("Agent").select_option(agent)
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/chat/")
    page.wait_for_function("window.halo.live.state === 'live'")
    return page


def message_of(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Message", exact=True)


def say(page: Page, words: str) -> None:
    message_of(page).fill(words)
    page.keyboard.press("Enter")


def test_a_conversation_by_keyboard_alone(visit: Callable[..., Page], place: Place) -> None:
    page = started(visit, f"{place.workspace}:support")
    expect(message_of(page)).to_be_focused()

    page.keyboard.type("What does shipping")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("cost to Norway?")
    page.keyboard.press("Enter")

    answer = page.locator(".said-assistant .page-prose").last
    expect(answer).to_contain_text("19.90", timeout=ANSWER_MS)
    expect(page.locator(".said-user .said-plain")).to_have_text("What does shipping\ncost to Norway?")
    expect(page.get_by_role("status")).to_have_text("At rest.")
    expect(message_of(page)).to_have_value("")
    assert page.evaluate("document.querySelectorAll('[data-growing]').length") == 0

    page.keyboard.type("/evo too long: at most two sentences")
    page.keyboard.press("Enter")
    expect(page.locator(".said-system").last).to_contain_text("Queued as run-")

    page.keyboard.type("/new")
    here = page.url
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url != here and url.endswith("/chat/"))


@pytest.mark.parametrize("scripting", [True, False])
def test_a_double_click_starts_one_session(
    scripting: bool, visit: Callable[..., Page], place: Place, house: House
) -> None:
    page = visit("/admin/sessions_app/session/new/", java_script_enabled=scripting)
    page.get_by_label("Agent").select_option(f"{place.workspace}:support")
    before = len(json.loads(house.run("session", "list", "--json")))

    page.get_by_role("button", name="Start").dblclick()
    page.wait_for_url("**/chat/")

    assert len(json.loads(house.run("session", "list", "--json"))) == before + 1


def test_a_reply_is_seen_while_it_streams_and_escape_ends_it(
    visit: Callable[..., Page], model: Callable[..., str]
) -> None:
    page = started(visit, model("slow", streaming("Once ", "upon ", "a ", "time ")))
    other = visit(page.url, who="vera")
    say(page, "Tell me a story")

    growing = page.locator("[data-growing] .said-plain")
    expect(growing).to_have_text("Once upon a time ", timeout=ANSWER_MS)
    expect(other.locator("[data-growing] .said-plain")).to_have_text("Once upon a time ")
    expect(page.locator("[data-growing]")).to_have_attribute("aria-busy", "true")
    expect(page.get_by_role("status")).to_have_text("Works on an answer.")
    assert_accessible(page)
    expect(message_of(other)).to_have_count(0)

    page.keyboard.press("Escape")

    for shown in (page, other):
        row = shown.locator(".said-assistant")
        expect(row).to_have_count(1)
        expect(row).to_contain_text("interrupted")
        expect(row).to_contain_text("Once upon a time")
        expect(shown.get_by_role("status")).to_have_text("At rest.")


def test_what_a_hostile_model_says_is_text(visit: Callable[..., Page], model: Callable[..., str]) -> None:
    page = started(visit, model("evil", text(EVIL), streaming(EVIL)))
    say(page, EVIL)

    answer = page.locator(".said-assistant .page-prose")
    expect(answer.locator("strong")).to_have_text("bold", timeout=ANSWER_MS)
    expect(answer).to_contain_text("<script>window.pwned = 1</script>")
    say(page, "again")
    expect(page.locator("[data-growing] .said-plain")).to_have_text(EVIL, timeout=ANSWER_MS)
    assert page.evaluate("window.pwned") is None
    assert page.locator("#chat-rows img, #chat-rows script, #chat-rows a[href^=javascript]").count() == 0
    page.keyboard.press("Escape")
    expect(page.get_by_role("status")).to_have_text("At rest.")


def test_a_picture_goes_along_and_an_exchange_is_deleted(
    visit: Callable[..., Page], model: Callable[..., str]
) -> None:
    page = started(visit, model("sees", text("A dot.")))
    page.locator("#chat-image").set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": PNG})
    expect(page.get_by_role("button", name="Leave out picture 1")).to_be_visible()
    say(page, "What is this?")

    expect(page.locator(".said-assistant")).to_contain_text("A dot.", timeout=ANSWER_MS)
    picture = page.locator(".said-user img")
    expect(picture).to_have_count(1)
    assert picture.evaluate("image => image.naturalWidth") == 1
    expect(page.get_by_role("status")).to_have_text("At rest.")

    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete this message and its answers").click()

    expect(page.locator(".said-deleted")).to_have_count(2)
    expect(page.locator(".said-system").last).to_contain_text("deleted")


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_long_line_and_a_table_stay_on_the_page(
    visit: Callable[..., Page], model: Callable[..., str], width: int, scheme: str
) -> None:
    wide = (
        "x" * 400 + "\n\n| a | b |\n|---|---|\n| " + "word " * 80 + "| c |\n\n```\n" + "y" * 300 + "\n```\n"
    )
    page = started(visit, model(f"wide-{scheme}-{width}", text(wide)), width=width, scheme=scheme)
    say(page, "z" * 300)

    expect(page.locator(".said-assistant table")).to_be_visible(timeout=ANSWER_MS)
    assert_fits(page)
    assert_accessible(page)


def test_without_a_script_it_is_a_form(house: House, visit: Callable[..., Page], place: Place) -> None:
    page = visit("/admin/sessions_app/session/new/", java_script_enabled=False)
    page.get_by_label("Agent").select_option(f"{place.workspace}:support")
    page.get_by_label("First message").fill("What does shipping cost to Norway?")
    page.get_by_role("button", name="Start").click()

    answer = page.locator(".said-assistant .page-prose").last
    expect(answer).to_contain_text(
        "19.90", timeout=ANSWER_MS
    )  # the page looks again by itself while it works
    message_of(page).fill("/session info")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("access full, 1 exchange,")).to_be_visible()


def test_half_a_character_is_sent_as_what_stands_for_one(
    visit: Callable[..., Page], model: Callable[..., str]
) -> None:
    page = started(visit, model("halved", text("It is half a character.")), width=WIDE)
    message_of(page).evaluate("field => { field.value = 'What is \\ud83d, and 😀?'; }")
    page.get_by_role("button", name="Send").click()

    expect(page.locator("#chat-rows")).to_contain_text("What is \ufffd, and 😀?", timeout=ANSWER_MS)
    expect(page.locator("#chat-rows")).to_contain_text("It is half a character.", timeout=ANSWER_MS)
