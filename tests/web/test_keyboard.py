"""Every action of the monitor, in a real browser, by keyboard alone: Tab, Space, Enter and typing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lienworker.db.database import close, execute, open_store, write
from lienworker.web.actions import ACTIONS
from tests.harness.node import Node
from tests.web.browser import chromium, need_browser
from tests.web.monitor import Monitor
from tests.web.seed import FAILED, PARKED

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow
HOST = "/hosts?text=county.example"
COUNTY = "/county?platform=demo&state=FL&county=Dixie"
_WAITS = (
    "UPDATE tasks SET status = 'pending' WHERE status = 'failed'",
    "UPDATE outbox SET state = 'waiting' WHERE topic = 'fetch'",
)
_DRIFT = ("UPDATE field_history SET paused_at = '2026-01-01', words = 'owner_name is missing'",)
_PAUSE = ("INSERT INTO pauses VALUES ('fetch', 'operator', '2026-01-01', '')",)
#: What is done, the page on which it is begun, what leads to it there, and how the world must be for it.
DEEDS: list[tuple[str, str, str, tuple[str, ...]]] = [
    ("tasks/retry", f"/tasks/{FAILED}", "#retry", ()),
    ("tasks/cancel", f"/tasks/{FAILED}", "#cancel", _WAITS),
    ("tasks/retry", "/tasks?status=failed", "#retry-all", ()),
    ("tasks/cancel", "/tasks?county=dixie", "#cancel-all", _WAITS),
    ("outbox/replay", "/outbox", "[id$=-replay]", ()),
    ("outbox/discard", "/outbox", "[id$=-discard]", ()),
    ("outbox/release", "/outbox", "[id$=-release]", ("UPDATE outbox SET state = 'held', reason = 'operator'",)),
    ("outbox/hold", "/outbox?topic=upload_raw", "#hold-all", ("UPDATE outbox SET state = 'waiting', reason = NULL",)),
    ("outbox/replay", "/outbox/4", "#replay", ()),
    ("counties/accept", COUNTY, "#release a[href*=accept]", _DRIFT),
    ("counties/reparse", COUNTY, "#release a[href*=reparse]", _DRIFT),
    ("counties/pause", COUNTY, "#pausing a", ()),
    ("counties/resume", COUNTY, "#pausing a", ("INSERT INTO paused_counties VALUES ('FL', 'Dixie', '2026-01-01')",)),
    ("hosts/set", HOST, "#set", ()),
    ("hosts/pause", HOST, "#pause", ()),
    ("hosts/resume", HOST, "#resume", ("UPDATE hosts SET paused_at = 1",)),
    ("hosts/forget", HOST, "#forget", ()),
    ("lanes/pause", "/", "a[href*='lanes/pause'][href*=fetch]", ()),
    ("lanes/resume", "/", "a[href*='lanes/resume']", _PAUSE),
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium(need_browser()) as running:
        yield running


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    yield opened
    opened.close()


def tab_to(page: Page, selector: str) -> None:
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
            return
    raise AssertionError(f"{selector} cannot be reached with the keyboard")


def test_there_is_a_deed_for_every_action() -> None:
    assert {deed for deed, *_ in DEEDS} == {f"{kind}/{verb}" for kind, verbs in ACTIONS.items() for verb in verbs}


@pytest.mark.parametrize(
    ("deed", "begin", "selector", "before"), DEEDS, ids=[f"{deed} {path}" for deed, path, *_ in DEEDS]
)
def test_each_action_is_done_by_keyboard(
    page: Page, seeded: Node, here: Monitor, deed: str, begin: str, selector: str, before: tuple[str, ...]
) -> None:
    open_store(seeded.data)
    with write("test"):
        for statement in before:
            execute(statement)
    close()
    page.goto(here.link(begin))
    tab_to(page, selector)
    page.keyboard.press("Enter")
    page.wait_for_selector("#yes")
    assert f"/act/{deed}" in page.url
    tab_to(page, "#yes")
    page.keyboard.press("Enter")
    page.wait_for_selector(".said")
    assert page.inner_text(".said").startswith(f"Done: {deed.partition('/')[2]}: ")
    assert not page.inner_text(".said").startswith(f"Done: {deed.partition('/')[2]}: 0 ")


def test_rows_are_chosen_one_by_one_with_the_space_bar(page: Page, seeded: Node, here: Monitor) -> None:
    page.goto(here.link("/tasks?status=failed"))
    tab_to(page, "tbody input[type=checkbox]")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")  # as in any form
    page.wait_for_selector("#yes")
    assert page.inner_text("h1") == "Retry 1 task?"


def test_a_filter_an_order_and_a_search_are_typed(page: Page, here: Monitor) -> None:
    page.goto(here.link("/tasks"))
    tab_to(page, "select[name=status]")
    page.keyboard.type("failed")
    tab_to(page, "select[name=sort]")
    page.keyboard.type("oldest")
    tab_to(page, ".filters button")
    page.keyboard.press("Enter")
    page.wait_for_url("**status=failed**sort=oldest**")
    page.keyboard.press("/")
    page.keyboard.type(f"7-{PARKED}")
    page.keyboard.press("Enter")
    page.wait_for_selector("#found-tasks")
    tab_to(page, "#found-tasks th a")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/tasks/{PARKED}")


def test_a_file_is_chosen_and_imported(page: Page, here: Monitor, tmp_path: Path) -> None:
    listed = tmp_path / "parcels.csv"
    listed.write_text("url,Parcel No.\nhttps://county.example/1,77\n")
    page.goto(here.link("/imports"))
    tab_to(page, "input[type=file]")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Space")
    chooser.value.set_files(listed)
    tab_to(page, "#drop button")
    page.keyboard.press("Enter")
    page.wait_for_selector("#files >> text=parcels.csv")
    tab_to(page, "#files th a")
    page.keyboard.press("Enter")
    page.wait_for_selector("#mapping >> text=Parcel No.")


def test_results_are_downloaded_and_internals_unfolded(page: Page, here: Monitor) -> None:
    page.goto(here.link("/results"))
    tab_to(page, "a[href^='/results.xlsx']")
    with page.expect_download() as fetched:
        page.keyboard.press("Enter")
    assert Path(fetched.value.path()).read_bytes()[:2] == b"PK"
    page.goto(here.link(f"/tasks/{PARKED}"))
    tab_to(page, "summary")
    page.keyboard.press("Enter")
    assert page.locator("details[open]").count() == 1


def test_one_signs_in(page: Page, here: Monitor) -> None:
    page.goto(here.url + "/tasks")
    tab_to(page, "input[name=token]")
    page.keyboard.type(here.token or "")
    page.keyboard.press("Enter")
    page.wait_for_selector("nav >> text=Overview")
