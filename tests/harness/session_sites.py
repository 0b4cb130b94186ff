"""A county site with sessions, and a node that knows how to walk it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lienworker.testing.serving import serving
from lienworker.testing.sites import SITES, SessionSite
from tests.harness.node import Node

#: Seconds between two requests to the site.
DELAY = 0.05


@contextmanager
def served(kind: str, base: Path, end_every: int = 0, **settings: str) -> Iterator[tuple[SessionSite, Node]]:
    """A site of this kind, and a node that has the definition of its platform."""
    site = SITES[kind](end_every=end_every)
    folder = base / "platforms"
    folder.mkdir(mode=0o700)
    with serving(site):
        (folder / f"{site.name}.toml").write_text(site.definition(DELAY))
        agent = "Mozilla/5.0 (tests)"
        yield site, Node(base / "data", LIENWORKER_PLATFORMS=str(folder), LIENWORKER_USER_AGENT=agent, **settings)
