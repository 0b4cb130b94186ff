"use strict";
// Suggestions while somebody types into the search box; without scripts its button does the same.
(() => {
  const box = document.getElementById("q"), list = document.getElementById("found");
  let timer = null;
  const choice = (value, ...about) => {
    const option = document.createElement("option");
    option.value = value;
    option.label = [value, ...about].filter(Boolean).join(", ");
    return option;
  };
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const text = box.value.trim();
      if (text.length < 2) return list.replaceChildren();
      const reply = await fetch("/api/search?brief=1&q=" + encodeURIComponent(text));
      if (!reply.ok || text !== box.value.trim()) return;
      const found = await reply.json();
      const begins = (words) => String(words || "").toLowerCase().startsWith(text.toLowerCase());
      list.replaceChildren(...found.tasks.map((task) =>
        choice(task.parcel_id || task.task_id, task.county, task.status)
      ), ...found.results.map((result) =>
        choice([result.owner_name, result.property_address].find(begins) || result.task_id, result.parcel_id, result.county)
      ));
    }, 150);
  });
  // "/" goes to the box, as elsewhere.
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    box.focus();
  });
})();
