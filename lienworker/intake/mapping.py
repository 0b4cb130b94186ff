"""Which column is what: the only place that knows the names counties and auction houses give to ours.

A mapping goes from our name to the header's own spelling: `{"parcel_id": "Parcel No."}`. The same table serves
CSV headers and JSON keys, and what it proposes can be overruled name by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lienworker.errors import InputError

FIELDS = ("url", "platform", "state", "county", "parcel_id", "queue", "priority")

# Spelled as `squeeze` leaves them; the first one that the header has wins. The last two lines of the parcel ids hold
# names that elsewhere mean something else, so they count only where no better one is there: RealAuction lists by
# ACCOUNT in Arizona and Maryland, by SCHEDULE NUMBER in Colorado, by block, lot and qualifier in New Jersey, and by
# PARCEL, PARCEL ID, Parcel Number elsewhere.
ALIASES: dict[str, tuple[str, ...]] = {
    "url": ("url", "link", "href", "parcelurl", "propertyurl", "detailurl", "parcellink", "propertylink"),
    "platform": ("platform",),
    "state": ("state", "statecode", "propertystate"),
    "county": ("county", "countyname", "propertycounty"),
    "parcel_id": (
        *("parcelid", "parcel", "parcelnumber", "parcelno", "parcelnum", "parcelnbr", "parcelidnumber"),
        *("apn", "pin", "parid", "folio", "folionumber", "foliono", "taxparcelid", "taxparcelnumber", "pid"),
        *("accountnumber", "accountno", "account", "schedulenumber", "taxid", "taxidnumber", "propertyid"),
        *("strap", "parcelidentification", "mapparcel", "blocklotqual", "blq", "taxaccount", "altkey", "alternatekey"),
    ),
    "queue": ("queue",),
    "priority": ("priority",),
}

_ZIPS = {"zip", "zipcode", "postalcode", "zip5"}


def squeeze(name: str) -> str:
    """A header name without case, blanks and punctuation: `Parcel No.`, `PARCEL_NO` and `ParcelNo` are one."""
    return "".join(c for c in name.casefold() if c.isalnum())


def propose_mapping(header: Sequence[str]) -> dict[str, str]:
    """What each of our names is called in this header; names that it does not have are left out."""
    squeezed = [squeeze(name) for name in header]
    found: dict[str, str] = {}
    for field, aliases in ALIASES.items():
        place = next((squeezed.index(alias) for alias in aliases if alias in squeezed), None)
        if place is not None and not (field == "state" and _is_mailing_state(squeezed, place)):
            found[field] = header[place]
    return found


def _is_mailing_state(squeezed: list[str], place: int) -> bool:
    """True for the STATE of `OWNER, ADDRESS, CITY, STATE, ZIP`: where the owner gets mail, not where the parcel is."""
    after_city = place > 0 and squeezed[place - 1].endswith("city")
    before_zip = place + 1 < len(squeezed) and squeezed[place + 1] in _ZIPS
    return (after_city or before_zip) and not any(name in squeezed for name in ALIASES["county"])


def resolve_mapping(header: Sequence[str], chosen: Mapping[str, str] | None, name: str) -> dict[str, str]:
    """The proposal, overruled by what the operator chose. A chosen column must be there."""
    if not chosen:
        return propose_mapping(header)
    picked = {field: _find(header, column, field, name) for field, column in check_fields(chosen).items()}
    rest = [column for column in header if column not in picked.values()]
    return {**propose_mapping(rest), **picked}


def parse_choice(words: str) -> tuple[str, str]:
    """`parcel_id=Parcel ID`, as an operator writes it."""
    field, mark, column = words.partition("=")
    if not mark or not column.strip():
        raise InputError(f'{words!r} does not say which column is which; write it as parcel_id="Parcel ID".')
    return field.strip(), column.strip().strip("\"'")


def check_fields(chosen: Mapping[str, str]) -> Mapping[str, str]:
    for field in chosen:
        if field not in FIELDS:
            raise InputError(f"cannot map {field!r}: the names to map are {', '.join(FIELDS)}")
    return chosen


def _find(header: Sequence[str], column: str, field: str, name: str) -> str:
    if column in header:
        return column
    for candidate in header:
        if squeeze(candidate) == squeeze(column):
            return candidate
    there = ", ".join(repr(c) for c in header[:30])
    raise InputError(f"{name} has no column {column!r} to take {field} from; its columns are {there}")
