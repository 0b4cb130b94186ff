"""Lists that hold more than the parcel asked for: only its own rows are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lienworker.errors import PageError
from lienworker.platforms import Page, Target, default_registry

PAGES = Path(__file__).resolve().parents[1] / "fixtures" / "pages"


def parse(body: bytes, **target: Any) -> dict[str, Any]:
    return default_registry().parse(Page("http://county.example/", body), Target(**target)).record


def cards(*numbers: str) -> bytes:
    card = json.loads((PAGES / "sri_detail.json").read_bytes())
    return json.dumps(
        {"properties": [card | {"id": n, "propertyId": number} for n, number in enumerate(numbers)]}
    ).encode()


def test_a_search_of_sri_is_the_parcel_that_was_asked_for() -> None:
    assert parse(cards("11-2", "11-22"), parcel_id="11-22")["parcel_id"] == "11-22"
    assert [item["parcel_id"] for item in parse(cards("11-2", "11-22"))["parcels"]] == ["11-2", "11-22"]


@pytest.mark.parametrize("found", [(), ("11-23",)])
def test_a_search_of_sri_without_the_parcel_has_not_found_it(found: tuple[str, ...]) -> None:
    with pytest.raises(PageError) as error:
        parse(cards(*found), platform="sri", parcel_id="11-22")
    assert error.value.reason == "parcel_not_found"


def test_munis_matches_by_prefix_and_only_the_parcels_own_bills_are_read() -> None:
    page = (PAGES / "munis_bills.html").read_bytes()
    other = "<td>11 DAMSON ST</td><td></td><td>CORRIGAN INEZ</td><td>R0021-0031</td><td>2024</td><td></td><td></td>"
    more = page.replace(b"</table>", f"<tr>{other}</tr></table>".encode())
    assert parse(more, parcel_id="R0021-003")["taxes"] == [{"year": 2023}, {"year": 2024}]
    assert parse(more, parcel_id="R0021-0031")["owner_name"] == "CORRIGAN INEZ"
    assert [item["parcel_id"] for item in parse(more)["parcels"]] == ["R0021-003", "R0021-0031"]
    with pytest.raises(PageError):
        parse(more, parcel_id="R0021-00")
