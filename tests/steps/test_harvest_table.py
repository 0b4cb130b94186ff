"""Rolls in files: cut into pages, each a raw file, and read without asking anybody."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lienworker.db.database import all_rows, one_row
from lienworker.errors import InputError
from lienworker.operator.begin_harvest import Wish, begin, look_at
from lienworker.store.harvests import list_harvests
from tests.harness.in_process import Desk
from tests.steps.test_harvest import counts, read_to_the_end

NAL = "CO_NO,PARCEL_ID,ASMNT_YR,DOR_UC,JV,OWN_NAME,OWN_ADDR1,PHY_ADDR1,SALE_PRC1,SALE_YR1,SALE_MO1,NBRHD_CD"
SDF = "CO_NO,PARCEL_ID,ASMNT_YR,QUAL_CD,SALE_PRC,SALE_YR,SALE_MO,OR_BOOK,OR_PAGE"


def roll(folder: Path, rows: int = 2500, name: str = "nal.csv") -> str:
    lines = [f'25,"00-{n:05d}",2025,001,{n}.00,"OTTER, IDA {n}",{n} FERN ST,,1000,2021,5,N7' for n in range(rows)]
    path = folder / name
    path.write_text("\n".join([NAL, *lines]) + "\n")
    return str(path)


def harvest(here: Desk, wish: Wish) -> dict[str, object]:
    prospect, _ = look_at(here.runtime.settings, wish, dry_run=False)
    begin(here.runtime.settings, prospect, wish)
    return read_to_the_end(here)


def test_a_roll_of_florida_is_known_by_its_columns(here: Desk, tmp_path: Path) -> None:
    done = harvest(here, Wish(roll(tmp_path), "FL", page_size=1000))
    assert (counts(done), done["pages"], done["announced"]) == ((2500, 2500, 0, 0, 0), 3, 2500)
    row = one_row("SELECT platform, county, data FROM results WHERE parcel_id = '00-00007'")
    assert row[:2] == ("fl_nal", "Dixie")
    record = json.loads(row[2])
    assert record["owner_name"] == "OTTER, IDA 7"
    assert (record["market_value"], record["tax_year"]) == (7.0, 2025)
    assert record["sales"] == [{"date": "2021-05", "price": 1000.0}]
    assert one_row("SELECT count(*) FROM outbox WHERE topic = 'fetch'") == (0,)
    here.upload_until()
    assert len(here.gateway.state.results) == 2500
    assert len(here.gateway.state.raw_uploads) == 3
    here.books_are_right()


def test_sales_of_one_parcel_are_one_record_and_never_on_two_pages(here: Desk, tmp_path: Path) -> None:
    rows = [f"25,00-{n // 3:03d},2025,01,{1000 + n},{2020 + n % 3},{1 + n % 12},12,{n}" for n in range(30)]
    path = tmp_path / "sdf.csv"
    path.write_text("\n".join([SDF, *rows]) + "\n")
    done = harvest(here, Wish(str(path), "FL", page_size=4))
    assert counts(done) == (10, 10, 0, 0, 0)
    record = json.loads(one_row("SELECT data FROM results WHERE parcel_id = '00-001'")[0])
    assert [sale["price"] for sale in record["sales"]] == [1005.0, 1004.0, 1003.0]
    assert {platform for (platform,) in all_rows("SELECT DISTINCT platform FROM results")} == {"fl_sdf"}


def test_any_table_is_read_by_its_names_and_by_what_was_chosen(here: Desk, tmp_path: Path) -> None:
    path = tmp_path / "roll.csv"
    path.write_text(
        'PIN NO;Owner;Cnty Name;Zone\n1-1;"HERON;\nJO";Marsh;R1\n1-2;;Marsh;\n;X;Marsh;\n1-3;X;;\n', "cp1252"
    )
    done = harvest(here, Wish(str(path), "XX", chosen=(("county", "Cnty Name"),), encoding="cp1252"))
    assert counts(done) == (4, 2, 0, 0, 2)
    assert done["notes"] == ["Rows were rejected: it has no parcel id.", "Rows were rejected: nothing says its county."]
    record = json.loads(one_row("SELECT data FROM results WHERE parcel_id = '1-1'")[0])
    assert record == {
        "parcel_id": "1-1", "owner_name": "HERON; JO", "owner_names": ["HERON; JO"], "fields": {"Zone": "R1"},
    }  # fmt: skip


def test_the_same_file_again_is_a_refresh_and_a_cut_off_one_goes_on(here: Desk, tmp_path: Path) -> None:
    wish = Wish(roll(tmp_path), "FL", page_size=100)
    prospect, _ = look_at(here.runtime.settings, wish, dry_run=False)

    def stop(rows: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin(here.runtime.settings, prospect, wish, stop)
    here.fetch_and_scrape()
    assert list_harvests(1)[0]["status"] == "running"
    assert one_row("SELECT count(*) FROM results WHERE NOT stays_here") == (1000,)
    begin(here.runtime.settings, prospect, wish)
    assert counts(read_to_the_end(here)) == (2500, 2500, 0, 0, 0)
    assert counts(harvest(here, wish)) == (2500, 0, 0, 2500, 0)


def test_a_limit_holds_for_files_too(here: Desk, tmp_path: Path) -> None:
    assert counts(harvest(here, Wish(roll(tmp_path), "FL", page_size=100, limit=250))) == (250, 250, 0, 0, 0)


def test_a_dry_run_shows_ten_parcels_and_stores_nothing(here: Desk, tmp_path: Path) -> None:
    prospect, parcels = look_at(here.runtime.settings, Wish(roll(tmp_path), "FL"), dry_run=True)
    assert [parcel["parcel_id"] for parcel in parcels] == [f"00-{n:05d}" for n in range(10)]
    assert ("market_value", "JV") in prospect.uses.described()
    assert list_harvests(1) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("a\n1\n", "column names"),
        ("a,a\n1,2\n", "column names"),
        ("Zone,Use\nR1,2\n", "--map parcel_id=COLUMN"),
        ("PIN,Owner\n1,X\n", "--county"),
    ],
)
def test_what_is_no_roll_gets_one_clear_sentence(here: Desk, tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "roll.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=words):
        look_at(here.runtime.settings, Wish(str(path), "FL"), dry_run=True)


def test_bytes_that_are_no_text_are_said_to_be_so(here: Desk, tmp_path: Path) -> None:
    path = tmp_path / "roll.csv"
    path.write_bytes(b"PIN,Owner\n1,M\xfcller\n")
    with pytest.raises(InputError, match="--encoding"):
        look_at(here.runtime.settings, Wish(str(path), "FL", "Dixie"), dry_run=True)
