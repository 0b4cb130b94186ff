"""The ways to the parcels of a county that are known here, and how each went when it was last tried.

They are files in the data folder: `sources/from-{origin}.json` holds what one origin told (OpenAddresses, a file of the
operator's), `sources/tried.json` what was learned by trying. Knowledge is replaced whole and never half; nothing of a
task depends on it once the task is there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from lienworker.data_folder import DataFolder, make_private, one_at_a_time, safe_part, write_durably
from lienworker.errors import StoreError

Kind = Literal["layer", "page", "auction", "file"]
KINDS: tuple[str, ...] = get_args(Kind)
_TRIED = "tried.json"
_MOST_BYTES = 64_000_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ParcelSource:
    """One way to parcels of a place, as somebody told it."""

    state: str
    county: str | None
    """None for a source of a whole state."""
    kind: Kind
    url: str
    """Of the layer, the site or the file."""
    origin: str
    """Who told: `openaddresses`, the name of a file of the operator's, or `platforms`."""
    reference: str
    """Where it says so, within the origin."""
    fips: str | None = None
    city: str | None = None
    """The source has the parcels of this city only."""
    platform: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    """Placeholders of the platform's addresses and flow; of a layer `base_url` and `field`, its column of ids."""
    website: str | None = None
    license: str | None = None
    doubt: str = ""
    """Why it may not work, where the origin says so."""

    @property
    def key(self) -> str:
        """What the outcome of trying it is stored under; the same source told by two origins is tried once."""
        return f"{self.kind} {self.platform or '-'} {self.url}"

    @property
    def place(self) -> str:
        return " ".join(filter(None, (self.state, self.county, self.city and f"({self.city})")))


@dataclass(frozen=True, slots=True)
class Tried:
    """How the last try went."""

    at: str
    worked: bool
    detail: str
    learned: Mapping[str, str] = field(default_factory=dict)
    """Settings that the source itself told: the spelling and the type of a layer's column of ids."""


def add_sources(folder: DataFolder, sources: Iterable[ParcelSource], *, whole: bool) -> dict[str, int]:
    """Store what was told and return how much by origin. `whole`: the origin told everything, the rest is forgotten."""
    told: dict[str, list[ParcelSource]] = {}
    for source in sources:
        told.setdefault(source.origin, []).append(source)
    make_private(folder.sources)
    with one_at_a_time(_lock(folder)):
        for origin, found in told.items():
            path = folder.sources / f"from-{safe_part(origin, str.lower)}.json"
            again = {source.reference for source in found}
            kept = [] if whole else [source for source in _told_in(path) if source.reference not in again]
            write_durably(path, json.dumps({"sources": [asdict(source) for source in kept + found]}, indent=0))
    return {origin: len(found) for origin, found in told.items()}


def stored_sources(folder: DataFolder) -> list[ParcelSource]:
    """Return everything that was told, by origin."""
    files = sorted(folder.sources.glob("from-*.json")) if folder.sources.is_dir() else []
    return [source for file in files for source in _told_in(file)]


def tried_sources(folder: DataFolder) -> dict[str, Tried]:
    """Return how each source went when it was last tried, by its key."""
    return _read(folder.sources / _TRIED, lambda told: {key: Tried(**about) for key, about in told.items()}) or {}


def record_tried(folder: DataFolder, outcomes: Mapping[str, Tried]) -> None:
    """Store how sources went."""
    make_private(folder.sources)
    with one_at_a_time(_lock(folder)):
        known = {**tried_sources(folder), **outcomes}
        write_durably(
            folder.sources / _TRIED, json.dumps({key: asdict(about) for key, about in known.items()}, indent=0)
        )


def _lock(folder: DataFolder) -> Path:
    return folder.root / "sources.lock"


def _told_in(path: Path) -> list[ParcelSource]:
    return _read(path, lambda told: [ParcelSource(**source) for source in told["sources"]]) or []


def _read(path: Path, make: Callable[[Any], T]) -> T | None:
    """Return what a file of ours holds; None where there is none."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError("it is too large")
        return make(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
        raise StoreError(
            f"{path} cannot be read ({problem}); remove it, and add the sources again (`lienworker sources add PATH`)."
        ) from None
