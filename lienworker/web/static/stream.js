"use strict";
// One connection to the server for all open pages of a browser, which allows six of them to a site: were each page to
// keep its own, the seventh would load nothing any more. Pages that are hidden leave; the last one closes it.
const ports = new Set();
let stream = null;

function tell(name) {
  for (const port of ports) port.postMessage(name);
}

function connect() {
  stream = new EventSource("/events");
  for (const name of ["hello", "news", "tick", "beat"]) stream.addEventListener(name, () => tell(name));
  stream.addEventListener("error", () => {
    tell("away");
    // It connects again by itself, unless the server has refused it.
    if (stream.readyState === EventSource.CLOSED) setTimeout(() => { if (ports.size) connect(); }, 2000);
  });
}

addEventListener("connect", (event) => {
  const port = event.ports[0];
  port.addEventListener("message", ({ data }) => {
    if (data === "watch") ports.add(port); else ports.delete(port);
    if (!ports.size && stream) { stream.close(); stream = null; }
    if (ports.size && !stream) connect();
    else if (data === "watch" && stream.readyState === EventSource.OPEN) port.postMessage("hello");
  });
  port.start();
});
