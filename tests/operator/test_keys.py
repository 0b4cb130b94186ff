"""Lists without a state and a county: import says so, both can be filled in later, and what waited for it goes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lienworker.cli import cli as lienworker
from lienworker.db.database import all_rows, one_row
from lienworker.outbox.balance import wrong_tallies
from lienworker.outbox.outcomes import configure
from lienworker.platforms import default_registry
from lienworker.queries.failures import groups_of_failures
from lienworker.testing.gateway import ReferenceGateway
from tests.harness.in_process import Desk

#: What the page of such a task says: everything but where it is.
BARE = {"state": None, "county": None, "source": "local_file"}


@pytest.fixture
def cli(here: Desk, gateway: ReferenceGateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "LIENWORKER_DATA_DIR": str(here.runtime.folder.root),
        "GATEWAY_URL": gateway.url,
        "GATEWAY_TOKEN": gateway.token,
    }.items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str, **more: str) -> Result:
        done = CliRunner().invoke(lienworker, list(arguments), env=more)
        configure("ondemand")
        return done

    return run


def write_csv(*numbers: int) -> str:
    rows = [f"http://county.example/p/{number},2,p-{number}" for number in numbers]
    Path("list.csv").write_text("\n".join(["url,priority,parcel_id", *rows]) + "\n")
    return "list.csv"


def parked() -> list[tuple[str, str]]:
    return all_rows("SELECT topic, reason FROM outbox WHERE state = 'parked' AND topic = 'upload_result'")


def delivered(gateway: ReferenceGateway) -> list[tuple[str, str, str]]:
    return [(item.state, item.county, item.parcel_id) for item in gateway.state.results.values()]


def test_an_import_says_what_can_never_be_delivered_and_what_to_do(cli: Any) -> None:
    done = cli("import", write_csv(1, 2))
    assert "2 of 2 rows have no state or no county" in done.stderr
    assert "`lienworker tasks fill --import 1 --state STATE --county COUNTY`" in done.stderr
    assert "no state or no county" not in cli("import", write_csv(3), "--state", "XX", "--county", "Juniper").stderr
    assert "no state or no county" in cli("import", write_csv(4), "--dry-run").stderr


def test_the_same_file_with_state_and_county_lets_parked_results_go(
    cli: Any, here: Desk, gateway: ReferenceGateway
) -> None:
    cli("import", write_csv(1, 2))
    here.scrape_waiting()
    here.upload()
    assert parked() == [("upload_result", "incomplete_key")] * 2
    assert {group["command"] for group in groups_of_failures()} == {
        "lienworker tasks fill --all --state STATE --county COUNTY"
    }

    done = cli("import", write_csv(1, 2), "--state", "XX", "--county", "Juniper")

    assert "2 learned their state, county or parcel id" in done.stderr
    assert "2 parked results can be delivered now" in done.stderr
    pending = [json.loads(path.read_text()) for path in here.runtime.folder.pending.glob("*.json")]
    assert {(item["state"], item["county"]) for item in pending} == {("XX", "Juniper")}
    here.upload()
    assert sorted(delivered(gateway)) == [("XX", "Juniper", "p-1"), ("XX", "Juniper", "p-2")]
    assert parked() == []


def test_tasks_fill_does_the_same_by_hand_and_is_in_the_audit(cli: Any, here: Desk, gateway: ReferenceGateway) -> None:
    here.add(1, **BARE)
    here.upload()

    done = cli("tasks", "fill", "p1", "--state", "xx", "--county", "Juniper")

    assert done.output == "1 task filled in; 1 parked result can be delivered now.\n"
    assert all_rows("SELECT action, n FROM audit") == [("fill", 1)]
    here.upload()
    assert delivered(gateway) == [("XX", "Juniper", "p-1")]
    assert cli("tasks", "fill", "--all", "--state", "YY", "--county", "Other").exit_code == 1
    assert all_rows("SELECT state, county FROM tasks") == [("XX", "Juniper")]


def test_half_a_key_stays_parked(cli: Any, here: Desk) -> None:
    here.add(1, **BARE)
    here.upload()
    assert cli("tasks", "fill", "--all", "--state", "XX").exit_code == 0
    assert parked() == [("upload_result", "incomplete_key")]


def test_in_standalone_mode_what_was_parked_is_held_as_all_else(cli: Any, here: Desk) -> None:
    here.add(1, **BARE)
    here.upload()
    cli("tasks", "fill", "--all", "--state", "XX", "--county", "Juniper", STANDALONE="true")
    assert all_rows("SELECT state, reason FROM outbox WHERE topic = 'upload_result'") == [("held", "standalone")]


def test_figures_by_county_go_with_the_task(cli: Any, here: Desk) -> None:
    cli("import", write_csv(1, 2))
    cli("import", write_csv(1), "--state", "XX", "--county", "Juniper")
    assert all_rows("SELECT place, n FROM waiting_since WHERE topic = 'fetch' AND n > 0 ORDER BY 1") == [
        ("|XX|Juniper", 1),
        ("||", 1),
    ]
    here.scrape_waiting()
    cli("tasks", "fill", "--all", "--state", "XX", "--county", "Juniper")
    assert all_rows("SELECT key, n FROM rollups WHERE name = 'county' AND n > 0") == [
        ("generic|XX|Juniper|completed", 2)
    ]
    assert wrong_tallies() == []


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://www.leepa.org/Display/DisplayParcel.aspx?FolioID=1", ("FL", "Lee")),
        ("https://qpublic.schneidercorp.com/Application.aspx?App=DixieCountyFL&Layer=Parcels", ("FL", "Dixie")),
        ("https://qpublic.schneidercorp.com/Application.aspx?App=StJohnsCountyFL&Layer=Parcels", (None, None)),
        ("https://columbia.floridapa.com/gis/?pin=1", ("FL", None)),
        ("https://leepa.org.example/", (None, None)),
        ("https://county.example/?u=https://www.leepa.org/", (None, None)),
    ],
)
def test_an_address_tells_only_what_is_certain(url: str, place: tuple[str | None, str | None]) -> None:
    assert default_registry().place(None, url) == place


def test_what_the_address_tells_is_stored_and_not_warned_about(cli: Any) -> None:
    Path("lee.txt").write_text("https://www.leepa.org/Display/DisplayParcel.aspx?FolioID=1\n")
    assert "no state or no county" not in cli("import", "lee.txt").stderr
    assert one_row("SELECT state, county FROM tasks") == ("FL", "Lee")


def test_a_task_learns_its_place_from_its_page(here: Desk) -> None:
    here.scraped([here.new_task(1, **BARE)], state="XX", county="Juniper")
    assert one_row("SELECT state, county FROM tasks") == ("XX", "Juniper")


def test_a_list_of_bare_addresses_has_figures_by_county(cli: Any, here: Desk) -> None:
    """One page says where it is; the other address was never read, but its list says so."""
    cli("import", write_csv(1))
    here.scrape_waiting(state="XX", county="Juniper")
    cli("import", write_csv(2), "--state", "XX", "--county", "Juniper")
    (county,) = json.loads(cli("counties", "list", "--json").output)
    assert (county["platform"], county["ended"], county["waiting"]) == ("generic", 1, 1)
    assert county["oldest_minute"] is not None
    agreed = all_rows("SELECT t.platform, r.platform FROM tasks t JOIN results r USING (task_id)")
    assert agreed == [("generic", "generic")]


def test_a_platform_that_the_address_tells_is_known_before_its_page(cli: Any) -> None:
    Path("lee.txt").write_text("https://www.leepa.org/Display/DisplayParcel.aspx?FolioID=1\n")
    cli("import", "lee.txt")
    assert one_row("SELECT platform, platform_learned FROM tasks") == ("leepa", 1)


def test_a_county_of_bare_addresses_is_one_line_of_the_analysis(cli: Any, here: Desk) -> None:
    """One task was read by a platform, another failed before anybody could know whose page it is."""
    place = {"state": "XX", "county": "Juniper", "platform": None}
    here.scraped([here.new_task(1, **place)])
    cli("import", write_csv(7), "--state", "XX", "--county", "Juniper")
    cli("tasks", "cancel", "--all", "--yes")
    (county,) = json.loads(cli("analyze", "--json").output)["counties"]
    assert (county["county"], county["platform"], county["completed"], county["failed"]) == ("Juniper", "generic", 1, 1)


def test_rows_are_listed_newest_first_with_a_total(cli: Any, here: Desk) -> None:
    here.add(2)
    rows = json.loads(cli("outbox", "list", "--county", "JUNIPER", "--json").output)
    assert [row["id"] for row in rows] == sorted((row["id"] for row in rows), reverse=True)
    oldest = json.loads(cli("outbox", "list", "--reverse", "--limit", "1", "--json").output)
    assert oldest[0]["id"] == rows[-1]["id"]
    assert "1 of 4 rows; --limit 4 shows all." in cli("outbox", "list", "--status", "waiting", "--limit", "1").stderr
