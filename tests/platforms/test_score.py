"""Scoring: how much of what a reader sees is in the records, and what in them is wrong."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from lienworker.errors import InputError
from lienworker.platforms import default_registry
from lienworker.platforms.catalog.score import MISSING, WRONG, Score, read_cases, score

TODAY = date(2026, 11, 18)
OURS = Path(__file__).resolve().parents[1] / "fixtures" / "pages"
SHARED = Path(__file__).resolve().parents[2] / ".." / "shared"
PAGE = """<html><body><h1>County of Nowhere: property record</h1><table>
<tr><th>Parcel ID</th><td>00-12-003</td></tr><tr><th>Owner</th><td>WREN ADA</td></tr>
<tr><th>Property Address</th><td>12 JUNIPER LN</td></tr><tr><th>Market Value</th><td>$123,400</td></tr>
<tr><th>Zoning</th><td>R-1 on 07/25/2017</td></tr></table></body></html>"""


def scored(folder: Path, expected: dict[str, Any], page: str = PAGE, **entry: str) -> Score:
    (folder / "page.html").write_text(page)
    (folder / "expected.json").write_text(json.dumps([{"file": "page.html", "expected": expected, **entry}]))
    return score(default_registry(), read_cases(folder), TODAY)


def outcomes(found: Score) -> dict[str, str]:
    return {finding.field: finding.outcome for finding in found.findings}


def test_our_own_pages_say_all_that_a_reader_sees() -> None:
    found = score(default_registry(), read_cases(OURS), TODAY)
    assert found.lost() == []
    assert len(found.by_platform()) >= 14


def test_what_a_reader_sees_is_found_in_any_spelling(tmp_path: Path) -> None:
    expected = {"owner": "Wren  Ada", "market": "123400", "situs": "12 juniper", "zoned": "R-1"}
    found = scored(tmp_path, expected)
    assert found.recall == 1.0
    assert found.named == 1.0
    assert [finding.named for finding in found.findings] == [True, True, True, None]


def test_another_value_under_the_canonical_name_is_wrong_and_none_at_all_is_missing(tmp_path: Path) -> None:
    found = scored(
        tmp_path, {"owner": "FINCH OTTO", "market": "$1", "mailing": "PO BOX 7", "just_2020": "$9", "x": "QQQ"}
    )
    assert outcomes(found) == {"owner": WRONG, "market": WRONG, "mailing": MISSING, "just_2020": MISSING, "x": MISSING}
    assert [finding.shown for finding in found.findings][:2] == [["WREN ADA", ["WREN ADA"]], 123400.0]
    assert found.recall == 0.0


def test_what_is_no_text_has_to_be_there_as_it_is(tmp_path: Path) -> None:
    found = scored(tmp_path, {"market_value": 123400.0, "owner_names": ["WREN"], "sales": [{"price": 1.0}]})
    assert outcomes(found) == {"market_value": "found", "owner_names": WRONG, "sales": MISSING}


def test_a_platform_that_is_named_must_be_the_one_that_reads_the_page(tmp_path: Path) -> None:
    assert outcomes(scored(tmp_path, {}, platform="qpublic")) == {"platform": WRONG}
    assert outcomes(scored(tmp_path, {}, platform="Schneider's site, as people call it")) == {}


def test_a_page_without_a_record_loses_its_values_unless_it_shows_no_parcel(tmp_path: Path) -> None:
    form = "<html><body><form>Search by parcel <input name=q><input type=submit value=Search></form></body></html>"
    lost = scored(tmp_path, {"owner": "WREN ADA"}, page=form)
    assert outcomes(lost) == {"owner": MISSING}
    assert list(lost.refused) == ["page.html"]
    assert scored(tmp_path, {"text": "Search by parcel"}, page=form).findings == []
    assert outcomes(scored(tmp_path, {}, page=form, reason="captcha")) == {"reason": WRONG}


def test_an_address_of_a_page_tells_its_platform(tmp_path: Path) -> None:
    found = scored(tmp_path, {"owner": "WREN ADA"}, url="https://www.collierappraiser.com/main_search/1")
    assert list(found.by_platform()) == ["collier"]


@pytest.mark.parametrize("text", ["{", "[{}]", '[{"file": "gone.html", "expected": {}}]', "[1]"])
def test_expectations_that_cannot_be_read_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "expected.json").write_text(text)
    with pytest.raises(InputError, match=r"expected\.json|gone\.html"):
        list(read_cases(tmp_path))


@pytest.mark.parametrize(("folder", "bar"), [("pages", 0.99), ("pages-more", 0.99)])
def test_real_pages_have_no_wrong_value_and_nearly_all_of_the_right_ones(folder: str, bar: float) -> None:
    if not (SHARED / folder / "expected.json").exists():
        pytest.skip(f"no real pages in ../shared/{folder}")
    found = score(default_registry(), read_cases(SHARED / folder), TODAY)
    assert [finding for finding in found.findings if finding.outcome == WRONG] == []
    assert found.recall >= bar, found.lost()
