"""Whether people can use the monitor: in narrow windows, with weak eyes, without a mouse, without scripts."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lienworker.db.database import close, execute, open_store, write
from lienworker.outbox.registration import register_in_transaction
from lienworker.store import tasks
from lienworker.store.imports import finish_import, running_import
from lienworker.store.refusals import record_refusal
from lienworker.store.tasks import NewTask
from tests.harness.node import Node
from tests.web.browser import chromium, need_browser
from tests.web.monitor import Monitor
from tests.web.seed import COMPLETED, FAILED, PARKED

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow
AXE = Path(__file__).parent / "axe-core"
HOST = "very-long-name-of-an-assessor.property-search.some-county.example"
COUNTY = "/county?platform=demo&state=FL&county=Dixie"
PAGES = (
    "/", "/tasks", f"/tasks/{FAILED}", f"/tasks/{COMPLETED}", f"/tasks/{PARKED}", f"/tasks/{FAILED}/page",
    f"/tasks/{COMPLETED}/page?origins=1", "/results", "/results?platform=demo", "/outbox", "/outbox/4", "/counties",
    COUNTY, "/imports", "/imports/1", "/audit", "/search?q=7-task", "/search",
    f"/act/tasks/retry?id={FAILED}", "/act/outbox/discard?state=parked&topic=upload_raw",
    f"/act/counties/accept{COUNTY[7:]}", "/tasks/no-such", f"/refusals?host={HOST}&reason=http_403",
)  # fmt: skip
#: What can be acted on and is not wholly inside the window, or is broken into a letter a line.
OUTSIDE = """() => {
  const wrong = [];
  for (const one of document.querySelectorAll("a, button, input, select, summary")) {
    if (one.closest(".skip, iframe") || one.type === "hidden" || !one.checkVisibility()) continue;
    const box = one.getBoundingClientRect();
    if (!box.width) continue;
    let left = 0, right = innerWidth;
    for (let up = one.parentElement; up; up = up.parentElement) {
      if (getComputedStyle(up).overflowX !== "visible") {
        const clip = up.getBoundingClientRect();
        left = Math.max(left, clip.left); right = Math.min(right, clip.right);
      }
    }
    const words = one.textContent.trim();
    const is_outside = box.left < left - 1 || box.right > right + 1;
    if (is_outside) wrong.push(`${one.outerHTML.slice(0, 90)} at ${box.left} ${box.right}`);
    if (one.getClientRects().length > 1 + words.length / 4) wrong.push(`${words} is broken`);
  }
  if (document.documentElement.scrollWidth > innerWidth) wrong.push("the page scrolls sideways");
  return wrong;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium(need_browser()) as running:
        yield running


@pytest.fixture
def full(seeded: Node) -> Node:
    """One of everything: a long host, an import, a county that the drift guard holds, failures of many kinds."""
    open_store(seeded.data)
    with running_import("parcels-of-a-county-with-a-long-name-2026.csv") as number, write("test"):
        place = {"platform": "demo", "state": "FL", "county": "Saint Somebody of the Long Name", "import_id": number}
        ids = [f"12-34567-890-{n:05}" for n in range(30)]
        new = [NewTask("cli", f"http://{HOST}/{one}", parcel_id=one, **place) for one in ids]
        register_in_transaction(new)
        failed = execute("SELECT task_id FROM tasks WHERE import_id = ? LIMIT 12", (number,)).fetchall()
        for n, (task_id,) in enumerate(failed):
            tasks.mark_failed(task_id, ("http_403", "captcha", "too_complex")[n % 3], f"The site {HOST} answered 403")
    finish_import(number, "done", None)
    with write("test"):
        words = "demo, Dixie FL is paused: owner_name came with nearly every page before; see raw/x"
        sql = "UPDATE field_history SET paused_at = '2026-01-01T00:00:00Z', words = ?, sample_task = ?"
        execute(sql, (words, COMPLETED))
        record_refusal(HOST, "http_403", f"http://{HOST}/7", 403, b"<b>Access denied</b> by the firewall")
    close()
    return seeded


def test_axe_is_what_it_says() -> None:
    digest = re.search(r"`([0-9a-f]{64})`", (AXE / "VENDORED.md").read_text())
    assert digest is not None
    assert hashlib.sha256((AXE / "axe.min.js").read_bytes()).hexdigest() == digest[1]


@pytest.mark.parametrize("width", [1440, 1024, 380])
def test_nothing_to_act_on_is_outside_the_window(browser: Browser, full: Node, here: Monitor, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    wrong = {}
    for path in PAGES:
        page.goto(here.link(path))
        if found := page.evaluate(OUTSIDE):
            wrong[path] = found
    page.close()
    assert not wrong


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(browser: Browser, full: Node, here: Monitor, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    wrong = {}
    for path in PAGES:
        page.goto(here.link(path))
        page.add_script_tag(path=AXE / "axe.min.js")
        found = page.evaluate("""async () => (await axe.run(document, { iframes: false })).violations
            .filter((one) => ["serious", "critical"].includes(one.impact))
            .map((one) => one.id + ": " + one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" | "))""")
        if found:
            wrong[path] = found
    context.close()
    assert not wrong


def test_without_scripts_everything_can_be_read_and_done(browser: Browser, full: Node, here: Monitor) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(here.link("/"))
    assert re.fullmatch(r"as of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", page.inner_text("#live-state"))
    page.fill("#q", "7-task-fail")
    page.click("text=Search")
    page.click("#found-tasks th a")
    page.click("#retry")
    page.click("#yes")
    assert "Done: retry: 1 task" in page.inner_text(".said")
    page.goto(here.url + "/tasks?status=failed")
    for box in page.locator("tbody input[type=checkbox]").all()[:2]:
        box.check()
    page.click("#deeds >> text=Retry >> nth=0")
    assert page.inner_text("h1") == "Retry 2 tasks?"
    page.click("#yes")
    assert "Done: retry: 2 tasks" in page.inner_text(".said")
    context.close()


def test_enter_on_a_confirmation_changes_nothing(browser: Browser, full: Node, here: Monitor) -> None:
    page = browser.new_page()
    page.goto(here.link("/act/outbox/discard?state=parked&topic=upload_raw&back=/outbox"))
    assert page.evaluate("document.activeElement.id") == "no"
    page.keyboard.press("Enter")
    page.wait_for_url("**/outbox")
    assert full.sql("SELECT count(*) FROM outbox WHERE state = 'discarded'") == [(0,)]
    page.close()


def test_what_drift_held_is_accepted_after_a_look_or_read_again_after_a_trial(full: Node, here: Monitor) -> None:
    county = COUNTY[8:]
    assert "/act/counties/reparse" in here.ask(COUNTY).text
    asked = here.ask(f"/act/counties/reparse?{county}")
    assert "Reparse 3 stored pages?" in asked.text
    assert "A trial with the newest 3 stored pages: " in asked.text
    assert full.sql("SELECT count(*) FROM runs") == [(0,)], "a trial leaves nothing behind"
    accepted = here.ask(f"/act/counties/accept?{county}&back=/counties")
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', accepted.text))
    assert here.ask("/act/counties/accept", "POST", data=fields).status == 303
    assert full.sql("SELECT count(*) FROM field_history WHERE paused_at IS NOT NULL") == [(0,)]
    assert here.ask("/api/audit").json["rows"][0]["action"] == "accept"
    assert here.ask(f"/act/counties/accept?{county}").status == 409


def test_each_question_takes_two_clicks_or_one_search(browser: Browser, full: Node, here: Monitor) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})

    def ask(*clicks: str) -> str:
        page.goto(here.link("/"))
        for click in clicks:
            page.locator(click).first.click()
        return page.inner_text("main")

    assert "No stack runs on this folder" in ask(), "is all well"
    assert "http_403 The site very-long" in ask("#reasons >> text=http_403"), "what failed and why"
    assert "Saint Somebody of the Long Name" in ask("nav >> text=Counties"), "which county is blocked"
    assert "parcels-of-a-county-with-a-long-name-2026.csv" in ask("nav >> text=Imports"), "where is my import"
    assert "12 failed" in ask("nav >> text=Imports", "#files th a"), "where is my import"
    assert "Retry 4 tasks?" in ask("#reasons >> text=http_403", "#retry-all"), "retry these"
    assert "No worker runs" in ask(), "is a worker gone"
    assert "<b>Access denied</b> by the firewall" in ask("#refusals >> text=What it says"), (
        "what does the blocked page say"
    )
    page.goto(here.link("/"))
    page.fill("#q", "7-task-done")
    page.keyboard.press("Enter")
    page.wait_for_selector("#found-tasks >> text=7-task-done")
    page.fill("#q", "owner <script>")
    page.keyboard.press("Enter")
    page.wait_for_selector("#found-results >> text=7-task-done")
    assert "Verify" not in ask(".card.failed"), "the list is of tasks"
    page.goto(here.link("/tasks?reason=captcha&county=dixie"))
    page.click("tbody th a")
    page.click("#page")
    assert "Parcel 7" in page.inner_text("#raw"), "what does the page say"
    page.goto(here.link("/"))
    page.click("nav >> text=Results")
    with page.expect_download() as fetched:
        page.click("text=Excel")
    assert Path(fetched.value.path()).read_bytes()[:2] == b"PK", "give me Excel"
    page.close()


def test_owners_and_addresses_are_suggested_while_one_types(browser: Browser, seeded: Node, here: Monitor) -> None:
    page = browser.new_page()
    page.goto(here.link("/"))
    for typed, suggested in (("owner", "OWNER <script>"), ("1 =m", "1 =MAIN ST"), ("7-task-f", "7-task-failed")):
        page.fill("#q", "")
        page.type("#q", typed)
        page.wait_for_function(
            "start => [...document.querySelectorAll('#found option')].some((one) => one.value.startsWith(start))",
            arg=suggested,
        )
    page.close()


def test_two_hundred_failed_tasks_are_retried_in_two_clicks(browser: Browser, seeded: Node, here: Monitor) -> None:
    open_store(seeded.data)
    with write("test"):
        new = [NewTask("cli", f"http://county.example/{n}", county="Lee", task_id=f"lee-{n}") for n in range(200)]
        register_in_transaction(new)
        execute("UPDATE outbox SET state = 'delivered', reason = 'http_403' WHERE task_id LIKE 'lee-%'")
        for task in new:
            tasks.mark_failed(task.task_id, "http_403", "The site answered 403")
    close()
    page = browser.new_page()
    page.goto(here.link("/"))
    page.click("#reasons >> text=http_403")
    page.click("#retry-all")
    assert page.inner_text("h1") == "Retry 200 tasks?"
    page.click("#yes")
    assert "Done: retry: 200 tasks" in page.inner_text(".said")
    assert seeded.sql("SELECT status, count(*) FROM tasks WHERE county = 'Lee' GROUP BY 1") == [("pending", 200)]
    assert seeded.sql("SELECT count(*) FROM outbox WHERE topic = 'fetch' AND state = 'waiting'") == [(200,)]
    page.close()


def test_a_task_page_shows_values_tables_and_where_the_result_is(here: Monitor, full: Node) -> None:
    record = {
        "owner_name": "A",
        "market_value": 161903.0,
        "homestead": False,
        "year_built": 1959,
        "liens": [{"tax_year": 2022, "face_amount": 1857.27, "holder": "B"}],
        "fields": {"Roof": "Tin"},
    }
    open_store(full.data)
    with write("test"):
        execute("UPDATE results SET data = ?", (json.dumps(record),))
        execute("UPDATE outbox SET reason = 'gateway_refused' WHERE task_id = ? AND state = 'parked'", (PARKED,))
    close()
    text = here.ask(f"/tasks/{PARKED}").text
    plain = re.sub(r"\s*<[^>]+>\s*", "|", text)
    assert re.search(r"\|Market value\|+161,903\|", plain)
    assert re.search(r"\|Homestead\|+no\|", plain)
    assert re.search(r"\|Year built\|+1959\|", plain)
    assert re.search(r"\|Liens\|.*\|Face amount\|.*\|2022\|+1,857.27\|+B\|", plain, re.S)
    assert "<summary>All that the page says (1)</summary>" in text
    assert "completed, to be sent" in text or "completed, not delivered" in text
    failed = here.ask(f"/tasks/{FAILED}").text
    assert f'href="{COUNTY.replace("&", "&amp;")}"' in failed
    assert 'rel="noreferrer noopener external"' in failed
