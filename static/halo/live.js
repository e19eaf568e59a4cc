// What a page follows live: halo.live.on("evolution:run_changed", (event) => ...). See docs/websocket.md.
//
// A page says up to which event it was rendered: <meta name="halo-since" content="ID">. Without it, events
// count from the moment the socket is open. Pages work without this script; they only don't move by themselves.
(function () {
  "use strict";

  const halo = (window.halo = window.halo || {});
  const PING_MS = 25000;
  const PONG_WITHIN_MS = 10000;
  const RETRY_FIRST_MS = 500;
  const RETRY_LAST_MS = 15000;

  const listeners = []; // {kind, fn}; kind is "evolution:run_changed", or "evolution" for all of its kinds
  const stateListeners = [];
  const frameListeners = []; // of frames about one session: chat:*, and reload and error with a session
  const openListeners = []; // called whenever a socket has opened
  let socket = null;
  let state = "closed"; // "connecting", "live", "closed", "refused"
  let retryMs = RETRY_FIRST_MS;
  let retryTimer = null;
  let pingTimer = null;
  let pongTimer = null;
  let asked = null; // the topics of the last subscribe on this socket
  const mark = document.querySelector('meta[name="halo-since"]');
  let since = mark && /^\d+$/.test(mark.content) ? Number(mark.content) : null;

  function topics() {
    return [...new Set(listeners.map((listener) => listener.kind.split(":")[0]))].sort();
  }

  function setState(next) {
    if (next === state) return;
    state = next;
    stateListeners.forEach((fn) => fn(state));
  }

  function send(frame) {
    socket.send(JSON.stringify(frame));
  }

  function subscribe() {
    if (!socket || socket.readyState !== WebSocket.OPEN) return;
    const wanted = topics();
    if (!wanted.length || wanted.join() === asked) return;
    asked = wanted.join();
    send({ type: "subscribe", topics: wanted, since: since });
  }

  function connect() {
    clearTimeout(retryTimer);
    retryTimer = null;
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    setState("connecting");
    asked = null;
    const opened = (socket = new WebSocket(scheme + "//" + location.host + "/ws/"));
    opened.onopen = function () {
      subscribe();
      openListeners.forEach((fn) => call(fn));
      pingTimer = setInterval(ping, PING_MS);
    };
    opened.onmessage = function (message) {
      if (opened === socket) receive(JSON.parse(message.data));
    };
    opened.onclose = function (closed) {
      if (opened !== socket) return;
      stopPinging();
      socket = null;
      if (closed.code === 4401) {
        setState("refused"); // not logged in any more: the next page the person opens asks for the password
        return;
      }
      setState("closed");
      retryTimer = setTimeout(connect, retryMs * (0.5 + Math.random()));
      retryMs = Math.min(retryMs * 2, RETRY_LAST_MS);
    };
  }

  function ping() {
    send({ type: "__ping__" });
    clearTimeout(pongTimer);
    pongTimer = setTimeout(function () {
      // A sleeping laptop or a vanished network: the browser would notice only minutes later.
      const dead = socket;
      if (!dead) return;
      dead.onclose({ code: 1006 });
      dead.close();
    }, PONG_WITHIN_MS);
  }

  function stopPinging() {
    clearInterval(pingTimer);
    clearTimeout(pongTimer);
  }

  function receive(frame) {
    if (frame.session) {
      if (frame.type === "chat:subscribed") isLive();
      frameListeners.forEach((fn) => call(fn, frame));
    } else if (frame.type === "event") {
      since = frame.id;
      listeners
        .filter((listener) => listener.kind === frame.kind || listener.kind === frame.kind.split(":")[0])
        .forEach((listener) => call(listener.fn, frame));
    } else if (frame.type === "subscribed") {
      since = frame.last;
      isLive();
      document.dispatchEvent(new CustomEvent("halo:subscribed"));
    } else if (frame.type === "__pong__") {
      clearTimeout(pongTimer);
    } else if (frame.type === "reload") {
      since = null;
      // A page that brings itself up to date calls preventDefault(), and looks again at the next halo:subscribed.
      const event = new CustomEvent("halo:reload", { cancelable: true, detail: { reason: frame.reason } });
      if (document.dispatchEvent(event)) {
        location.reload();
      } else {
        asked = null;
        subscribe();
      }
    } else if (frame.type === "error") {
      console.warn("live: " + frame.message);
      if (frame.code === "forbidden") setState("refused");
    }
  }

  function isLive() {
    retryMs = RETRY_FIRST_MS;
    setState("live");
  }

  function call(fn, frame) {
    try {
      fn(frame);
    } catch (error) {
      console.error(error); // one listener's fault is no reason for the others to miss the event
    }
  }

  halo.live = {
    on: function (kind, fn) {
      listeners.push({ kind: kind, fn: fn });
      if (!socket && !retryTimer && state !== "refused") connect();
      else subscribe();
    },
    // Frames about sessions; onOpen is called for every new socket, and asks for what the page follows.
    onFrames: function (fn, onOpen) {
      frameListeners.push(fn);
      openListeners.push(onOpen);
      if (!socket && !retryTimer && state !== "refused") connect();
      else if (socket && socket.readyState === WebSocket.OPEN) call(onOpen);
    },
    // False while there is no connection: nothing was sent.
    send: function (frame) {
      if (!socket || socket.readyState !== WebSocket.OPEN) return false;
      send(frame);
      return true;
    },
    onState: function (fn) {
      stateListeners.push(fn);
      fn(state);
    },
    get state() {
      return state;
    },
    get since() {
      return since;
    },
  };

  window.addEventListener("online", function () {
    if (!socket && retryTimer) connect();
  });
})();
