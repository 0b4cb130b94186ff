"""The parcels of a list: which target each item is, and where its page is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote, urljoin

from lienworker.errors import HeavyPageError
from lienworker.platforms.catalog.guarded import call_limited, page_facts, page_under_limits
from lienworker.platforms.catalog.registry import Registry
from lienworker.platforms.core.base import Page, Platform, Record, Target

#: What the task of an item says of itself.
_KEYS = frozenset({"parcel_id", "state", "county", "platform", "url"})


@dataclass(frozen=True)
class ListedParcel:
    """An item of a list that can be fetched by itself: a parcel, or another list."""

    url: str
    target: Target
    #: What the list says of it besides: a case number, an opening bid, the day of the sale.
    facts: Record
    is_list: bool = False


def is_list(record: Record) -> bool:
    """A page of many parcels has none of its own."""
    return "parcels" in record and "parcel_id" not in record


def listed_parcels(record: Record, page: Page, about: Target, registry: Registry) -> Iterator[ListedParcel]:
    """The items that have an address: a link of the list, or one that the platform of the parcels builds.

    `about` says what all items share. An item without a parcel id is passed over, unless it is a list itself.
    """
    links = _links(page)
    builder = registry.get(about.platform) if about.platform else None
    own = registry.choose(page, Target())
    seen: set[str] = set()
    for item in record.get("parcels", ()):
        found = _parcel(item, about, builder, links) or _list(item, page.url, about, own)
        if found and (key := found.target.parcel_id or found.url) not in seen:
            seen.add(key)
            yield found


def _parcel(item: Record, about: Target, builder: Platform | None, links: dict[str, str]) -> ListedParcel | None:
    parcel_id = item.get("parcel_id")
    if not parcel_id:
        return None
    target = Target(about.platform, about.state or item.get("state"), about.county, parcel_id, extra=about.extra)
    url = (builder.build_url(target) if builder else None) or item.get("url") or links.get(_fold(parcel_id))
    facts = {name: value for name, value in item.items() if name not in _KEYS}
    return ListedParcel(url, target, facts) if url else None


def _list(item: Record, listed_at: str, about: Target, own: Platform) -> ListedParcel | None:
    target = own.list_of(item, listed_at)
    url = own.build_url(target) if target else None
    if target is None or url is None:
        return None
    return ListedParcel(url, replace(target, state=about.state, county=about.county), {}, is_list=True)


def _links(page: Page) -> dict[str, str]:
    """The same as `parcel_links`; of a long list in a process with limits."""
    try:
        return parcel_links(page)
    except HeavyPageError:
        page.forget()
    about = {"page": page_facts(page)}
    found: dict[str, str] = json.loads(call_limited("lienworker.platforms.catalog.lists:links_job", about, page.body))
    return found


def links_job(about: dict[str, Any], body: bytes) -> bytes:
    """`_links` on the other side."""
    return json.dumps(parcel_links(page_under_limits(about["page"], body))).encode()


def parcel_links(page: Page) -> dict[str, str]:
    """Links of the page by their text, and by the parcel id that their address ends with."""
    found: dict[str, str] = {}
    page.check()
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
