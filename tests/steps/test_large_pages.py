"""Large pages at work: a worker never holds one longer than it must, and 64 of them stay within its memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import psutil
import pytest

from benchmarks.hostile import at_once, fetched_at_once
from lienworker import limited
from lienworker.db.database import all_rows
from lienworker.errors import PageError, ShortageError
from lienworker.limited import LimitedProcess
from lienworker.outbox.claims import claim
from lienworker.platforms.core.bounds import MOST_PLAIN_BYTES
from lienworker.steps import stored_page
from lienworker.steps.scrape import scrape_if_plain, scrape_in_child
from lienworker.store.pages import page_of
from tests.harness.shelf import FREE, Shelf, page

LARGE = page(1) + "<!-- " + "x" * MOST_PLAIN_BYTES + " -->"


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Iterator[LimitedProcess]:
    process = LimitedProcess()
    monkeypatch.setattr(limited, "_shared", process)
    yield process
    process.close()


def test_a_large_page_gives_its_record_without_being_read_here(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_here(*about: object) -> bytes:
        raise AssertionError("only the process with limits reads a large page")

    monkeypatch.setattr(stored_page, "read_page", read_here)
    shelf.teach()
    shelf.add("Granite", {"1": LARGE})
    shelf.work()
    assert all_rows("SELECT status FROM tasks") == [("completed",)]


def test_a_large_page_that_is_damaged_on_disk_is_fetched_again(shelf: Shelf) -> None:
    shelf.add("Granite", {"1": LARGE})
    shelf.fetch()
    (row,) = claim("scrape", 1, "t-test", FREE)
    record = page_of(row.task_id, row.generation)
    assert record is not None
    (shelf.runtime.folder.root / record.path).write_bytes(b"no page")
    outcome = scrape_in_child(shelf.runtime.scrape, row).outcome
    assert isinstance(outcome, PageError)
    assert (outcome.reason, outcome.retryable) == ("raw_page_damaged", True)


@pytest.mark.skipif(sys.platform != "linux", reason="another process's limits can be set on Linux only")
def test_a_child_without_files_to_spare_is_no_verdict_on_the_page(shelf: Shelf, child: LimitedProcess) -> None:
    shelf.teach()
    shelf.add("Granite", {"1": LARGE})
    shelf.fetch()
    (row,) = claim("scrape", 1, "t-test", FREE)
    assert not isinstance(scrape_in_child(shelf.runtime.scrape, row).outcome, PageError)
    children = [p for p in psutil.Process().children() if "lienworker.limited_child" in p.cmdline()]
    process = max(children, key=lambda one: one.create_time())
    process.rlimit(psutil.RLIMIT_NOFILE, (process.num_fds(), process.num_fds()))
    with pytest.raises(ShortageError):
        scrape_in_child(shelf.runtime.scrape, row)


def test_a_page_that_fails_leaves_nothing_of_it_in_its_outcome(shelf: Shelf) -> None:
    """The frames of an error hold the page, and the group that waits to be stored holds the error."""
    shelf.add("Granite", {"1": "<p>No records found", "2": "<p>" + "<b>" * 400_000})
    shelf.fetch()
    plain, heavy = claim("scrape", 2, "t-test", FREE)
    for scraped in (scrape_if_plain(shelf.runtime.scrape, plain), scrape_in_child(shelf.runtime.scrape, heavy)):
        assert scraped is not None
        assert isinstance(scraped.outcome, PageError)
        assert scraped.outcome.__traceback__ is None
        assert scraped.outcome.__context__ is None


@pytest.mark.slow
@pytest.mark.parametrize("measure", [at_once, fetched_at_once], ids=["stored", "fetched"])
def test_a_worker_and_its_child_stay_within_400_mb_whatever_comes(
    measure: Callable[[list[str], int, int], bool], capfd: pytest.CaptureFixture[str]
) -> None:
    """As `make bench-hostile` does it, with kinds that fill the child or the worker and yet are quick."""
    kinds = ["one cell", "open cells", "numbered", "open links", "zeros", "csv that is a list"]
    assert measure(kinds, 16, 16_000_000), capfd.readouterr().out
