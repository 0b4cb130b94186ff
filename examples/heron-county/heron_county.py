"""Heron County (invented): a page a parcel, labels in a definition list, liens and sales in tables."""

from __future__ import annotations

from lienworker.errors import PageError
from lienworker.platforms import Page, Record
from lienworker.platforms.selectors import SelectorPlatform, Spot


def _value_of(label: str) -> Spot:
    """The value beside a label of the page's definition list."""
    return Spot(f"//dt[normalize-space()='{label}']/following-sibling::dd[1]")


class HeronPlatform(SelectorPlatform):
    """What `lienworker platforms new` begins, filled in."""

    name = "heron"
    version = "1"
    delay = 2.0
    hosts = ("*.heron.example",)
    marks = ('content="heron-parcels"',)
    url_template = "https://tax.heron.example/parcel?id={parcel_id}"
    fields = {
        "parcel_id": Spot("#account"),
        "owner_name": _value_of("Owner"),
        "property_address": _value_of("Location"),
        "market_value": _value_of("Just value"),
        "total_due": Spot("p.due strong"),
    }
    tables = {
        "liens": Spot("table#certificates"),
        "sales": Spot("table#deeds"),
    }

    def finish(self, record: Record, page: Page) -> None:
        """A retired account has a page, but nothing on it is of this year."""
        if page.selector.css("p.retired"):
            raise PageError("retired", f"account {record.get('parcel_id')} is retired")


PLATFORM = HeronPlatform()
