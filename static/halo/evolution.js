// Keys for the decisions. Everything here works without it, by hand.
(function () {
  "use strict";

  document.addEventListener("keydown", function (event) {
    if (event.key === "Escape") {
      document.querySelectorAll(".halo-act[open]").forEach(function (act) {
        act.open = false;
        act.querySelector("summary").focus();
      });
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.key.length !== 1 || window.halo.typing(event.target)) return;
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
})();
