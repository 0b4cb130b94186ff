"use strict";
// The page fetches itself again when the server says that there is something new, and changes what differs, node by
// node: focus, selection, open details and what is just being clicked stay.
(() => {
  // What was heard longer ago than this says nothing about now, ms.
  const STALE_MS = 3000;
  // What a person has set on the page is the person's.
  const OWN = new Set(["checked", "value", "open"]);
  const state = document.getElementById("live-state");
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  let heard = -Infinity, newsSince = null, updated = new Date(), busy = false, pressed = false, waiting = null;

  // A list's rows stay where they are, with what is known of them now: new ones are announced above it, and those that
  // left it fade. Only older rows are added, at its end.
  function settle(fresh) {
    for (const old of document.querySelectorAll("tbody[data-stays]")) {
      const next = fresh.getElementById(old.id);
      if (!next || !old.rows.length) continue;
      const coming = new Map([...next.rows].map((row) => [row.id, row]));
      const last = Number(old.rows[old.rows.length - 1].dataset.position);
      let gone = 0;
      const kept = [...old.rows].map((row) => {
        const now = coming.get(row.id) || row.cloneNode(true);
        if (!coming.delete(row.id)) { gone += 1; now.className = "gone"; now.title = "No longer in this list"; }
        return now;
      });
      const older = [...coming.values()].filter((row) => Number(row.dataset.position) < last);
      announce(fresh.querySelector(".newer[data-top]"), coming.size - older.length, gone);
      next.replaceChildren(...kept, ...older);
    }
  }

  function announce(line, added, gone) {
    if (!line) return;
    const n = Number(line.dataset.newer) + added;
    const [link, words] = line.children;
    const parts = [n && (n < 100 ? n : "100+") + " new", gone && gone + " gone", "show"];
    link.hidden = !(n || gone);
    words.hidden = !link.hidden;
    link.textContent = parts.filter(Boolean).join(", ");
  }

  function put(fresh) {
    localTimes(fresh);
    settle(fresh);
    for (const old of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(old.id);
      if (next) Idiomorph.morph(old, next, { callbacks: { beforeAttributeUpdated: (name) => !OWN.has(name) } });
    }
  }

  // Between press and release nothing moves: the click would be lost, or hit what came in its place.
  function putWhenFree(fresh, since) {
    if (pressed) { waiting = [fresh, since]; return; }
    put(fresh);
    updated = new Date();
    if (newsSince === since) newsSince = null;
    show();
  }

  function release() {
    setTimeout(() => {
      pressed = false;
      if (waiting) putWhenFree(...waiting);
      waiting = null;
    });
  }

  // A list stays where it is, and says how many rows are new above it.
  function address() {
    const here = new URL(location.href), list = document.querySelector("[data-top]");
    here.searchParams.delete("said");
    if (list && !here.searchParams.has("below")) here.searchParams.set("top", list.dataset.top);
    return here;
  }

  async function refresh() {
    if (newsSince === null) newsSince = performance.now();
    if (busy || document.hidden) return;
    busy = true;
    const since = newsSince;
    try {
      const reply = await fetch(address(), { headers: { "X-Live": "1" }, signal: AbortSignal.timeout(10000) });
      if (reply.ok) putWhenFree(new DOMParser().parseFromString(await reply.text(), "text/html"), since);
    } catch (problem) { /* what it shows is getting old, and it says so */ }
    busy = false;
    if (newsSince !== null && !waiting) setTimeout(refresh, 500);
  }

  function show() {
    const now = performance.now();
    const live = now - heard < STALE_MS && (newsSince === null || now - newsSince < STALE_MS);
    const words = (live ? "live, updated " : "not live, as of ") + clock.format(updated);
    if (state.textContent !== words) state.textContent = words;
    state.className = "live " + (live ? "on" : "off");
  }

  function hear(name) {
    if (document.hidden) return; // it was under way when the page let go
    heard = name === "away" ? -Infinity : performance.now();
    if (name === "hello" || name === "news" || name === "tick") refresh();
    show();
  }

  // One connection for all pages where the browser can share it; otherwise each visible page has its own.
  function connection() {
    if (window.SharedWorker) {
      const port = new SharedWorker("/static/stream.js").port;
      port.addEventListener("message", ({ data }) => hear(data));
      port.start();
      return { open: () => port.postMessage("watch"), close: () => port.postMessage("leave") };
    }
    let stream = null;
    return {
      open() {
        if (stream) return;
        stream = new EventSource("/events");
        for (const name of ["hello", "news", "tick", "beat"]) stream.addEventListener(name, () => hear(name));
        stream.addEventListener("error", () => hear("away"));
      },
      close() { if (stream) stream.close(); stream = null; },
    };
  }

  if (document.querySelector("[data-live]")) {
    const line = connection();
    const follow = () => {
      heard = -Infinity;
      show();
      if (document.hidden) line.close(); else line.open();
    };
    for (const name of ["pointerup", "pointercancel", "blur"]) addEventListener(name, release, true);
    addEventListener("pointerdown", () => { pressed = true; }, true);
    document.addEventListener("visibilitychange", follow);
    document.addEventListener("refresh", refresh);
    addEventListener("pageshow", follow);
    addEventListener("pagehide", () => line.close());
    setInterval(show, 500);
  } else {
    state.textContent = "";
  }
})();
