"""County sites with sessions, and a node that knows how to walk them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lienworker.testing.serving import serving
from lienworker.testing.sites import SITES, SessionSite
from tests.harness.node import Node

#: Seconds between two requests to a site.
DELAY = 0.05


@contextmanager
def served(kind: str, base: Path, end_every: int = 0, **settings: str) -> Iterator[tuple[SessionSite, Node]]:
    """A site of this kind, and a node that has the definition of its platform."""
    with all_served([kind], base, end_every, **settings) as (sites, node):
        yield sites[kind], node


@contextmanager
def all_served(
    kinds: Iterable[str], base: Path, end_every: int = 0, **settings: str
) -> Iterator[tuple[dict[str, SessionSite], Node]]:
    """A site of each kind, and one node that has the definitions of all their platforms."""
    folder = base / "platforms"
    folder.mkdir(mode=0o700)
    with ExitStack() as stack:
        sites = {kind: SITES[kind](end_every=end_every) for kind in kinds}
        for site in sites.values():
            stack.enter_context(serving(site))
            (folder / f"{site.name}.toml").write_text(site.definition(DELAY))
        agent = "Mozilla/5.0 (tests)"
        yield sites, Node(base / "data", LIENWORKER_PLATFORMS=str(folder), LIENWORKER_USER_AGENT=agent, **settings)
