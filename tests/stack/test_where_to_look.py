"""`state,county,parcel_id` alone, against a server that stands in for the layers of OpenAddresses.

`make all-counties` does the same for every county of the data; here a part of it, with all its oddities.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.layers import every_layer, real_entries
from tests.harness.node import Node
from tests.harness.where_to_look import county_places, learn, write_rows, wrong_results

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux", reason="other systems have one loopback address, not one for each site"
    ),
]
#: Each has a layer that is unlike the others: no column of ids, two that claim it, a joined column, other letters.
ODD = {
    ("AK", "Bristol Bay Borough"), ("AL", "Franklin"), ("CA", "Lake"), ("CA", "Orange"), ("IL", "Kane"),
    ("IL", "Williamson"), ("LA", "Lafayette"), ("MD", "Prince George's"), ("SD", "Clark"), ("SD", "Tripp and Todd"),
    ("WA", "Whatcom"), ("FL", "Miami-Dade"), ("FL", "Indian River"), ("CO", "Eagle"), ("FL", "Dixie"),
}  # fmt: skip


def sample() -> list[dict[str, Any]]:
    entries = real_entries()
    counties = [entry for entry in entries if entry["level"] == "county"]
    some = [entry for n, entry in enumerate(counties) if n % 60 == 0 or (entry["state"], entry["county"]) in ODD]
    return [entry for entry in entries if entry in some]


def settings() -> dict[str, str]:
    return {"LIENWORKER_ALLOW_PRIVATE_HOSTS": "127.0.0.0/8"}


def test_a_county_and_a_parcel_id_are_enough_wherever_a_layer_is_known(tmp_path: Path) -> None:
    entries = sample()
    node = Node(tmp_path / "data", **settings())
    with every_layer(entries) as site:
        learn(node, tmp_path, entries, site)
        places = county_places(node)
        checked = node.cli("sources", "check", "--kind", "layer", *(f"{state} {county}" for state, county in places))
        assert "does not work" not in checked.stdout
        done = node.cli("run", write_rows(tmp_path / "parcels.csv", places))

    assert done.returncode == 0, done.stderr
    assert len(places) > 20
    assert wrong_results(node, places) == []
    assert "Looked up 1 row of" in done.stderr


def test_a_file_to_download_is_said_and_not_asked_for(tmp_path: Path) -> None:
    entries = sample()
    node = Node(tmp_path / "data", **settings())
    with every_layer(entries) as site:
        learn(node, tmp_path, entries, site)
        (tmp_path / "parcels.csv").write_text("state,county,parcel_id\nFL,Dixie,00-1\n")
        done = node.cli("import", "parcels.csv", "--dry-run")
        shown = node.cli("sources", "show", "FL Dixie")

    assert done.returncode == 1
    assert "file_download" in done.stderr
    assert "lienworker harvest FILE --state FL" in done.stderr
    assert "lienworker harvest FILE --state FL" in shown.stdout
    assert site.asked == []


def test_a_check_is_one_request_a_source_and_its_outcome_is_kept(tmp_path: Path) -> None:
    entries = [entry for entry in sample() if entry["protocol"] == "ESRI"][:5]
    node = Node(tmp_path / "data", **settings())
    with every_layer(entries) as site:
        learn(node, tmp_path, entries, site)
        (tmp_path / "mine.toml").write_text(
            f'[[source]]\nstate = "FL"\ncounty = "Levy"\nurl = "{site.moved(entries[0]["url"])}x/FeatureServer/9"\n'
        )
        assert node.cli("sources", "add", "mine.toml").returncode == 0
        done = node.cli("sources", "check", "--kind", "layer")
        asked = [line for line in site.asked if "robots.txt" not in line]

    kept = {row["url"]: row["outcome"] for row in node.json("sources", "list", "--limit", "500") if row["outcome"]}
    assert len(asked) == len(set(asked)) == len(kept) == 6
    assert done.returncode == 1
    assert sorted(outcome["worked"] for outcome in kept.values()) == [False, True, True, True, True, True]
    assert "http_404" in next(outcome["detail"] for outcome in kept.values() if not outcome["worked"])
    assert node.cli("sources", "check", "--untried", "FL Levy").stderr.startswith("0 sources asked")
