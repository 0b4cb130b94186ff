"""County platforms: pure functions from a page to the canonical record.

    base         what a platform is; Page and Target (overload: pages that are built to be slow)
    registry     which platforms there are, and which one reads a page
    pagekind     pages that are not parcel pages, each with its reason (their words in pagemarks)
    clean        money, dates, ids and text as the record holds them
    reading      a page read as a person reads it, without knowing the site
    rules        the declarative part of a platform; elements: what it is made of
    generic      any county page
    auctionfiles the files of tax lien auctions
    selectors    a platform by CSS or XPath alone; definitions: the same as data, written in
                 TOML or YAML; folder: other people's
    explain      which rule found what, and what it saw
    …            one module a platform

The canonical record holds what the page says under fixed names (`parcel_id`, `owner_name`, `taxes`, …), leaves
out what it does not say, and keeps every label and value as shown under `fields`.
"""

from lienworker.platforms.base import Page, Platform, Record, Target
from lienworker.platforms.folder import registry_with
from lienworker.platforms.pagekind import check_page
from lienworker.platforms.registry import ParsedPage, Registry, default_registry

__all__ = [
    "Page",
    "ParsedPage",
    "Platform",
    "Record",
    "Registry",
    "Target",
    "check_page",
    "default_registry",
    "registry_with",
]
