// A form marked data-once is sent once, however often its button is clicked. Coming back to the page frees it again.
(function () {
  "use strict";

  document.querySelectorAll("form[data-once]").forEach((form) => {
    let sent = false;
    form.addEventListener("submit", (event) => {
      if (sent) event.preventDefault();
      sent = true;
    });
    window.addEventListener("pageshow", () => (sent = false));
  });
})();
