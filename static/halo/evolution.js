// Keys for the decisions, and sections that follow the work. Everything here works without it, by hand.
(function () {
  "use strict";
  const POLL_MS = 3000;

  function typing(target) {
    return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
  }

  document.addEventListener("keydown", function (event) {
    if (event.key === "Escape") {
      document.querySelectorAll(".halo-act[open]").forEach(function (act) {
        act.open = false;
        act.querySelector("summary").focus();
      });
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.key.length !== 1 || typing(event.target)) return;
    const act = document.querySelector('.halo-acts [data-key="' + CSS.escape(event.key.toLowerCase()) + '"]');
    if (!act) return;
    event.preventDefault();
    if (act.tagName === "A") {
      act.click();
      return;
    }
    document.querySelectorAll(".halo-act[open]").forEach(function (other) { other.open = other === act; });
    act.open = true;
    (act.querySelector("textarea, input[type=radio]") || act.querySelector("form button")).focus();
  });

  // A section that somebody is busy with stays as it is until they are through.
  function inUse(section) {
    return section.contains(document.activeElement) ||
      section.querySelector(".halo-act[open], input[name=run]:checked") !== null;
  }

  function swap(fresh) {
    document.querySelectorAll("[data-live]").forEach(function (section) {
      const next = fresh.getElementById(section.id);
      if (!next || inUse(section) || next.outerHTML === section.outerHTML) return;
      section.querySelectorAll("details[id]").forEach(function (details) {
        const same = next.querySelector("#" + CSS.escape(details.id));
        if (same) same.open = details.open;
      });
      section.replaceWith(document.importNode(next, true));
    });
  }

  let waiting = false;
  async function refresh() {
    if (waiting || document.hidden) return;
    waiting = true;
    try {
      const answer = await fetch(window.location.href, { credentials: "same-origin" });
      if (answer.ok && !answer.redirected) {
        swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
      }
    } catch (error) {
      // The server is away for a moment; the next look tells.
    } finally {
      waiting = false;
    }
  }

  if (!document.querySelector("[data-live]")) return;
  // Where the live script is loaded, it says when to look; the timer below is for pages without it.
  let soon = null;
  if (window.halo && window.halo.live) {
    window.halo.live.on("evolution", function () {
      if (soon) return;
      soon = window.setTimeout(function () { soon = null; refresh(); }, 500);
    });
  }
  document.addEventListener("visibilitychange", refresh);
  window.setInterval(function () {
    if (document.querySelector("[data-working]")) refresh();
  }, POLL_MS);
})();
