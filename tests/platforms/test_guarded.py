"""Pages that are parsed where they can do no harm: what gets there, what comes back, and what it costs."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hostile import PAGES

from lienworker import limited
from lienworker.errors import HeavyPageError, PageError
from lienworker.limited import LimitedProcess, Limits
from lienworker.platforms import Page, Registry, Target, default_registry, registry_with
from lienworker.platforms.catalog.guarded import parse_guarded, parse_here, parse_in_child

PARCEL = b"<p>Parcel ID: 12-34</p><p>Owner: DOE JOHN</p><p>Situs: 1 OAK ST</p><p>Acres: 2</p>"
PLATFORM = """
from lienworker.platforms import Platform

class Odd(Platform):
    name = "odd"
    def parse(self, page, target):
        {code}

PLATFORM = Odd()
"""
ODD = Target(platform="odd")


def odd_registry(folder: Path, code: str) -> Registry:
    """A platform of the operator's own whose parser does this."""
    folder.mkdir(exist_ok=True)
    (folder / "odd.py").write_text(PLATFORM.format(code=code))
    return registry_with(folder)


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[LimitedProcess]:
    """A child that may use less, so that a test need not wait."""
    process = LimitedProcess(Limits(cpu_seconds=1, wall_seconds=20, memory_bytes=160 * 1024 * 1024))
    monkeypatch.setattr(limited, "_shared", process)
    yield process
    process.close()


def test_a_page_gives_the_same_record_in_the_child_as_here() -> None:
    page = Page("https://county.example/12", PARCEL, "text/html", "utf-8")
    here = parse_here(default_registry(), page, Target())
    assert here is not None
    assert parse_in_child(default_registry(), page, Target()) == here


@pytest.mark.parametrize("name", ["many rows", "deep", "csv", "json of zeros"])
def test_what_is_heavy_is_parsed_in_the_child_and_not_here(name: str) -> None:
    page = Page("", PAGES[name](650_000), "application/json" if name.startswith("json") else "")
    with pytest.raises(HeavyPageError):
        default_registry().parse(page, Target("generic"))
    assert parse_here(default_registry(), page, Target("generic")) is None


def test_a_long_list_is_read_whole_in_the_child() -> None:
    rows = "".join(f"{n:05}|DOE JOHN {n}|12.{n % 100:02}\n" for n in range(12_000))
    parsed = parse_guarded(default_registry(), Page("", f"Parcel ID|Owner|Face Amount\n{rows}".encode()), Target())
    assert len(parsed.record["parcels"]) == 12_000
    assert parsed.record["parcels"][-1]["parcel_id"] == "11999"


def test_a_reply_of_a_million_short_rows_is_refused_before_it_is_parsed() -> None:
    started = time.process_time()
    with pytest.raises(PageError) as problem:
        parse_guarded(default_registry(), Page("", PAGES["csv of short rows"](8_000_000)), Target())
    assert problem.value.reason == "too_complex"
    assert time.process_time() - started < 5


def test_a_wide_head_above_short_rows_fills_no_memory() -> None:
    with pytest.raises(PageError) as problem:
        parse_guarded(default_registry(), Page("", PAGES["csv of a wide head"](90_000)), Target("generic"))
    assert problem.value.reason == "too_complex"


@pytest.mark.parametrize("error", ["MemoryError", "RecursionError"])
def test_an_error_of_this_process_is_no_verdict_on_the_page(tmp_path: Path, error: str) -> None:
    """Only here does the parser fail; in the child the page gives its record."""
    mark = tmp_path / "failed once"
    code = (
        f"import pathlib; mark = pathlib.Path({str(mark)!r})\n"
        f"        if not mark.exists(): mark.touch(); raise {error}\n"
        "        return {'parcel_id': '1', 'owner_name': 'DOE'}"
    )
    parsed = parse_guarded(odd_registry(tmp_path / "own", code), Page("", PARCEL), ODD)
    assert parsed.record == {"parcel_id": "1", "owner_name": "DOE"}


@pytest.mark.parametrize(
    "code",
    ["raise RecursionError", "raise MemoryError", "x = ['x' * 10**6 * n for n in range(300)]", "while True: pass"],
    ids=["stack", "memory", "really all memory", "processor"],
)
@pytest.mark.usefixtures("small_limits")
def test_what_is_too_much_for_the_child_is_too_complex(tmp_path: Path, code: str) -> None:
    with pytest.raises(PageError) as problem:
        parse_in_child(odd_registry(tmp_path / "own", code), Page("", PARCEL), ODD)
    assert problem.value.reason == "too_complex"
    assert not problem.value.retryable


@pytest.mark.usefixtures("small_limits")
def test_a_parser_that_waits_for_ever_is_ended_by_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = LimitedProcess(Limits(wall_seconds=3))
    monkeypatch.setattr(limited, "_shared", process)
    with pytest.raises(PageError, match="more than 3 s"):
        parse_in_child(odd_registry(tmp_path / "own", "import time; time.sleep(600)"), Page("", PARCEL), ODD)
    process.close()


def test_a_child_that_crashes_gets_a_second_chance_and_then_it_was_the_page(
    tmp_path: Path, small_limits: LimitedProcess
) -> None:
    mark = str(tmp_path / "killed once")
    once = f"""import os
        if not os.path.exists({mark!r}):
            os.mkdir({mark!r}); os.kill(os.getpid(), 9)
        return {{'parcel_id': '1', 'owner_name': 'D'}}"""
    parsed = parse_in_child(odd_registry(tmp_path / "own", once), Page("", b""), ODD)
    assert parsed.record["parcel_id"] == "1"
    small_limits.close()
    with pytest.raises(PageError, match="died twice") as problem:
        parse_in_child(odd_registry(tmp_path / "own", "import os; os.kill(os.getpid(), 11)"), Page("", b""), ODD)
    assert problem.value.reason == "too_complex"


def test_after_a_child_died_the_next_page_gets_a_new_one(tmp_path: Path, small_limits: LimitedProcess) -> None:
    with pytest.raises(PageError):
        parse_in_child(odd_registry(tmp_path / "own", "while True: pass"), Page("", PARCEL), ODD)
    assert parse_in_child(default_registry(), Page("", PARCEL), Target()).record["parcel_id"] == "12-34"


def test_what_a_parser_prints_or_logs_does_not_spoil_its_answer(
    tmp_path: Path, small_limits: LimitedProcess, caplog: pytest.LogCaptureFixture
) -> None:
    code = """print('hello'); import logging; logging.warning('odd page')
        return {'parcel_id': '1', 'owner_name': 'D'}"""
    with caplog.at_level(logging.WARNING):
        assert parse_in_child(odd_registry(tmp_path / "own", code), Page("", b""), ODD).record["parcel_id"] == "1"
    assert "odd page" in caplog.text


def test_the_reason_of_a_page_comes_back_as_it_is(small_limits: LimitedProcess) -> None:
    with pytest.raises(PageError) as problem:
        parse_in_child(default_registry(), Page("", b"<p>No records found"), Target())
    assert problem.value.reason == "parcel_not_found"


def test_only_functions_of_ours_are_jobs(small_limits: LimitedProcess) -> None:
    with pytest.raises(PageError, match="no job of ours"):
        small_limits.run("os:system", {}, b"true")


def test_an_answer_that_nobody_could_hold_is_refused(tmp_path: Path, small_limits: LimitedProcess) -> None:
    with pytest.raises(PageError, match="no more than") as problem:
        parse_in_child(odd_registry(tmp_path / "own", "return {'parcel_id': 'x' * 17_000_000}"), Page("", b""), ODD)
    assert problem.value.reason == "too_complex"


def test_the_child_knows_none_of_our_secrets(small_limits: LimitedProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_TOKEN", "secret")
    parse_in_child(default_registry(), Page("", PARCEL), Target())
    children = [p for p in psutil.Process().children() if "lienworker.limited_child" in p.cmdline()]
    newest = max(children, key=lambda child: child.create_time())
    assert "PATH" in newest.environ()
    assert "GATEWAY_TOKEN" not in newest.environ()
