"""One server and one Chromium for all of these tests on a worker; both end with the last of them.

The browser's event loop runs in this thread while it is open, so it must be gone before other tests want theirs:
that is why everything here is of the package's scope, and why these tests never use the tests' own database.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.furnish import PASSWORD
from tests.browser.house import House, Place, furnish, serve
from tests.browser.watch import Watch

HERE = Path(__file__).parent
WIDE, NARROW = 1280, 390
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

TOO_LONG = "too long: give the answer in at most two sentences"
BURIED = "you buried the price: begin with it"
BY_HAND = "\n- Never mention the warehouse.\n"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="package")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("browser")
    home = folder / "halo-home"
    furnish(home, folder / "places")
    with serve(home, folder / "places") as made:
        yield made


@pytest.fixture(scope="package")
def shop(house: House) -> Place:
    """A run that waits, and one that has landed in a file that somebody has edited since."""
    wanted = {
        "name": "shop",
        "runs": [
            {"hint": BURIED, "to": "applied", "edit": BY_HAND},
            {"hint": TOO_LONG, "to": "review"},
        ],
    }
    return house.furnish(wanted)["shop"]


@pytest.fixture(scope="package")
def chrome() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        expect.set_options(timeout=30_000)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def logins(house: House, chrome: Browser) -> Callable[[str], Any]:
    """The cookies of somebody who has logged in by the form; once per name."""
    known: dict[str, Any] = {}

    def login(name: str) -> Any:
        if name not in known:
            context = chrome.new_context(base_url=house.address)
            page = context.new_page()
            log_in(page, name)
            known[name] = context.storage_state()
            context.close()
        return known[name]

    return login


def log_in(page: Page, name: str) -> None:
    page.goto("/admin/login/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(lambda url: "login" not in url)


@pytest.fixture
def visit(house: House, chrome: Browser, logins: Callable[[str], Any]) -> Iterator[Callable[..., Page]]:
    """Opens a page as somebody; at the end of the test nothing may have gone wrong on any of them."""
    watches: list[Watch] = []

    def open_page(
        path: str,
        *,
        who: str = "rita",
        width: int = WIDE,
        scheme: str = "light",
        status: int = 200,
        **options: Any,
    ) -> Page:
        context = chrome.new_context(
            base_url=house.address,
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            storage_state=logins(who) if who else None,
            **options,
        )
        context.set_default_timeout(30_000)
        page = context.new_page()
        watches.append(Watch(page, house.address))
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == status
        return page

    yield open_page
    for watch in watches:
        watch.page.context.close()
    assert not [fault for watch in watches for fault in watch.faults]
