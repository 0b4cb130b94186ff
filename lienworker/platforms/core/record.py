"""The canonical record: what every platform makes of its pages."""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]
# The canonical names, in the order in which a person wants to read them.
CANONICAL = (
    "parcel_id", "alternate_ids", "owner_name", "owner_names", "owner_address", "property_address", "city", "state",
    "zip", "legal_description", "property_use", "acres", "land_area_sqft", "building_area_sqft", "year_built",
    "bedrooms", "bathrooms", "homestead", "land_value", "building_value", "market_value", "assessed_value",
    "taxable_value", "values", "tax_year", "tax_amount", "total_due", "tax_status", "taxes", "liens", "sales",
    "auction", "documents", "images", "parcels", "fields",
)  # fmt: skip


def in_order(record: Record) -> Record:
    """The canonical names in their order, then whatever else a platform gave."""
    known = {name: record[name] for name in CANONICAL if name in record}
    return known if len(known) == len(record) else known | record
