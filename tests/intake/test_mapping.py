"""Which column is what, in the headers of counties and auction houses."""

from __future__ import annotations

from pathlib import Path

import pytest
from reading import rows

from lienworker.intake import Defaults, ParcelRow, propose_mapping, read_parcels

AUCTIONS = Path(__file__).parents[3] / "shared" / "pages" / "realauction"


@pytest.mark.parametrize(
    ("header", "mapping"),
    [
        (["url"], {"url": "url"}),
        (["HREF", "Parcel Number"], {"url": "HREF", "parcel_id": "Parcel Number"}),
        (["Link", "URL"], {"url": "URL"}),
        (["County Name", "PARCEL_NO"], {"county": "County Name", "parcel_id": "PARCEL_NO"}),
        (["Parcel #", "State", "County"], {"parcel_id": "Parcel #", "state": "State", "county": "County"}),
        (["AdvNum", "Parcel", "Face Amount", "WinningBid"], {"parcel_id": "Parcel"}),
        (["SEQUENCE", "ACCOUNT", "AMOUNT DUE", "OWNER NAME"], {"parcel_id": "ACCOUNT"}),
        (["Account Number", "ParcelID", "Cert No"], {"parcel_id": "ParcelID"}),
        (["PARCEL ID", "OWNER CITY", "OWNER STATE", "OWNER ZIP"], {"parcel_id": "PARCEL ID"}),
        (["APN", "Owner", "City", "State", "Zip"], {"parcel_id": "APN"}),
        (["Name", "Amount"], {}),
        ([], {}),
    ],
)
def test_a_header_is_understood_by_itself(header: list[str], mapping: dict[str, str]) -> None:
    assert propose_mapping(header) == mapping


def test_an_advertising_list_with_pipes_and_repeated_names_is_read() -> None:
    table = (
        "PARCEL ID|OWNER NAME|OWNER NAME|OWNER CITY|OWNER STATE|FACE VALUE\n"
        "01-0-000001|ROE JANE||ELSEWHERE|PA|0012.50\n"
    )

    (row,) = rows(table, name="list.csv", defaults=Defaults(platform="realauction", state="MD", county="Carroll"))

    assert (row.parcel_id, row.state) == ("01-0-000001", "MD")
    assert row.extra["OWNER STATE"] == "PA"
    assert row.extra["FACE VALUE"] == "0012.50"
    assert "OWNER NAME 2" not in row.extra


@pytest.mark.skipif(not AUCTIONS.is_dir(), reason="the saved auction files are not here")
@pytest.mark.parametrize(
    ("name", "count", "first"),
    [
        ("realtaxlien_az_coconino_2024_advertising_file.txt", 1374, "R0001087"),
        ("realtaxlien_fl_columbia_2024_results_all.csv", 3271, "R00010-001"),
        ("realtaxlien_md_carroll_2023_advertising_file.csv", 306, "01-0-002554"),
    ],
)
def test_real_auction_files_are_read_without_a_word_from_the_operator(name: str, count: int, first: str) -> None:
    found = list(read_parcels(AUCTIONS / name, defaults=Defaults(platform="realauction")))

    assert all(isinstance(row, ParcelRow) for row in found)
    assert len(found) == count
    assert isinstance(found[0], ParcelRow)
    assert found[0].parcel_id == first
