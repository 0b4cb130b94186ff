"""A stored page that costs whoever takes it apart minutes."""

from __future__ import annotations

from pathlib import Path

from lienworker.db.clock import rfc3339
from lienworker.db.database import close, open_store, write
from lienworker.outbox.registration import register_task
from lienworker.store.pages import PageRecord, save_page
from lienworker.store.raw_files import PageKey, put_in_place, write_aside
from lienworker.store.tasks import NewTask

#: Each attribute is compared with all before it: a megabyte, and half a minute and more on any machine.
COMPLEX = "<html><body><p " + " ".join(f"a{number}=1" for number in range(120_000)) + ">x"


def make_raw_page(root: Path, text: str, name: str = "complex") -> None:
    folder = open_store(root)
    url = f"http://county.example/{name}"
    register_task(NewTask("local_file", url, task_id=name, platform="demo", state="FL", county="Dixie"))
    page = write_aside(folder, PageKey("demo", "FL", "Dixie", name, name), text.encode(), "text/html")
    put_in_place([page])
    path = str(page.path.relative_to(folder.root))
    with write("test_page"):
        record = (name, 1, path, page.sha256, page.size, url, 200, "text/html", "utf-8", None, None, rfc3339(), 120)
        save_page(PageRecord(*record))
    close()
