"""Every page of the admin: light and dark, wide and narrow, by axe, by Tab, and without a fault."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NARROW, WIDE
from tests.browser.house import Place
from tests.browser.watch import assert_accessible, assert_fits, assert_reachable

ADMIN = "/admin"
PAGES = {
    "dashboard": "/",
    "run list": "/evolution/evolutionrun/",
    "run that waits": "/evolution/evolutionrun/{waiting}/change/",
    "run that landed": "/evolution/evolutionrun/{landed}/change/",
    "file of a run": "/evolution/evolutionrun/{landed}/file/?path=attempts/{attempt}/patch.md",
    "decisions on a run": "/evolution/evolutionrun/{landed}/history/",
    "delete a run": "/evolution/evolutionrun/{waiting}/delete/",
    "apply list": "/evolution/evolutionapply/",
    "apply": "/evolution/evolutionapply/{apply}/change/",
    "rollback with a conflict": "/evolution/evolutionapply/{apply}/rollback/",
    "workspaces": "/workspaces/workspace/",
    "workspace": "/workspaces/workspace/{workspace}/change/",
    "sessions": "/sessions_app/session/",
    "transcript": "/sessions_app/session/{session}/change/",
    "chat": "/sessions_app/session/{session}/chat/",
    "new session": "/sessions_app/session/new/",
    "events": "/core/event/",
    "settings": "/settings/",
    "settings of a workspace": "/settings/?workspace={workspace}",
    "people": "/auth/user/",
    "person": "/auth/user/1/change/",
    "new person": "/auth/user/add/",
    "groups": "/auth/group/",
    "group": "/auth/group/1/change/",
    "password": "/password_change/",
    "tokens": "/core/apitoken/",
}


@pytest.mark.parametrize("name", PAGES)
def test_page(name: str, visit: Callable[..., Page], shop: Place) -> None:
    page = visit(ADMIN + PAGES[name].format(**_known(shop)), who="admin")

    _look(page)

    assert_reachable(page)


def test_kept_scenarios(visit: Callable[..., Page], shop: Place) -> None:
    """The landed run left one."""
    page = visit(ADMIN + "/evolution/regressionscenario/", who="admin")
    _look(page)
    assert_reachable(page)

    page.locator("#scenarios a").first.click()

    page.wait_for_url("**/evolution/regressionscenario/*/change/")
    _look(page)
    assert_reachable(page)
    page.keyboard.press("r")
    assert page.get_by_label("Why it no longer matters, if you like").is_visible()


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_dashboard_ends_where_what_is_seen_of_it_ends(
    width: int, visit: Callable[..., Page], shop: Place
) -> None:
    """The table of the chart's figures, for who can't see the chart, takes no room."""
    page = visit("/admin/", width=width)
    expect(page.locator(".dash-unseen tbody tr").first).to_be_attached()

    end = page.evaluate("document.getElementById('dashboard').getBoundingClientRect().bottom + scrollY")
    height = page.evaluate("document.documentElement.scrollHeight")
    assert height <= max(900, end + 60)


def test_the_account_menu_by_keyboard(visit: Callable[..., Page]) -> None:
    """Colours, password and the way out: in the dark as well."""
    page = visit("/admin/", who="admin")
    page.locator(".halo-user > summary").press("Enter")
    expect(page.get_by_role("link", name="Change password")).to_be_visible()
    assert_reachable(page)
    assert_accessible(page)

    page.get_by_role("button", name="Dark").press("Enter")
    expect(page.locator("html.dark")).to_be_visible()
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    assert_accessible(page, rules=["color-contrast"])


def test_login(visit: Callable[..., Page]) -> None:
    page = visit("/admin/login/", who="")

    _look(page)

    assert_reachable(page)


@pytest.mark.parametrize("path", ["/admin/nothing/", "/admin/evolution/evolutionrun/nothing/change/"])
def test_a_page_that_is_not_there(path: str, visit: Callable[..., Page]) -> None:
    page = visit(path, status=404)

    assert page.get_by_role("heading", level=1).is_visible()
    _look(page)


def test_an_address_that_only_takes_forms(visit: Callable[..., Page]) -> None:
    page = visit("/admin/logout/", status=405)

    _look(page)
    page.get_by_role("link", name="Back to Halo").click()
    expect(page.locator("#dashboard")).to_be_visible()


def test_a_page_that_is_not_allowed(visit: Callable[..., Page]) -> None:
    page = visit("/admin/auth/user/", who="vera", status=403)

    _look(page)


def test_the_page_about_the_interface(visit: Callable[..., Page]) -> None:
    page = visit("/api/docs")

    _look(page)


def _look(page: Page) -> None:
    assert "Django" not in page.title()
    assert "Halo" in page.title()
    assert_fits(page)
    assert_accessible(page)
    page.emulate_media(color_scheme="dark")
    assert_accessible(page, rules=["color-contrast", "link-in-text-block"])
    page.set_viewport_size({"width": NARROW, "height": 900})
    assert_fits(page)
    assert_accessible(page)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": WIDE, "height": 900})


def _known(shop: Place) -> dict[str, object]:
    landed, waiting = shop.runs
    [draft] = shop.path.glob(f".halo/evo/runs/{landed.run}/attempts/*/patch.md")
    return {
        "attempt": draft.parent.name,
        "waiting": waiting.run,
        "landed": landed.run,
        "apply": landed.apply,
        "session": landed.session,
        "workspace": shop.workspace,
    }
