"""From `state,county,parcel_id` alone to results, for counties of the real data against the server for all of them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from tests.harness.layers import EveryLayer, write_clone
from tests.harness.node import Node


def county_places(node: Node) -> list[tuple[str, str]]:
    """The counties with a layer, as the program knows them."""
    known = node.json("sources", "list", "--kind", "layer", "--limit", "5000")
    return sorted({(row["state"], row["county"]) for row in known if row["county"] and not row["city"]})


def learn(node: Node, base: Path, entries: list[dict[str, Any]], site: EveryLayer) -> None:
    done = node.cli("sources", "add", str(write_clone(base / "clone", entries, site)))
    assert done.returncode == 0, done.stderr + done.stdout


def parcel_of(n: int) -> str:
    """Ids of all kinds: digits only (numbers want them), since what a layer's ids look like is not in the data."""
    return f"{n:08d}"


def write_rows(path: Path, places: list[tuple[str, str]]) -> str:
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(("state", "county", "parcel_id"))
        writer.writerows((state, county, parcel_of(n)) for n, (state, county) in enumerate(places, 1))
    return str(path)


def wrong_results(node: Node, places: list[tuple[str, str]]) -> list[str]:
    """What is not as it was asked for: a result for each place, of that parcel, from a layer."""
    found = {
        (state, county): (parcel_id, json.loads(data))
        for state, county, parcel_id, data in node.sql("SELECT state, county, parcel_id, data FROM results")
    }
    wrong = []
    for n, place in enumerate(places, 1):
        parcel_id, record = found.get(place, (None, {}))
        asked = parcel_of(n)
        is_right = parcel_id == asked and str(record.get("parcel_id", "")).lstrip("0") == asked.lstrip("0")
        if not (is_right and record.get("owner_name")):
            wrong.append(f"{' '.join(place)}: {parcel_id} {record}")
    return wrong
