// Brings the first page up to date: the server renders its fragment, this puts it in place.
"use strict";
(function () {
  const EVERY_MS = 5000; // ages and health move without an event
  const SOON_MS = 300; // events come in bursts; one look serves all of them
  const board = document.getElementById("dashboard");
  const late = document.getElementById("dashboard-late");
  let asking = false;
  let again = false; // something happened while the answer to the last question was on its way
  let soon = null;

  async function refresh() {
    if (document.hidden) return;
    if (asking) {
      again = true;
      return;
    }
    asking = true;
    again = false;
    try {
      const answer = await fetch(board.dataset.fragment, { credentials: "same-origin", redirect: "manual" });
      if (answer.type === "opaqueredirect" || answer.status === 403) {
        location.reload(); // logged out, or no longer allowed: the server says which
        return;
      }
      if (!answer.ok) throw new Error(String(answer.status));
      put(await answer.text());
      late.hidden = true;
    } catch {
      late.hidden = false;
    } finally {
      asking = false;
    }
    if (again) refresh();
  }

  // A link that has the focus keeps it: the same address is looked for in what came.
  function put(html) {
    const focused = board.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const came = new DOMParser().parseFromString(html, "text/html");
    board.replaceChildren(...came.body.childNodes);
    if (focused === null) return;
    for (const link of board.querySelectorAll("a")) {
      if (link.getAttribute("href") === focused) {
        link.focus({ preventScroll: true });
        return;
      }
    }
  }

  function onEvent() {
    if (soon !== null) return;
    soon = setTimeout(function () {
      soon = null;
      refresh();
    }, SOON_MS);
  }

  for (const topic of ["evolution", "session", "settings"]) window.halo.live.on(topic, onEvent);
  setInterval(refresh, EVERY_MS);
  document.addEventListener("visibilitychange", refresh);
})();
