"""The four county sites, each walked by its own definition: all pages of each parcel, in as few sessions as last."""

from __future__ import annotations

from pathlib import Path

import pytest

from lienworker.platforms import Platform, default_registry
from lienworker.platforms.catalog.definitions import load_definition
from lienworker.platforms.flows import Done
from lienworker.testing.serving import serving
from lienworker.testing.sites import SITES, SessionSite
from tests.harness.walking import target_of, walk_all

PARTS = {
    "webforms": ["profile", "values", "sales", "taxes"],
    "auction": ["items", "more-1"],
    "guest": ["account", "document-1", "document-2"],
    "service": ["card", "detail", "history"],
}


def platform_of(site: SessionSite, folder: Path) -> Platform:
    file = folder / f"{site.name}.toml"
    file.write_text(site.definition(0.0))
    return load_definition(file, default_registry().get)


@pytest.mark.parametrize("end_every", [0, 20])
@pytest.mark.parametrize("kind", SITES)
def test_all_pages_of_all_parcels_arrive_also_when_sessions_end(kind: str, end_every: int, tmp_path: Path) -> None:
    site = SITES[kind](end_every=end_every)
    with serving(site):
        platform = platform_of(site, tmp_path)
        targets = [target_of(row) for row in site.work(45)]
        flow = platform.flow_for(targets[0])
        assert flow is not None
        moves = walk_all(flow, targets)
    for target, move in zip(targets, moves, strict=True):
        assert isinstance(move, Done), move
        assert list(move.parts) == PARTS[kind]
        record = platform.parse_parts(move.parts, target)
        assert record.get("parcel_id") == target.parcel_id
    assert site.sessions_opened == 1 if not end_every else site.sessions_opened > 1
