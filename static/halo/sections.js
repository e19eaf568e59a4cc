// Sections that follow the work: whatever is marked data-live is fetched again when something has happened, and
// takes its own place by its id. The page says what it follows, and about what, if not about everything:
//   <meta name="halo-topics" content="evolution session:changed">  <meta name="halo-about" content="...">
// Without this script the page stands as it was sent.
(function () {
  "use strict";
  const POLL_MS = 3000;
  const SOON_MS = 500; // events come in bursts; one look serves all of them
  const halo = (window.halo = window.halo || {});

  halo.typing = function (target) {
    return target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName) ||
      (target.tagName === "INPUT" && !/^(checkbox|radio)$/.test(target.type));
  };

  function said(name) {
    const mark = document.querySelector('meta[name="' + name + '"]');
    return mark ? mark.content : "";
  }

  // Whether somebody has changed it since the page came.
  function touched(field) {
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field.tagName !== "SELECT") return field.value !== field.defaultValue;
    const first = [...field.options].find((option) => option.defaultSelected) || field.options[0];
    return first !== undefined && field.value !== first.value;
  }

  // A section that somebody is busy with stays as it is until they are through: see "late" below.
  function inUse(section) {
    const active = document.activeElement;
    const selection = document.getSelection();
    return (section.contains(active) && halo.typing(active)) ||
      (!selection.isCollapsed && section.contains(selection.anchorNode)) ||
      section.querySelector(".halo-act[open], input[name=run]:checked") !== null ||
      [...section.querySelectorAll("input:not([type=hidden]), select, textarea")].some(
        (field) => touched(field) && !field.closest(".halo-act"));
  }

  // What somebody has unfolded stays so: by its id, in a conversation by its row.
  function keepOpen(section, next) {
    section.querySelectorAll("details").forEach(function (details) {
      const row = details.closest("[data-row]");
      const there = row && next.querySelector('[data-row="' + CSS.escape(row.dataset.row) + '"]');
      const same = details.id ? next.querySelector("#" + CSS.escape(details.id))
        : there && there.querySelectorAll("details")[[...row.querySelectorAll("details")].indexOf(details)];
      if (same) same.open = details.open;
    });
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
      keepOpen(section, next);
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
  const about = said("halo-about");
  let soon = null;
  said("halo-topics").split(" ").filter(Boolean).forEach(function (kind) {
    halo.live.on(kind, function (event) {
      if (about && event.object_id !== about && !event.object_id.startsWith(about + ">")) return;
      if (!soon) soon = window.setTimeout(function () { soon = null; refresh(); }, SOON_MS);
    });
  });
  // Events can't tell what was missed: look at all of it, once what comes later is told again.
  let missed = false;
  document.addEventListener("halo:reload", function (event) {
    event.preventDefault();
    missed = true;
  });
  document.addEventListener("halo:subscribed", function () {
    if (missed) refresh();
    missed = false;
  });
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
