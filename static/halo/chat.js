// The chat page, live: rows as the log has them, the reply as it streams, messages sent and acknowledged.
// Without this script the page is a form that works all the same. See docs/websocket.md.
(function () {
  "use strict";

  const page = document.getElementById("chat");
  if (!page || !window.halo || !window.halo.live || page.dataset.follow === undefined) return;

  const session = page.dataset.session;
  const list = document.getElementById("chat-rows");
  const waiting = document.getElementById("chat-waiting");
  const stateLine = document.getElementById("chat-state");
  const form = document.getElementById("chat-form");
  const field = document.getElementById("chat-text");
  const usage = document.getElementById("chat-usage");
  const rows = window.halo.chatRows(list);
  const PICTURE_SIDE = 1568;
  const PICTURE_BYTES = 600000; // of base64; a frame holds a mebibyte

  let after = Number(page.dataset.after);
  let catchingUp = false;
  let working = false;
  let stored = []; // messages that the server has and that stand in no row yet
  let unsent = []; // {frame}: not acknowledged yet; sent again on every new connection
  let pictures = []; // {media_type, data} beside the text that is being written

  function subscribe() {
    catchingUp = true;
    rows.forgetGrowing();
    window.halo.live.send({ type: "chat:subscribe", session: session, after: after, html: true });
    unsent.forEach((message) => window.halo.live.send(message.frame));
  }

  function receive(frame) {
    if (frame.session !== session) return;
    const handler = handlers[frame.type];
    if (!handler) return;
    const follows = atEnd();
    handler(frame);
    // While it catches up a view stands where it stood: rows come in their order, not in that of their numbers.
    if (!catchingUp && typeof frame.seq === "number") after = frame.seq;
    if (follows) window.scrollTo(0, document.documentElement.scrollHeight);
  }

  const handlers = {
    "chat:user": function (frame) {
      rows.put(frame);
      showWaiting();
      nothingSaid();
    },
    "chat:assistant": rows.put,
    "chat:system": function (frame) {
      rows.put(frame);
      nothingSaid();
      if (frame.follow) location.href = page.dataset.chatAddress.replace("SESSION", encodeURIComponent(frame.follow));
    },
    "chat:stream": extend,
    "chat:thinking": extend,
    "chat:tool_call": rows.toolCall,
    "chat:tool_result": rows.toolResult,
    "chat:discard": (frame) => rows.discard(frame.row),
    "chat:usage": function (frame) {
      usage.textContent = frame.context_tokens + " tokens in context";
    },
    "chat:waiting": function (frame) {
      stored = frame.messages;
      showWaiting();
    },
    "chat:working": () => setWorking(true),
    "chat:complete": () => setWorking(false),
    "chat:subscribed": function (frame) {
      catchingUp = false;
      after = frame.last;
      setWorking(frame.working);
    },
    "chat:ack": function (frame) {
      const sent = unsent.find((message) => message.frame.client_id === frame.client_id);
      unsent = unsent.filter((message) => message !== sent);
      if (sent && frame.stamp && !stored.some((message) => message.stamp === frame.stamp)) {
        stored.push({ stamp: frame.stamp, text: sent.frame.text, source: "" });
      }
      showWaiting();
    },
    error: function (frame) {
      const refused = unsent.find((message) => message.frame.client_id === frame.client_id);
      unsent = unsent.filter((message) => message !== refused);
      if (refused && field && !field.value && !pictures.length) {
        field.value = refused.frame.text; // what was written isn't lost
        pictures = refused.frame.images;
        showPictures();
      }
      showWaiting();
      say(frame.message, true);
    },
    reload: function (frame) {
      if (frame.reason === "too_slow") subscribe();
      else renew();
    },
  };

  // Whoever scrolls to the top gets what was said before, a piece at a time.
  function followUp() {
    const place = document.getElementById("chat-earlier");
    if (!place) return;
    const seen = new IntersectionObserver(async function (entries) {
      if (!entries[0].isIntersecting) return;
      seen.disconnect();
      const height = document.documentElement.scrollHeight;
      try {
        const answer = await fetch(place.querySelector("a").href, { credentials: "same-origin", redirect: "manual" });
        if (!answer.ok) return; // the link is still there
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        const next = fresh.getElementById("chat-earlier");
        const came = [...fresh.getElementById("chat-rows").children];
        list.prepend(...came.map((row) => document.importNode(row, true)));
        if (next) place.replaceWith(document.importNode(next, true));
        else place.remove();
        window.scrollBy(0, document.documentElement.scrollHeight - height);
        followUp();
      } catch (error) {
        console.warn(error);
      }
    });
    seen.observe(place);
  }

  function extend(frame) {
    if (!rows.extend(frame)) subscribe();
  }

  // The log was written anew, or too much was missed: take the rows as the server lays them out now.
  async function renew() {
    try {
      const answer = await fetch(location.pathname, { credentials: "same-origin", redirect: "manual" });
      if (!answer.ok) throw new Error(String(answer.status));
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const renewed = fresh.getElementById("chat");
      list.replaceChildren(...[...fresh.getElementById("chat-rows").children].map((row) => document.importNode(row, true)));
      after = Number(renewed.dataset.after);
      if (form) form.elements.archives.value = fresh.getElementById("chat-form").elements.archives.value;
      const earlier = document.getElementById("chat-earlier");
      if (earlier) earlier.remove();
      const now = fresh.getElementById("chat-earlier");
      if (now) list.before(document.importNode(now, true));
      followUp();
      subscribe();
    } catch {
      say("This page could not be brought up to date. Load it again.", true);
    }
  }

  function showWaiting() {
    stored = stored.filter((message) => !rows.hasStamp(message.stamp));
    waiting.replaceChildren(
      ...stored.map((message) => item("waits", message.text)),
      ...unsent.map((message) => item("is being sent", message.frame.text)),
    );
  }

  function item(what, text) {
    const made = document.createElement("li");
    const mark = document.createElement("b");
    const words = document.createElement("span");
    mark.textContent = what;
    words.textContent = text;
    words.dir = "auto";
    made.append(mark, " ", words);
    return made;
  }

  function nothingSaid() {
    const empty = document.getElementById("chat-empty");
    if (empty) empty.remove();
  }

  function setWorking(now) {
    if (working && !now) rows.cutOff();
    working = now;
    say(now ? "Works on an answer." : "At rest.", false);
    setEnds();
  }

  function setEnds() {
    if (form) form.querySelectorAll(".chat-ends button").forEach((button) => (button.disabled = !working));
  }

  function say(text, trouble) {
    stateLine.textContent = text;
    stateLine.toggleAttribute("data-trouble", trouble);
  }

  function atEnd() {
    return window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 80;
  }

  function send() {
    const text = wholeCharacters(field.value);
    if (!text.trim() && !pictures.length) return;
    const frame = {
      type: "chat:send",
      session: session,
      client_id: [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join(""),
      text: text,
      images: pictures,
    };
    if (new Blob([JSON.stringify(frame)]).size > 1000000) {
      say("This message is larger than a megabyte. Send less at once.", true);
      return;
    }
    unsent.push({ frame: frame });
    if (!window.halo.live.send(frame)) say("No connection. The message is sent as soon as there is one.", true);
    field.value = "";
    pictures = [];
    showPictures();
    showWaiting();
    window.scrollTo(0, document.documentElement.scrollHeight);
  }

  // Half a character, as a cut in the middle of an emoji leaves it, is no text that JSON can carry.
  function wholeCharacters(text) {
    return text.replace(/\p{Surrogate}/gu, "\ufffd");
  }

  // Not kept for later, as messages are: what it is about may be over by then.
  function ask(frame) {
    if (!window.halo.live.send(frame)) say("No connection, so nothing was done. Try again in a moment.", true);
  }

  function end(how) {
    ask({ type: "chat:" + how, session: session });
  }

  function remove(stamp) {
    const archives = Number(form.elements.archives.value);
    ask({ type: "chat:delete", session: session, stamp: stamp, archives: archives });
  }

  // Pictures are made small enough here: the whole message is one frame.
  async function take(files) {
    for (const file of files) {
      try {
        pictures.push(await shrunk(file));
      } catch {
        say("“" + file.name + "” can't be read as a picture.", true);
      }
    }
    pictures = pictures.slice(0, 8);
    showPictures();
  }

  async function shrunk(file) {
    const bitmap = await createImageBitmap(file);
    let side = PICTURE_SIDE;
    for (;;) {
      const scale = Math.min(1, side / Math.max(bitmap.width, bitmap.height));
      const canvas = document.createElement("canvas");
      canvas.width = Math.max(1, Math.round(bitmap.width * scale));
      canvas.height = Math.max(1, Math.round(bitmap.height * scale));
      const context = canvas.getContext("2d");
      context.fillStyle = "#fff"; // what is see-through would turn black
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
      const data = canvas.toDataURL("image/jpeg", 0.85).split(",")[1];
      if (data.length <= PICTURE_BYTES || side < 200) return { media_type: "image/jpeg", data: data };
      side = Math.round(side * 0.7);
    }
  }

  function showPictures() {
    const place = document.getElementById("chat-pictures");
    place.replaceChildren(
      ...pictures.map((picture, number) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = "picture " + (number + 1) + " ×";
        button.setAttribute("aria-label", "Leave out picture " + (number + 1));
        button.addEventListener("click", function () {
          pictures = pictures.filter((other) => other !== picture);
          showPictures();
          field.focus();
        });
        return button;
      }),
    );
  }

  if (form) {
    form.addEventListener("submit", function (event) {
      event.preventDefault();
      if (event.submitter && event.submitter.name === "delete") {
        if (window.confirm("Delete this message with its answers? There is no way back.")) remove(event.submitter.value);
        return;
      }
      const action = event.submitter ? event.submitter.value : "send";
      if (action === "send") send();
      else end(action);
    });
    document.addEventListener("keydown", function (event) {
      if (event.key === "Escape" && working && !event.isComposing) {
        event.preventDefault();
        end("stop");
      }
    });
    setEnds();
  }
  if (field) {
    field.addEventListener("keydown", function (event) {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      send();
    });
    field.addEventListener("paste", function (event) {
      const files = [...event.clipboardData.files].filter((file) => file.type.startsWith("image/"));
      if (!files.length) return;
      event.preventDefault();
      take(files);
    });
    const chooser = document.getElementById("chat-image");
    chooser.hasChangeListener = true; // keeps away unfold's, which looks for the text field of its own markup
    chooser.addEventListener("change", async function () {
      await take([...chooser.files]);
      chooser.value = "";
    });
    field.focus({ preventScroll: true });
  }

  window.halo.live.onState(function (state) {
    if (state === "closed") say("The connection is lost; it is tried again.", true);
    if (state === "refused") say("You are not logged in any more. Load the page again.", true);
  });
  window.addEventListener("beforeunload", function (event) {
    if (unsent.length) event.preventDefault();
  });
  window.scrollTo(0, document.documentElement.scrollHeight);
  followUp();
  window.halo.live.onFrames(receive, subscribe);
})();
