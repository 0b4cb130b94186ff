"use strict";
// Times in the visitor's own zone: the server writes UTC, which is what is read without scripts.
(() => {
  const named = new Intl.DateTimeFormat(undefined, { timeZoneName: "short" });
  const plain = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });
  const zone = (moment) => named.formatToParts(moment).find((part) => part.type === "timeZoneName").value;

  window.localTimes = (root) => {
    for (const one of root.querySelectorAll("time[datetime]")) {
      const moment = new Date(one.dateTime);
      if (Number.isNaN(moment.getTime())) continue;
      const words = plain.format(moment) + " " + zone(moment);
      one.title = words + (one.dataset.utc ? ", " + one.dataset.utc : "");
      if (!("ago" in one.dataset)) one.textContent = words;
    }
  };
  localTimes(document);
  document.getElementById("zone").textContent = "times are " + Intl.DateTimeFormat().resolvedOptions().timeZone;
})();
