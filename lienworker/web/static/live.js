"use strict";
// The page fetches itself again when the server says that there is something new, and puts in only what differs.
(() => {
  const state = document.getElementById("live-state");
  let busy = false, again = false;

  function put(fresh) {
    const focused = document.activeElement && document.activeElement.id;
    const open = [...document.querySelectorAll("details[open][id]")].map((one) => one.id);
    for (const old of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(old.id);
      if (next && next.innerHTML !== old.innerHTML) {
        const places = [...old.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
        old.replaceChildren(...next.childNodes);
        [...old.querySelectorAll(".scroll")].forEach((one, index) => { one.scrollLeft = places[index] || 0; });
      }
    }
    open.forEach((id) => { const one = document.getElementById(id); if (one) one.open = true; });
    const target = focused && document.getElementById(focused);
    if (target && target !== document.activeElement) target.focus({ preventScroll: true });
  }

  async function refresh() {
    if (busy) { again = true; return; }
    if (document.hidden || String(getSelection()).trim()) return; // somebody is marking text: do not pull it away
    busy = true;
    try {
      const reply = await fetch(location.href, { headers: { "X-Live": "1" }, credentials: "same-origin" });
      if (reply.ok) put(new DOMParser().parseFromString(await reply.text(), "text/html"));
    } catch (problem) { /* the stream says that the server is away */ }
    busy = false;
    if (again) { again = false; setTimeout(refresh, 500); }
  }

  function show(words, kind) { state.textContent = words; state.className = "live " + kind; }

  if (document.querySelector("[data-live]")) {
    const stream = new EventSource("/events");
    stream.addEventListener("hello", () => { show("live", "on"); refresh(); });
    stream.addEventListener("news", refresh);
    stream.addEventListener("tick", refresh);
    stream.addEventListener("error", () => show("not connected", "off"));
    document.addEventListener("visibilitychange", refresh);
    addEventListener("pagehide", () => stream.close());
  } else {
    show("", "");
  }

  const drop = document.getElementById("drop");
  if (drop) {
    const bar = document.getElementById("progress"), words = document.getElementById("progress-words");
    const send = (file) => {
      const body = new FormData(), call = new XMLHttpRequest();
      body.append("file", file, file.name);
      call.open("POST", "/imports");
      call.setRequestHeader("X-CSRF-Token", document.querySelector("meta[name=csrf]").content);
      bar.hidden = false;
      call.upload.onprogress = (event) => {
        bar.value = event.lengthComputable ? (100 * event.loaded) / event.total : 0;
        words.textContent = file.name + ": sending";
      };
      call.upload.onload = () => { words.textContent = file.name + ": sent, being imported"; };
      call.onload = () => {
        const page = new DOMParser().parseFromString(call.responseText, "text/html");
        const trouble = call.status >= 400 && page.querySelector("main p");
        words.textContent = trouble ? trouble.textContent : file.name + ": taken";
        bar.hidden = true;
        refresh();
      };
      call.onerror = () => { words.textContent = file.name + ": not sent"; bar.hidden = true; };
      call.send(body);
    };
    drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      [...event.dataTransfer.files].forEach(send);
    });
    drop.addEventListener("submit", (event) => {
      event.preventDefault();
      [...drop.querySelector("input[type=file]").files].forEach(send);
      drop.reset();
    });
  }
})();
