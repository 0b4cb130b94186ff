"use strict";
// A file of parcels is dropped on the page, or chosen, and sent with its progress shown.
(() => {
  const drop = document.getElementById("drop");
  if (!drop) return;
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
      document.dispatchEvent(new Event("refresh"));
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
})();
