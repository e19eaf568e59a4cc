"""What a person would notice, or a console would say: faults, overflow, what Tab can't reach, axe's findings."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Page, Request, Response

_SERIOUS = ("serious", "critical")
_TELL_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error("policy violation: " + event.violatedDirective + " " + event.blockedURI));
"""

_TOO_WIDE = """() => {
  const scrolls = (element) => {
    for (let at = element.parentElement; at; at = at.parentElement) {
      const overflow = getComputedStyle(at).overflowX;
      if (overflow === "auto" || overflow === "scroll" || overflow === "hidden" || overflow === "clip") return true;
    }
    return false;
  };
  const found = [];
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth) found.push("the page itself");
  for (const element of document.querySelectorAll("body *")) {
    const box = element.getBoundingClientRect();
    if (box.width && box.right > innerWidth + 1 && getComputedStyle(element).position !== "fixed" &&
        !scrolls(element) && element.checkVisibility({visibilityProperty: true}))
      found.push(element.tagName + "." + element.className + " ends at " + Math.round(box.right));
  }
  return found.slice(0, 5);
}"""

# Everything a mouse could use, numbered, with what it looks like while it has no focus.
_NUMBER_TARGETS = """() => {
  const look = (element) => {
    const style = getComputedStyle(element);
    const ring = ["outlineStyle", "outlineWidth", "boxShadow", "borderColor", "backgroundColor", "textDecoration"];
    return ring.map((name) => style[name]).join("|");
  };
  window.lookOf = (element) => {
    const looks = [look(element)];
    for (const child of element.querySelectorAll("b, span")) looks.push(look(child));
    if (element.parentElement) looks.push(look(element.parentElement));
    return looks.join("||");
  };
  document.activeElement?.blur();
  const wanted = "a[href], button:not([disabled]), input:not([type=hidden]):not([disabled]), " +
    "select:not([disabled]), textarea:not([disabled]), summary, [tabindex='0']";
  const seen = new Set();
  let number = 0;
  for (const element of document.querySelectorAll(wanted)) {
    if (!element.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    if (element.closest("[inert]") || element.tabIndex < 0) continue;
    if (element.type === "radio") {
      if (seen.has(element.name)) continue;
      seen.add(element.name);
    }
    element.dataset.target = String(++number);
    element.dataset.look = window.lookOf(element);
  }
  return number;
}"""

_FOCUSED = """() => {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  const box = element.getBoundingClientRect();
  const group = element.type === "radio" ? document.querySelector(`[name="${element.name}"][data-target]`) : null;
  return {
    target: (group || element).dataset.target || null,
    name: element.outerHTML.slice(0, 160),
    visible: element.dataset.look === undefined || window.lookOf(element) !== element.dataset.look,
    inside: box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
  };
}"""

_UNREACHED = """(reached) => [...document.querySelectorAll("[data-target]")]
  .filter((element) => !reached.includes(element.dataset.target)).map((element) => element.outerHTML.slice(0, 160))"""


class Watch:
    """Collects what goes wrong on ``page`` while a test uses it: in its console and on its network."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.faults: list[str] = []
        self._address = address
        page.add_init_script(_TELL_VIOLATIONS)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.faults.append(f"script error: {error}"))
        page.on("request", self._asked)
        page.on("response", self._answered)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type != "error" or "Failed to load resource" in message.text:
            return  # a status has its own line, from the answer itself
        self.faults.append(f"{self.page.url}: {message.text}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self._address, "data:", "blob:")):
            self.faults.append(f"{self.page.url} asked {request.url}")

    def _answered(self, response: Response) -> None:
        document = response.request.is_navigation_request()
        if response.status >= 500 or (response.status >= 400 and not document):
            self.faults.append(f"{response.url}: status {response.status}")


def assert_fits(page: Page) -> None:
    """Nothing is wider than the window, unless it scrolls by itself."""
    _assert_none(page, page.evaluate(_TOO_WIDE))


def assert_accessible(page: Page, *, rules: list[str] | None = None) -> None:
    """axe finds nothing serious. Looked at once movement has ended, so that no half-faded colour counts."""
    wanted: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules is not None:
        wanted["runOnly"] = {"type": "rule", "values": rules}
    page.wait_for_function("document.getAnimations().every((one) => one.playState !== 'running')")
    results: dict[str, Any] = Axe().run(page, options=wanted).response
    found = [
        f"{violation['impact']} {violation['id']}: {node['html'][:200]} | {node.get('failureSummary', '')[:300]}"
        for violation in results["violations"]
        if violation["impact"] in _SERIOUS
        for node in violation["nodes"][:3]
    ]
    _assert_none(page, found)


def assert_reachable(page: Page) -> None:
    """Tab goes to everything that a mouse could use, and where it is can be seen."""
    count = page.evaluate(_NUMBER_TARGETS)
    reached: list[str] = []
    unseen: list[str] = []
    for _ in range(2 * count + 20):
        page.keyboard.press("Tab")
        now = page.evaluate(_FOCUSED)
        if now is None:
            continue  # past the last one; the walk may have begun in the middle, where a field took the focus
        if now["target"] is not None and now["target"] in reached:
            break
        if now["target"] is not None:
            reached.append(now["target"])
        if not (now["visible"] and now["inside"]):
            unseen.append(now["name"])
    _assert_none(page, page.evaluate(_UNREACHED, reached), "Tab never comes to")
    _assert_none(page, unseen, "has the focus and doesn't show it")


def _assert_none(page: Page, found: list[str], what: str = "") -> None:
    assert not found, "\n".join([f"{page.url} {page.viewport_size} {what}", *found])
