"""The monitor in a real Chromium, beside a real stack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from lienworker.testing.county.site import DemoSite, demo_site
from tests.harness.node import Node, interrupt, wait_until, write_list
from tests.web.browser import chromium, need_browser
from tests.web.monitor import Monitor, monitor
from tests.web.seed import COMPLETED, FAILED, RAW

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium(need_browser()) as running:
        yield running


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A window that notes every request, and fails the test where one left for another origin or a script failed."""
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    asked: list[str] = []
    broken: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("pageerror", lambda problem: broken.append(str(problem)))
    opened.on("dialog", lambda dialog: broken.append(dialog.message))
    yield opened
    hosts = {urlsplit(url).hostname for url in asked if url.startswith("http")}
    opened.close()
    assert hosts <= {"127.0.0.1"}, hosts
    assert not broken, broken


@pytest.fixture
def site() -> Iterator[DemoSite]:
    """The county, started on another thread: the browser's driver keeps an event loop on this one."""
    with ThreadPoolExecutor(1) as thread:
        county = demo_site(slow_seconds=1.0)
        yield thread.submit(county.__enter__).result()
        thread.submit(county.__exit__, None, None, None).result()


@pytest.fixture
def stack(node: Node) -> Iterator[Node]:
    process = node.start("up", LIENWORKER_WEB_PORT="0")
    wait_until(lambda: len(node.workers()) == 2 and node.is_up(), what="the stack to be up")
    yield node
    interrupt(process)
    process.communicate(timeout=60)


def is_narrow_enough(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_the_overview_updates_by_itself_while_a_run_goes_on(
    page: Page, stack: Node, site: DemoSite, tmp_path: Path
) -> None:
    with monitor(stack) as here:
        page.goto(here.link())
        page.wait_for_selector("#live-state.on")
        page.evaluate("window.stillTheSame = true")
        stack.cli("import", write_list(tmp_path / "parcels.jsonl", site.parcels(25)))
        page.wait_for_selector("#count-completed:text-is('25')", timeout=30_000)
        page.wait_for_selector("#health.good", timeout=20_000)
        assert page.evaluate("window.stillTheSame"), "the page was loaded again"
        assert "All is well" in page.inner_text("#health")


def test_a_failed_task_is_found_understood_retried_and_completes(
    page: Page, stack: Node, site: DemoSite, tmp_path: Path
) -> None:
    row = {**site.parcels(1)[0], "url": f"{site.url}/parcel/99-403-0000000"}
    stack.cli("import", write_list(tmp_path / "parcels.jsonl", [row]))
    wait_until(lambda: stack.statuses() == {"failed": 1})
    good = site.parcels(1)[0]["url"]
    with monitor(stack) as here:
        page.goto(here.link())
        page.click("text=captcha")
        page.click("tbody th a")
        assert page.inner_text("#reason") == "captcha"
        page.click("text=Page of round 1")
        assert "Verify you are human" in page.inner_text("#raw")
        assert "Verify you are human" in page.frame_locator("iframe").locator("body").inner_text()
        page.go_back()
        _mend(stack, good)
        page.click("#retry")
        assert "Retry 1 task?" in page.inner_text("h1")
        page.click("#yes")
        assert "Done: retry: 1 task" in page.inner_text(".said")
        page.wait_for_selector("h1 .tag.completed", timeout=30_000)


def _mend(node: Node, url: str) -> None:
    """The county takes its captcha away: the task's page is one that can be read now."""
    import contextlib
    import sqlite3

    with contextlib.closing(sqlite3.connect(node.data / "lienworker.db", timeout=30)) as connection:
        connection.execute("UPDATE tasks SET url = ?", (url,))
        connection.commit()


def test_the_link_lets_a_browser_in_and_the_token_is_left_nowhere(page: Page, here: Monitor) -> None:
    page.goto(here.url + "/tasks")
    assert "web --address" in page.inner_text("#command")
    said: list[str] = []
    page.on("request", lambda request: said.append(request.headers.get("referer", "")))
    page.goto(here.link("/tasks?status=failed"))
    assert page.url == here.url + "/tasks?status=failed"
    page.click("tbody th a")
    page.wait_for_selector("#retry")
    assert page.evaluate("document.cookie") == "", "no script can read it"
    assert not [where for where in said if str(here.token) in where]
    assert str(here.token) not in page.content()
    page.goto(here.url)
    page.wait_for_selector("#live-state.on")


def test_the_token_can_be_pasted(page: Page, here: Monitor) -> None:
    page.goto(here.url + "/?token=an-old-one")
    assert "not the token" in page.inner_text("main")
    page.fill("input[name=token]", str(here.token))
    page.click("button")
    page.wait_for_selector("#health")
    assert page.url == here.url + "/"


def test_a_group_of_failures_is_replayed_from_the_page(page: Page, here: Monitor, seeded: Node) -> None:
    page.goto(here.link("/outbox"))
    page.click("text=Replay")
    assert "Replay 3 rows?" in page.inner_text("h1")
    page.click("#yes")
    page.wait_for_selector("text=Nothing is parked.")
    page.click("nav >> text=Audit")
    assert "replay" in page.inner_text("tbody")


def test_a_file_is_dropped_and_its_import_appears(page: Page, here: Monitor, tmp_path: Path) -> None:
    page.goto(here.link("/imports"))
    data = page.evaluate_handle(
        """() => { const data = new DataTransfer();
        data.items.add(new File(["url\\nhttps://county.example/5\\nno url\\n"], "dropped.csv", {type: "text/csv"}));
        return data; }"""
    )
    page.dispatch_event("#drop", "drop", {"dataTransfer": data})
    page.wait_for_selector("tbody >> text=dropped.csv")
    page.wait_for_selector("tbody .tag.done")
    with page.expect_download() as fetched:
        page.click("tbody td.n a")
    assert "no url" in Path(fetched.value.path()).read_text()


def test_stored_scripts_do_not_run_and_a_raw_page_reaches_nothing(page: Page, here: Monitor) -> None:
    paths = ("/", f"/tasks/{FAILED}", f"/tasks/{COMPLETED}", "/results", "/outbox", f"/tasks/{FAILED}/page")
    for path in (*paths, f"/tasks/{FAILED}/page/rendered"):
        page.goto(here.link(path))
        page.wait_for_timeout(300)
        assert page.title() != "owned", path
        assert page.evaluate("location.hostname") == "127.0.0.1"
    page.goto(here.link(f"/tasks/{FAILED}/page"))
    assert page.inner_text("#raw").split() == RAW.split()
    assert "Parcel 7" in page.frame_locator("iframe").locator("h1").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_fits_a_narrow_window(browser: Browser, here: Monitor, scheme: str) -> None:
    page = browser.new_page(viewport={"width": 380, "height": 700}, color_scheme=scheme)
    paths = (
        "/",
        "/tasks",
        f"/tasks/{FAILED}",
        f"/tasks/{FAILED}/page",
        "/results?platform=demo",
        "/outbox",
        "/outbox/4",
    )
    for path in (*paths, "/counties", "/county?platform=demo&state=FL&county=Dixie", "/imports", "/audit"):
        page.goto(here.link(path))
        assert is_narrow_enough(page), path
    page.close()


def test_dark_is_dark_and_its_text_can_be_read(browser: Browser, here: Monitor) -> None:
    page = browser.new_page(color_scheme="dark")
    page.goto(here.link())
    colours = page.evaluate("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
    back, ink = ([int(part) for part in colour[4:-1].split(",")] for colour in colours)
    assert max(back) < 60
    assert min(ink) > 180
    page.close()


def test_everything_can_be_done_by_keyboard(page: Page, here: Monitor, seeded: Node) -> None:
    page.goto(here.link("/tasks?status=failed"))
    _tab_to(page, "tbody th a")
    page.keyboard.press("Enter")
    page.wait_for_selector("#retry")
    _tab_to(page, "#retry")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "one must see where one is"
    page.keyboard.press("Enter")
    page.wait_for_selector("#yes")
    page.keyboard.press("Enter")
    page.wait_for_selector("#retry")
    assert seeded.sql("SELECT status FROM tasks WHERE task_id = ?", FAILED) == [("failed",)], "Enter changes nothing"
    page.go_back()
    _tab_to(page, "#yes")
    page.keyboard.press("Enter")
    page.wait_for_selector(".said")
    assert seeded.sql("SELECT status FROM tasks WHERE task_id = ?", FAILED) == [("pending",)]


def _tab_to(page: Page, selector: str) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
            return
    raise AssertionError(f"{selector} cannot be reached with the keyboard")


def test_focus_stays_where_it_was_when_the_page_updates(page: Page, here: Monitor, seeded: Node) -> None:
    page.goto(here.link("/tasks"))
    page.wait_for_selector("#live-state.on")
    page.wait_for_timeout(1500)
    _tab_to(page, "tbody th a")
    held = page.evaluate("document.activeElement.id")
    seeded.cli("tasks", "retry", "--all")
    page.wait_for_selector(".tag.pending", timeout=10_000)
    assert page.evaluate("document.activeElement.id") == held
