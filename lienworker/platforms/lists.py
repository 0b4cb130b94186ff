"""The parcels of a list: which target each item is, and where its page is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urljoin

from lienworker.platforms.base import Page, Record, Target
from lienworker.platforms.registry import Registry


@dataclass(frozen=True)
class ListedParcel:
    """An item of a list that can be fetched by itself."""

    url: str
    target: Target


def is_list(record: Record) -> bool:
    """A page of many parcels has none of its own."""
    return "parcels" in record and "parcel_id" not in record


def listed_parcels(record: Record, page: Page, about: Target, registry: Registry) -> Iterator[ListedParcel]:
    """The items that have an address: a link of the list, or one that the platform of the parcels builds.

    `about` says what all items share. An item without a parcel id (a day of a calendar) is passed over.
    """
    links = parcel_links(page)
    builder = registry.get(about.platform) if about.platform else None
    seen: set[str] = set()
    for item in record.get("parcels", ()):
        parcel_id = item.get("parcel_id")
        if not parcel_id or parcel_id in seen:
            continue
        seen.add(parcel_id)
        target = Target(about.platform, about.state or item.get("state"), about.county, parcel_id, extra=about.extra)
        url = (builder.build_url(target) if builder else None) or links.get(_fold(parcel_id))
        if url:
            yield ListedParcel(url, target)


def parcel_links(page: Page) -> dict[str, str]:
    """Links of the page by their text, and by the parcel id that their address ends with."""
    found: dict[str, str] = {}
    if page.is_json or "<a" not in page.lower_text:
        return found
    for link in page.selector.xpath("//a[@href]"):
        url = urljoin(page.url, link.root.get("href").strip())
        if not url.startswith(("http://", "https://")):
            continue
        tail = url.rpartition("/")[2].rpartition("=")[2]
        for key in (_fold(" ".join(link.root.itertext())), _fold(tail), _fold(unquote(tail))):
            if key:
                found.setdefault(key, url)
    return found


def _fold(text: str) -> str:
    return "".join(text.split()).lower()
