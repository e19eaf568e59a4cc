"""Draws the pictures of README and docs/reviewing.md: ``scripts/pictures [FOLDER]``.

What they show was made by real runs on the shipped sample; only the moments are moved apart afterwards, so that not
everything happened within this minute.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import QUIET, WIDE, log_in
from tests.browser.house import ROOT, House, Place, furnish, run_python, serve

IMAGES = ROOT / "docs" / "images"
SHOPS = (
    {
        "name": "birch-lane",
        "runs": [
            {
                "hint": "you buried the price: begin every answer with the price",
                "to": "applied",
                "edit": "- Sign every answer with the name of the shop.\n",
            },
            {
                "hint": "never mention what we don't ship",
                "messages": ["Do you ship to Norway?"],
                "to": "review",
            },
            {"hint": "too long: give the answer in at most two sentences", "to": "review"},
        ],
    },
    {
        "name": "workshop",
        "runs": [
            {
                "hint": "write amounts of money with the currency code",
                "messages": ["What does it cost to have my brakes bled?"],
                "to": "review",
            },
        ],
    },
)
_MOVE_APART = """
import os
import django; django.setup()
from datetime import timedelta
from django.db.models import F
from django.utils import timezone
from evolution.models import EvolutionApply, EvolutionRun
from sessions_app.models import Session, TokensOnDay
from workspaces.models import Workspace
ages = [timedelta(days=2, hours=3), timedelta(hours=5), timedelta(hours=1), timedelta(minutes=12)]
for run, age in zip(EvolutionRun.objects.order_by("pk"), ages, strict=True):
    moved = {name: F(name) - age for name in ("created_at", "started_at", "finished_at")}
    EvolutionRun.objects.filter(pk=run.pk).update(decided_at=F("decided_at") - age, **moved)
    EvolutionApply.objects.filter(source_runs=run).update(**moved)
    for path in run.workspace.paths.evolution.run(run.pk).rglob("*"):
        moment = path.lstat().st_mtime - age.total_seconds()
        os.utime(path, (moment, moment), follow_symlinks=False)
    Session.objects.filter(pk=run.source_session_id).update(last_activity_at=F("last_activity_at") - age)
today = timezone.now().date()
for number, place in enumerate(Workspace.objects.order_by("pk")):
    for back in range(1, 14):
        busy = (7 * back + 5 * number) % 11 + (0 if (today - timedelta(days=back)).weekday() > 4 else 6)
        for use, share in (("chat", 15_000), ("evolution", 13_000 * (back % 4 != 0))):
            TokensOnDay.objects.create(
                workspace=place, day=today - timedelta(days=back), use=use, input_tokens=busy * share,
                output_tokens=busy * share // 9,
            )
"""


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="halo-pictures-"))
    home = scratch / "halo-home"
    try:
        places = furnish(home, scratch / "places", *SHOPS)
        run_python(home, "-c", _MOVE_APART)
        with serve(home, scratch) as house, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
            draw(browser, house, places, folder)
            browser.close()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def draw(browser: Browser, house: House, places: dict[str, Place], folder: Path) -> None:
    landed, _, waiting = places["birch-lane"].runs
    talk = places["workshop"].runs[0].session
    runs, applies = "/admin/evolution/evolutionrun/", "/admin/evolution/evolutionapply/"
    page = _page(browser, house, "light")
    _shoot(page, "/admin/", folder / "dashboard.png", height=900)
    _shoot(page, runs, folder / "run-list.png", height=640)
    _shoot(page, f"{runs}{waiting.run}/change/", folder / "run-page.png", until=".halo-grid")
    page.get_by_text("Approve…").click()
    page.get_by_label("Hint to the merge, if any").fill("only the wording")
    page.screenshot(path=folder / "approve.png", clip={"x": 288, "y": 66, "width": WIDE - 288, "height": 420})
    _shoot(page, f"{applies}{landed.apply}/change/", folder / "apply-page.png")
    _shoot(page, f"{applies}{landed.apply}/rollback/", folder / "conflict-page.png", height=720)
    _shoot(page, f"/admin/sessions_app/session/{talk}/chat/", folder / "chat.png", height=812)
    dark = _page(browser, house, "dark")
    _shoot(dark, f"{runs}{waiting.run}/change/", folder / "run-page-dark.png", height=900)
    narrow = _page(browser, house, "light", width=390)
    _shoot(narrow, f"{runs}{waiting.run}/change/", folder / "run-page-narrow.png", height=844)


def _page(browser: Browser, house: House, scheme: str, *, width: int = WIDE) -> Page:
    context = browser.new_context(
        base_url=house.address,
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": 900},
    )
    page = context.new_page()
    log_in(page, "rita")
    return page


def _shoot(page: Page, path: str, target: Path, *, height: int | None = None, until: str = "") -> None:
    """The first ``height`` pixels; without it the whole page, or as far as the end of what ``until`` selects."""
    width = page.viewport_size["width"] if page.viewport_size else WIDE
    page.set_viewport_size({"width": width, "height": height or 900})
    page.goto(path)
    page.wait_for_load_state("networkidle")
    page.evaluate("document.fonts.ready")
    if height is None:
        # A window as high as the page: what sticks to the window's edges stands where it belongs.
        end = f"document.querySelector('{until}').getBoundingClientRect().bottom + 6" if until else "0"
        whole = page.evaluate(f"Math.ceil({end} || document.documentElement.scrollHeight)")
        page.set_viewport_size({"width": width, "height": whole})
    page.screenshot(path=target, animations="disabled")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
