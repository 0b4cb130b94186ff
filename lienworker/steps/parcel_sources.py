"""Which of the known ways to a county's parcels is taken, for a row that names its parcel and nothing else.

A way is taken only where it asks for one parcel of that county by its id. A layer of a whole state or of a city is
not: ids repeat between counties, and a parcel of another county would pass for the one that was asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePath
from urllib.parse import urlsplit

from lienworker.data_folder import DataFolder
from lienworker.errors import PageError
from lienworker.intake.parcel_sources.openaddresses import ORIGIN as OPENADDRESSES
from lienworker.places import county_key, county_keys, is_fips, state_code
from lienworker.platforms import Platform, Registry, Target
from lienworker.store.parcel_sources import ParcelSource, Tried, stored_sources, tried_sources

logger = logging.getLogger(__name__)

PLATFORMS = "platforms"
_ANY_PARCEL = "1"
#: A service for programs before a page for people.
_BY_KIND = {"layer": 0, "page": 1, "auction": 2, "file": 3}


@dataclass(frozen=True, slots=True)
class Choice:
    """The source that is taken for a place; or none, with a reason to filter by and a sentence for people."""

    source: ParcelSource | None
    reason: str
    words: str


@dataclass(frozen=True, slots=True)
class KnownSource:
    """A source, and how it went here."""

    source: ParcelSource
    tried: Tried | None

    @property
    def settings(self) -> Mapping[str, str]:
        """What the source itself told is newer than what was told of it."""
        return {**self.source.settings, **(self.tried.learned if self.tried else {})}

    @property
    def history(self) -> str:
        if self.tried is None:
            return "never tried here"
        return f"{'worked' if self.tried.worked else 'failed'} here at {self.tried.at}: {self.tried.detail}"


class KnownSources:
    """Everything that is known in one data folder, read when first asked for."""

    def __init__(self, folder: DataFolder, registry: Registry) -> None:
        self._folder = folder
        self._registry = registry
        self._choices: dict[tuple[str | None, str | None], Choice] = {}

    def all(self) -> list[KnownSource]:
        """Return all sources, best first within each place."""
        return [known for place in sorted(self._by_place) for known in self._by_place[place]]

    def at(self, state: str, county: str | None) -> list[KnownSource]:
        """Return the sources of a place, best first; the county goes by its name or its five digits."""
        if county is None:
            return [known for known in self.all() if known.source.state == state]
        if is_fips(county):
            return [known for known in self.all() if known.source.fips == county]
        found = (self._by_place.get((state, key)) for key in county_keys(county))
        return next(filter(None, found), []) + self._by_place.get((state, ""), [])

    def choose(self, state: str | None, county: str | None) -> Choice:
        """Return the best way to a parcel of this place."""
        if (state, county) not in self._choices:
            self._choices[state, county] = self._choose(state, county)
        return self._choices[state, county]

    def _choose(self, state: str | None, county: str | None) -> Choice:
        code = state_code(state or "")
        if code is None or county is None:
            return _none("no_source", f"{state!r} is no state; write its postal code, such as FL")
        return choose(self.at(code, county), f"{code} {county}")

    @cached_property
    def _by_place(self) -> dict[tuple[str, str], list[KnownSource]]:
        tried = tried_sources(self._folder)
        places: dict[tuple[str, str], list[KnownSource]] = {}
        for source in (*stored_sources(self._folder), *platform_sources(self._registry)):
            known = KnownSource(source, tried.get(source.key))
            places.setdefault((source.state, _place_key(source)), []).append(known)
        return {place: sorted(sources, key=_rank) for place, sources in places.items()}


def _place_key(source: ParcelSource) -> str:
    """Return the county's key; empty for a whole state. A city that names no county has a place of its own."""
    return county_key(source.county) if source.county else f"~{source.city}" if source.city else ""


def choose(sources: Iterable[KnownSource], place: str) -> Choice:
    """Return the first source that can be asked for one parcel, its settings complete; else why there is none."""
    known = list(sources)
    if len({county_key(each.source.county) for each in known if each.source.county}) > 1:
        return _none("no_source", f"{place} stands for several counties in what is known; write the county's name")
    for each in known:
        if not _obstacle(each):
            source = replace(each.source, settings=each.settings)
            return Choice(source, "", f"{place}: {_named(source)}, {each.history}")
    if not known:
        return _none(
            "no_source",
            f"no way to the parcels of {place} is known: give a url or a platform, or add sources"
            " (lienworker sources add)",
        )
    reason = "file_download" if known[0].source.kind == "file" else "no_source"
    return _none(reason, f"{place}: {_obstacle(known[0])}")


def how_to_read(source: ParcelSource) -> str:
    """Say how a file with all parcels is read."""
    place = f"--state {source.state}" + (f' --county "{source.county}"' if source.county else "")
    form = source.settings.get("format", "")
    table = f"download it, write its table as CSV (it is a {form})" if form else "download it"
    return f"{table} and read it with `lienworker harvest FILE {place}`"


def _obstacle(known: KnownSource) -> str:
    """Return why a source cannot be asked for one parcel of its county; empty where it can."""
    source = known.source
    if source.kind == "file":
        return f"its parcels are a file, not a page each ({source.url}): {how_to_read(source)}"
    if source.kind == "auction":
        return f"{source.url} is an auction's list, not a page for each parcel; scrape it with --follow"
    if source.county is None or source.city:
        of = source.city or "the whole state"
        return (
            f"{source.url} is a layer of {of}, where an id may be another county's; if not, name it in a file of yours"
        )
    if source.doubt and source.kind == "page":
        return source.doubt
    if source.kind == "layer" and not known.settings.get("field"):
        return (
            f"it is not known which column of {source.url} has the parcel ids:"
            f' `lienworker sources check "{source.state} {source.county}"` asks the layer'
        )
    return ""


def _rank(known: KnownSource) -> tuple[object, ...]:
    """Sort the best first: what can be asked, what did not fail here, what the operator said, then by kind."""
    source = known.source
    own = source.origin not in (OPENADDRESSES, PLATFORMS)
    stem = county_key(PurePath(source.reference).stem.replace("_", " "))
    return (
        bool(_obstacle(known)),
        known.tried is not None and not known.tried.worked,
        not own,
        bool(source.doubt),
        _BY_KIND[source.kind],
        # A file that is named after another county than it says it covers was copied from that one.
        stem != county_key(source.county or ""),
        source.reference,
    )


def _none(reason: str, words: str) -> Choice:
    return Choice(None, reason, words)


def _named(source: ParcelSource) -> str:
    column = f", by its column {source.settings['field']}" if source.kind == "layer" else f" by {source.platform}"
    doubt = f"; {source.doubt}" if source.doubt else ""
    return f"{source.kind} {source.url}{column} (from {source.origin}: {source.reference}{doubt})"


def platform_sources(registry: Registry) -> Iterator[ParcelSource]:
    """Yield what platforms say of themselves: those that reach a parcel by its id alone and know their county."""
    for name in registry.names():
        try:
            platform = registry.get(name)
            url = platform.build_url(Target(platform=name, parcel_id=_ANY_PARCEL))
            place = platform.place(url) if url else None
        except PageError:  # `platforms list` says what is wrong with it
            continue
        except Exception:
            logger.exception("platform %s failed on where it is", name)
            continue
        if url and place and place.state and place.county:
            yield _of_platform(registry, platform, url, place.state, place.county)


def _of_platform(registry: Registry, platform: Platform, url: str, state: str, county: str) -> ParcelSource:
    address = urlsplit(url)
    closed = "its site is closed to robots: save its pages in your browser, and import them"
    return ParcelSource(
        state=state,
        county=county,
        kind="page",
        url=f"{address.scheme}://{address.netloc}",
        origin=PLATFORMS,
        reference=registry.place_of(platform.name),
        platform=platform.name,
        doubt=closed if platform.reach == "parse only" else "",
    )
