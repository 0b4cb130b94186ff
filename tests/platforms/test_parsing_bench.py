"""The bare script that the parsers are measured against: it reads what the record holds, and no more than that."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import parsing
from benchmarks.parsing import BAR, Measured, Script, leaves, measure_well, script_for, squeezed
from lienworker.platforms import Page, Target, default_registry

_PAGES = Path(__file__).resolve().parents[1] / "fixtures" / "pages"


def script_of(name: str) -> tuple[Script, str]:
    """The script of a page, and all that it reads there."""
    body = (_PAGES / name).read_bytes()
    script = script_for(body, default_registry().parse(Page("", body), Target()).record)
    return script, "\n".join(squeezed(text) for text in leaves(script.read(body)))


@pytest.mark.parametrize(
    ("page", "value"),
    [
        ("realauction_popup.html", "TaxYear:2020"),  # a part of the popup's header
        ("qpublic.html", "2022"),  # a year in the head of the values
        ("polk_taxes.html", "PayableYear:2012/2013"),
        ("floridapa.html", "00-00-00-07777-000(4242)"),
    ],
)
def test_the_script_reads_values_inside_longer_texts_and_in_heads(page: str, value: str) -> None:
    assert value in script_of(page)[1]


def test_heads_that_only_name_their_columns_and_whole_pages_are_not_read() -> None:
    script, read = script_of("tyler_sales.html")
    assert not script.headed
    assert not any(len(text) > 40 for text in read.split("\n"))


def test_no_text_is_read_twice_for_the_values_in_it() -> None:
    script, _ = script_of("realauction_popup.html")
    assert len(script.values) == len(set(script.values))


def times(bare_ms: float, ours_ms: float) -> Measured:
    return Measured("page.html", "demo", 10, 2.0, bare_ms, ours_ms, 0.1)


def test_a_page_over_the_bar_is_measured_again_and_both_sides_keep_their_best(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    answers = iter([times(1.0, 1.3), times(0.9, 1.2)])

    def disturbed(file: Path, rounds: int) -> Measured:
        asked.append(rounds)
        return next(answers)

    monkeypatch.setattr(parsing, "measure", disturbed)
    row = measure_well(Path("page.html"), 10)
    assert asked == [10, 50]
    assert row == times(0.9, 1.2)
    assert row.is_over


@pytest.mark.parametrize(("ours_ms", "status"), [(BAR - 0.01, 0), (BAR + 0.01, 1)])
def test_one_page_over_the_bar_is_enough_to_fail(monkeypatch: pytest.MonkeyPatch, ours_ms: float, status: int) -> None:
    rows = {"quick.html": times(100.0, 1.0), "slow.html": times(1.0, ours_ms)}
    monkeypatch.setattr(parsing, "measure", lambda file, rounds: rows[file.name])
    monkeypatch.setattr("sys.argv", ["parsing", "--file", *rows])
    with pytest.raises(SystemExit) as end:
        parsing.main()
    assert end.value.code == status
