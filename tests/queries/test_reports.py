"""Two runs side by side, and the page with charts."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lienworker.errors import InputError
from lienworker.queries.comparison import compare
from lienworker.queries.figures import Amount
from lienworker.queries.html_report import analysis_page, comparison_page
from lienworker.testing.county.site import DemoSite
from tests.harness.node import Node
from tests.harness.shelf import Shelf, page


class Strict(HTMLParser):
    """Notes the elements and what they would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "onload", "onclick")]


def is_offline(text: str) -> bool:
    strict = Strict(text)
    return not strict.loads and not strict.tags & {"script", "link", "img", "iframe", "object"}


def two_runs(shelf: Shelf) -> tuple[int, int]:
    shelf.add("Marsh", {"1": page(1, "holder"), "2": page(2), "3": page(3).replace("'pid'", "'n'"), "4": page(4)})
    shelf.work()
    first = shelf.passed()
    shelf.teach(owner="#holder", version="2")
    second = shelf.passed()
    assert first.run_id is not None
    assert second.run_id is not None
    return first.run_id, second.run_id


def test_two_runs_are_compared_field_by_field_with_samples(shelf: Shelf) -> None:
    found = compare(*two_runs(shelf))

    assert (found["pages"], found["same"], found["only_a"], found["only_b"]) == (4, 1, 0, 0)
    (owner,) = found["fields"]
    assert (owner["field"], owner["gained"], owner["lost"], owner["changed"]) == ("owner_name", 1, 2, 0)
    assert {"before": None, "after": "OTTER NO 1"}.items() <= next(
        sample for sample in owner["samples"] if sample["kind"] == "gained"
    ).items()


def test_a_record_that_comes_or_goes_is_counted_apart(shelf: Shelf) -> None:
    first, _ = two_runs(shelf)
    (shelf.definitions / "quarry.toml").write_text("[fields]\nparcel_id = '#n'\nowner_name = '#owner'\n")

    shelf.learn()
    third = shelf.passed().run_id
    assert third is not None
    records = compare(first, third)["records"]
    assert (records["gained"], records["lost"]) == (1, 3)


def test_an_unknown_run_is_one_sentence_that_names_those_there(shelf: Shelf) -> None:
    first, second = two_runs(shelf)
    with pytest.raises(InputError, match=f"there is no run 99; the runs are {second}, {first}"):
        compare(first, 99)


def test_the_comparison_as_a_page_is_offline_and_escaped(shelf: Shelf) -> None:
    shelf.add("Marsh", {"9": page(9, "holder").replace("OTTER", "<script>alert(1)</script> &lt;b onload=x&gt;")})
    text = comparison_page(compare(*two_runs(shelf)))
    assert is_offline(text)
    assert "OTTER NO 1" in text
    assert "&lt;b onload=x&gt;" in text


def test_the_page_with_charts_shows_it_all_and_loads_nothing(shelf: Shelf) -> None:
    evil = "&lt;img src=x onerror=alert(1)&gt;"
    shelf.add("Mar<i>sh", {str(n): page(n).replace("00-", evil) for n in range(40)})
    shelf.add("Dune", {"big": page(999_999_999), "bad": f"<p>{evil} parcel</p>"})
    shelf.work()
    text = analysis_page()

    assert is_offline(text)
    assert {"svg", "rect", "table"} <= Strict(text).tags
    for title in ("Outcome", "Fill rates", "Amounts", "Years", "Outliers", "Slowest hosts", "Failures by reason"):
        assert title in text
    assert "not_a_parcel" in text
    assert "1,000,000,999" in text  # the outlier
    assert "http" not in re.sub(r"https?://(dune|mar)\S+|http-equiv", "", text)


def test_an_empty_folder_has_a_page_too(shelf: Shelf) -> None:
    assert is_offline(analysis_page())


def test_outliers_need_enough_company() -> None:
    few, many = Amount(), Amount()
    for amount, n in ((few, 10), (many, 100)):
        for k in range(n):
            amount.take(1000.0 + k, f"p{k}", "t")
        amount.take(5e9, "odd", "t")
    assert list(few.outliers()) == []
    assert [parcel for _, parcel, _ in many.outliers()] == ["odd"]


def test_the_commands_write_the_pages(node: Node, site: DemoSite, tmp_path: Path) -> None:
    assert node.cli("scrape", site.parcels(1)[0]["url"]).returncode == 0
    done = node.cli("analyze", "--html", str(tmp_path / "report.html"))
    assert done.returncode == 0, done.stderr
    assert is_offline((tmp_path / "report.html").read_text())
    assert [node.json("reparse")["run"] for _ in range(2)] == [1, 2]
    done = node.cli("analyze", "--compare", "1", "2", "--html", str(tmp_path / "compare.html"))
    assert done.returncode == 0, done.stderr
    assert "Run 1 against run 2" in (tmp_path / "compare.html").read_text()
    assert "1 pages in both runs, 1 of them the same" in node.cli("analyze", "--compare", "1", "2").stdout
    assert node.cli("analyze", "--compare", "1", "7").returncode == 2
    node.doctor()
