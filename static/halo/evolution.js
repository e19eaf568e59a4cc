// Keys for the decisions, and sections that follow the work. Everything here works without it, by hand.
(function () {
  "use strict";
  const POLL_MS = 3000;

  function typing(target) {
    return target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName) ||
      (target.tagName === "INPUT" && !/^(checkbox|radio)$/.test(target.type));
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

  // A section that somebody is busy with stays as it is until they are through: see "late" below.
  function inUse(section) {
    const active = document.activeElement;
    const selection = document.getSelection();
    return (section.contains(active) && typing(active)) ||
      (!selection.isCollapsed && section.contains(selection.anchorNode)) ||
      section.querySelector(".halo-act[open], input[name=run]:checked") !== null;
  }

  // How to find the element again in what the server sends next.
  function sameIn(section, element) {
    if (element.id) return section.querySelector("#" + CSS.escape(element.id));
    for (const name of ["href", "data-key", "aria-label"]) {
      const value = element.getAttribute(name);
      if (value !== null) return section.querySelector("[" + name + '="' + CSS.escape(value) + '"]');
    }
    const around = element.parentElement.id && section.querySelector("#" + CSS.escape(element.parentElement.id));
    return around ? around.querySelector(element.tagName) : null;
  }

  // Logs that were read to their end go on at their end; others stay where they were read.
  function keepPlaces(section, next) {
    const after = next.querySelectorAll("pre, .answer");
    section.querySelectorAll("pre, .answer").forEach(function (box, index) {
      if (!after[index] || box.scrollHeight <= box.clientHeight) return;
      const atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
      after[index].scrollTop = atEnd && box.tagName === "PRE" ? after[index].scrollHeight : box.scrollTop;
    });
  }

  let late = false; // something came that a section in use has not been given yet

  function swap(fresh) {
    late = false;
    document.querySelectorAll("[data-live]").forEach(function (section) {
      const next = fresh.getElementById(section.id);
      if (!next || next.outerHTML === section.outerHTML) return;
      if (inUse(section)) {
        late = true;
        return;
      }
      section.querySelectorAll("details[id]").forEach(function (details) {
        const same = next.querySelector("#" + CSS.escape(details.id));
        if (same) same.open = details.open;
      });
      const active = section.contains(document.activeElement) ? document.activeElement : null;
      const came = document.importNode(next, true);
      const focused = active && sameIn(came, active);
      section.before(came);
      keepPlaces(section, came);
      section.remove();
      if (focused) focused.focus({ preventScroll: true });
    });
  }

  let waiting = false;
  let again = false; // something happened while the answer to the last question was on its way
  async function refresh() {
    if (document.hidden) return;
    if (waiting) {
      again = true;
      return;
    }
    waiting = true;
    again = false;
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
    if (again) refresh();
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
  for (const through of ["focusout", "change", "toggle", "mouseup", "keyup"]) {
    document.addEventListener(through, function () {
      if (late) window.setTimeout(refresh, 100);
    }, true);
  }
  window.setInterval(function () {
    if (document.querySelector("[data-working]")) refresh();
  }, POLL_MS);
})();
