"""Every county with an ArcGIS layer in the OpenAddresses data, from `state,county,parcel_id` alone to its result.

    python -m benchmarks.all_counties

Needs that data (../shared/sources) and Linux. A server on loopback stands in for all layers, each site under an address
of its own; every layer is asked what it is first (`sources check`), as an operator would. Exit 1 where a result is
missing or wrong.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.harness.layers import every_layer, real_entries
from tests.harness.node import Node
from tests.harness.where_to_look import county_places, learn, write_rows, wrong_results


def main() -> int:
    entries = real_entries()
    with tempfile.TemporaryDirectory() as base, every_layer(entries) as site:
        where = Path(base)
        node = Node(where / "data", LIENWORKER_ALLOW_PRIVATE_HOSTS="127.0.0.0/8")
        learn(node, where, entries, site)
        places = county_places(node)
        started = time.monotonic()
        checked = node.cli("sources", "check", "--kind", "layer", timeout=3_600)
        between = time.monotonic()
        done = node.cli("run", write_rows(where / "parcels.csv", places), timeout=3_600)
        ended = time.monotonic()
        wrong = wrong_results(node, places)
    print(checked.stderr.strip().splitlines()[-1], f"({between - started:.0f} s)")
    print(
        f"{len(places):,} counties with a layer at {len(site.addresses):,} sites: {len(places) - len(wrong):,} results"
    )
    print(f"of the parcel asked for, {len(wrong):,} wrong or missing; exit {done.returncode}, {ended - between:.0f} s")
    for line in wrong[:20]:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
