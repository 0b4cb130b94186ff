"""County platforms: pure functions from a page to the canonical record.

    core/        what a platform is (base: Page, Target), the record, clean values, limits of what a page may cost
    reading/     a page read as a person reads it, without knowing the site; pages that are not parcel pages
    rules        the declarative part of a platform
    selectors    a platform by CSS or XPath alone
    vendors/     one folder a vendor; generic: any county page
    catalog/     which platforms there are (registry), also from files (definitions, folder), and running them

The names below, `rules` and `selectors` are what platforms of other people import; their places stay.

The canonical record holds what the page says under fixed names (`parcel_id`, `owner_name`, `taxes`, …), leaves
out what it does not say, and keeps every label and value as shown under `fields`.
"""

from lienworker.platforms.catalog.folder import registry_with
from lienworker.platforms.catalog.registry import ParsedPage, Registry, default_registry
from lienworker.platforms.core.base import Page, Platform, Record, Target
from lienworker.platforms.reading.pagekind import check_page

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
