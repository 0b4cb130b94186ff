"""What an open page does while work goes on, in a real Chromium."""

from __future__ import annotations

import hashlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from lienworker.db.database import close, open_store, write
from lienworker.outbox.registration import register_in_transaction
from lienworker.store.tasks import NewTask
from tests.harness.node import Node, wait_until
from tests.web.browser import chromium, need_browser
from tests.web.monitor import Monitor, monitor
from tests.web.seed import FAILED

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

STATIC = Path(__file__).parents[2] / "lienworker" / "web" / "static"
#: Seconds for which ten tabs are watched, and clicks in each of four places: `make browser-full` has more of both.
TAB_SECONDS = int(os.environ.get("TAB_SECONDS", "12"))
CLICKS = int(os.environ.get("CLICKS", "20"))
#: Completes twenty tasks a second and registers as many, in its own process.
BUSY = """
import sys, time
from pathlib import Path
from lienworker.db.database import open_store, write, execute
from lienworker.outbox.registration import register_in_transaction
from lienworker.store import tasks
from lienworker.store.tasks import NewTask
open_store(Path(sys.argv[1]))
n = 0
while True:
    with write("busy"):
        new = [NewTask("cli", f"http://busy.example/{n + k}", platform="demo", county="Busy") for k in range(4)]
        register_in_transaction(new)
        for (task_id,) in execute("SELECT task_id FROM tasks WHERE status = 'pending' LIMIT 4").fetchall():
            tasks.mark_completed(task_id)
    n += 4
    print(n, flush=True)
    time.sleep(0.2)
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium(need_browser()) as running:
        yield running


@contextmanager
def busy(node: Node) -> Iterator[None]:
    """Twenty tasks a second come and complete."""
    command = [sys.executable, "-c", BUSY, str(node.data)]
    process = subprocess.Popen(command, env=node.environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline()
    with subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL):
        try:
            yield
        finally:
            process.kill()
            process.wait()


def add_tasks(node: Node, n: int, name: str = "new") -> None:
    open_store(node.data)
    with write("test"):
        register_in_transaction([NewTask("cli", f"http://{name}.example/{k}", platform="demo") for k in range(n)])
    close()


def live(page: Page) -> str:
    return page.inner_text("#live-state")


def test_what_others_made_is_what_it_says() -> None:
    for name, digest in re.findall(r"^\| `(\S+)` .*`([0-9a-f]{64})` \|$", (STATIC / "VENDORED.md").read_text(), re.M):
        assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == digest
        assert (STATIC / name).with_suffix(".LICENSE").read_text()


@pytest.mark.slow
@pytest.mark.alone
def test_every_click_lands_while_twenty_tasks_a_second_complete(browser: Browser, seeded: Node, here: Monitor) -> None:
    add_tasks(seeded, 100, "waiting")
    random.seed(20)
    landed = 0
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    with busy(seeded):
        for path, target in (("/", ".card.completed"), ("/", "nav a >> nth=1"), ("/tasks", "tbody tr >> nth=3 >> th a"),
                             ("/tasks?status=completed", "tbody tr >> nth=9 >> th a")):  # fmt: skip
            page.goto(here.link(path))
            page.wait_for_selector("#live-state.on")
            page.evaluate("""() => { window.landed = []; addEventListener("click", (event) => {
                const link = event.target.closest("a");
                if (link) window.landed.push(link.href);
                event.preventDefault();
            }); }""")
            aimed = page.locator(target)
            for _ in range(CLICKS):
                aimed.hover()
                where = aimed.evaluate("(link) => link.href")
                before = page.evaluate("window.landed.length")
                page.mouse.down()
                page.wait_for_timeout(random.randint(80, 120))
                page.mouse.up()
                landed += page.evaluate(f"window.landed.slice({before})") == [where]
            assert page.inner_text("#live-state").startswith("live")
    page.close()
    assert landed == 4 * CLICKS


@pytest.mark.slow
def test_focus_selection_and_open_details_stay_when_the_page_changes(
    browser: Browser, seeded: Node, here: Monitor
) -> None:
    page = browser.new_page()
    page.goto(here.link("/"))
    page.wait_for_selector("#live-state.on")
    page.focus(".card.failed")
    page.evaluate("""() => {
        const heading = document.querySelector("#overview h2");
        getSelection().selectAllChildren(heading);
        window.chosen = String(getSelection());
        window.card = document.querySelector(".card.failed");
    }""")
    add_tasks(seeded, 7)
    page.wait_for_selector("#count-pending:text-is('7')")
    assert page.evaluate("document.activeElement === window.card")
    assert page.evaluate("String(getSelection()) === window.chosen && window.chosen.length > 3")
    page.close()


@pytest.mark.slow
def test_a_list_stays_where_it_is_and_says_how_many_are_new(browser: Browser, seeded: Node, here: Monitor) -> None:
    page = browser.new_page()
    page.goto(here.link("/tasks"))
    page.wait_for_selector("#live-state.on")
    shown = page.locator("tbody th").all_inner_texts()
    add_tasks(seeded, 12)
    page.wait_for_selector(".newer >> text=12 new, show")
    assert page.locator("tbody th").all_inner_texts() == shown
    seeded.cli("tasks", "retry", "--all")
    page.wait_for_selector("tbody .tag.pending")
    assert page.locator("tbody th").all_inner_texts() == shown, "what is there changes in place"
    page.click(".newer >> text=12 new, show")
    page.wait_for_selector(".newer >> text=Newest first")
    assert len(page.locator("tbody th").all_inner_texts()) == 12 + len(shown)
    page.close()


@pytest.mark.slow
def test_a_hidden_page_lets_go_of_its_connection_and_is_true_when_it_is_back(browser: Browser, seeded: Node) -> None:
    with monitor(seeded) as here:
        page = browser.new_context().new_page()
        page.goto(here.link("/"))
        page.wait_for_selector("#live-state.on")
        server = next(one for one in seeded.processes(" web "))
        before = connections(server)
        hide(page, True)
        wait_until(lambda: connections(server) < before, what="the stream to end")
        add_tasks(seeded, 5)
        assert live(page).startswith("not live")
        hide(page, False)
        page.wait_for_selector("#count-pending:text-is('5')")
        wait_until(lambda: live(page).startswith("live"), what="it to be live again")
        page.context.close()


def hide(page: Page, hidden: bool) -> None:
    """What a browser does when another tab comes to the front."""
    page.evaluate("""(hidden) => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }""", hidden)  # fmt: skip


def connections(server: psutil.Process) -> int:
    return sum(one.status == "ESTABLISHED" for one in server.net_connections("tcp"))


@pytest.mark.slow
def test_a_page_whose_server_hangs_or_is_gone_says_that_it_is_not_live(browser: Browser, seeded: Node) -> None:
    with monitor(seeded) as here:
        page = browser.new_context().new_page()
        page.goto(here.link("/"))
        page.wait_for_selector("#live-state.on")
        server = next(one for one in seeded.processes(" web "))
        os.kill(server.pid, signal.SIGSTOP)
        try:
            page.wait_for_selector("#live-state.off", timeout=5_000)
        finally:
            os.kill(server.pid, signal.SIGCONT)
        page.wait_for_selector("#live-state.on", timeout=10_000)
    page.wait_for_selector("#live-state.off", timeout=5_000)
    assert "not live, as of " in live(page)
    page.context.close()


@pytest.mark.slow
@pytest.mark.alone
def test_ten_tabs_are_all_true_or_say_that_they_are_not(browser: Browser, seeded: Node, here: Monitor) -> None:
    context = browser.new_context()
    paths = ("/", "/tasks", "/results", "/outbox", "/counties", "/imports", "/audit", f"/tasks/{FAILED}", "/", "/")
    tabs = []
    for path in paths:
        tabs.append(context.new_page())
        tabs[-1].goto(here.link(path))
    watched = [tab for tab, path in zip(tabs, paths, strict=True) if path == "/"]
    end = time.monotonic() + TAB_SECONDS
    n = 0
    while time.monotonic() < end:
        n += 1
        add_tasks(seeded, 1, f"round{n}")
        told = time.monotonic()
        for tab in watched:
            tab.wait_for_function(
                "(n) => document.querySelector('#count-pending').textContent === n"
                " || document.querySelector('#live-state').classList.contains('off')",
                arg=str(n),
                timeout=max(1, 3000 - 1000 * (time.monotonic() - told)),
            )
    assert all(live(tab).startswith("live") for tab in tabs), [live(tab) for tab in tabs]
    assert n >= TAB_SECONDS / 4
    context.close()
