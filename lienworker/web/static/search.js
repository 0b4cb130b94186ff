"use strict";
// Suggestions while somebody types into the search box; without scripts its button does the same.
(() => {
  const box = document.getElementById("q"), list = document.getElementById("found");
  let timer = null;
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const text = box.value.trim();
      if (text.length < 2) return list.replaceChildren();
      const reply = await fetch("/api/search?brief=1&q=" + encodeURIComponent(text));
      if (!reply.ok || text !== box.value.trim()) return;
      list.replaceChildren(...(await reply.json()).tasks.map((task) => {
        const option = document.createElement("option");
        option.value = task.parcel_id || task.task_id;
        option.label = [option.value, task.county, task.status].filter(Boolean).join(", ");
        return option;
      }));
    }, 150);
  });
  // "/" goes to the box, as elsewhere.
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    box.focus();
  });
})();
