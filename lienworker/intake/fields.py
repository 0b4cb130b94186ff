"""From the values of one row to a `ParcelRow`, whatever file they came from."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lienworker.errors import InputError
from lienworker.intake.rows import BadRowError, Defaults, ParcelRow
from lienworker.intake.urls import UrlChecker

MAX_ID = 255
_MAX_MEMO = 4_096
#: `1.23457E+17`: what a spreadsheet makes of a long id.
_ROUNDED = re.compile(r"\d(?:\.\d+)?E\+\d\d+")
_PLATFORM_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_.-")


class RowMaker:
    """Checks the seven fields of a row. One per file: it remembers the values that have passed."""

    def __init__(self, defaults: Defaults) -> None:
        self._url = UrlChecker()
        self._platform = Memo(check_platform, _checked("platform", check_platform, defaults.platform))
        self._state = Memo(check_state, _checked("state", check_state, defaults.state))
        self._county = Memo(check_county, _checked("county", check_county, defaults.county))
        self._queue = Memo(check_queue, _checked("queue", check_queue, defaults.queue))
        self._priority = Memo(check_priority, _checked("priority", check_priority, defaults.priority))
        self.given = {"platform": self._platform[None], "state": self._state[None], "county": self._county[None]}

    def make(self, line: int, values: tuple[Any, ...], extra: dict[str, Any]) -> ParcelRow:
        """Return the row of these values, given in the order of `FIELDS`; `BadRowError` says what is wrong."""
        url, platform, state, county, parcel_id, queue, priority = values
        try:
            row = ParcelRow(
                line,
                self._url(url),
                self._platform[platform],
                self._state[state],
                self._county[county],
                check_parcel_id(parcel_id),
                self._queue[queue],
                # Numbers must not enter the memo, where True and 1.0 would pass for 1.
                priority if priority.__class__ is int and 0 < priority < 5 else self._priority[priority],
                extra,
            )
        except TypeError:  # a list or an object, which cannot be looked up
            raise _nested(values) from None
        # A parcel is found by its id where its platform is known, or its county, of which a platform may be known.
        if row.url is None and (row.parcel_id is None or not (row.platform or (row.state and row.county))):
            raise _missing(row)
        return row


class Memo(dict[Any, Any]):
    """The results of a check by value: a state or a county repeats in every row.

    Only short texts are kept, and not without bound, for files in which nothing repeats.
    """

    def __init__(self, check: Callable[[Any], Any], default: Any) -> None:
        super().__init__({None: default, "": default})
        self._check = check
        self._default = default

    def __missing__(self, value: Any) -> Any:
        if not isinstance(value, str):
            return self._check(value)
        checked = self._check(value) if value.strip() else self._default
        if len(self) < _MAX_MEMO and len(value) <= MAX_ID:
            self[value] = checked
        return checked


def check_platform(value: Any) -> str:
    platform = _text(value, "platform").lower()
    if len(platform) > 64 or not _PLATFORM_LETTERS.issuperset(platform):
        raise _bad("platform", value, "use at most 64 of the letters a-z, digits, '_', '.' and '-'")
    return platform


def check_state(value: Any) -> str:
    state = _text(value, "state").upper()
    if len(state) > 8:
        raise _bad("state", value, "use its postal code, such as FL")
    return state


def check_county(value: Any) -> str:
    county = _text(value, "county")
    if len(county) > MAX_ID:
        raise _bad("county", value, f"shorten it to {MAX_ID} characters")
    return county


def check_parcel_id(value: Any) -> str | None:
    """Return the id verbatim: leading zeros and inner spaces are part of it, surrounding spaces are not."""
    if value is None:
        return None
    if value.__class__ is str:
        parcel_id: str = value.strip()
        if len(parcel_id) <= MAX_ID and parcel_id.isprintable():
            if "E+" in parcel_id and _ROUNDED.fullmatch(parcel_id):
                raise _rounded(parcel_id)
            return parcel_id or None
        _text(value, "parcel_id")
    elif value.__class__ is int:
        parcel_id = str(value)
    else:
        raise _bad("parcel_id", value, "write it as text, in quotes, so that none of its digits gets lost")
    if len(parcel_id) > MAX_ID:
        raise _bad("parcel_id", value, f"an id has at most {MAX_ID} characters")
    return parcel_id


def _rounded(parcel_id: str) -> BadRowError:
    return _bad("parcel_id", parcel_id, "a spreadsheet has rounded it: format the column as text, and enter it again")


def check_queue(value: Any) -> str:
    queue = _text(value, "queue").lower()
    if queue not in ("urgent", "default"):
        raise _bad("queue", value, "use urgent or default")
    return queue


def check_priority(value: Any) -> int:
    text = value.strip() if isinstance(value, str) else str(value)
    if isinstance(value, bool) or text not in ("1", "2", "3", "4"):
        raise _bad("priority", value, "use 1, 2, 3 or 4, or leave it empty")
    return int(text)


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise _bad(field, value, "write it as text, in quotes")
    text = value.strip()
    if not text.isprintable() and any(unicodedata.category(c) in ("Cc", "Cs") for c in text):
        raise _bad(field, value, "remove the control characters in it")
    return text


def _bad(field: str, value: Any, remedy: str) -> BadRowError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return BadRowError(f"bad_{field}", f"the {field} {shown} cannot be used; {remedy}")


def _nested(values: tuple[Any, ...]) -> BadRowError:
    field, value = next((f, v) for f, v in zip(FIELDS, values, strict=True) if isinstance(v, list | dict))
    return _bad(field, value, "give one value, not a list or an object")


def _missing(row: ParcelRow) -> BadRowError:
    if row.parcel_id is None:
        return BadRowError("missing_url", "the row has no URL and no parcel id; add one of them")
    return BadRowError(
        "missing_platform",
        "the row has a parcel id but neither a URL nor a platform to build one; add a platform, or the state and the "
        "county to look one up, in the file or for all its rows",
    )


def _checked(field: str, check: Callable[[Any], Any], value: Any) -> Any:
    if value is None or value == "":
        return None
    try:
        return check(value)
    except BadRowError as error:
        raise InputError(f"the {field} given for all rows: {error.detail}") from None


# Which column is what: the only place that knows the names that counties and auction houses use for our fields.
#
# A mapping goes from our name to the header's own spelling: `{"parcel_id": "Parcel No."}`. The same table serves CSV
# headers and JSON keys, and what it proposes can be overridden name by name.


FIELDS = ("url", "platform", "state", "county", "parcel_id", "queue", "priority")

# Spelled as `squeeze` leaves them; the first one that the header has wins. The last two lines of the parcel ids hold
# names that mean something else elsewhere, so they apply only where no better one is there: RealAuction lists by
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
    """Return a header name without case, spaces and punctuation: `Parcel No.`, `PARCEL_NO` and `ParcelNo` are one."""
    return "".join(c for c in name.casefold() if c.isalnum())


def propose_mapping(header: Sequence[str]) -> dict[str, str]:
    """Return what each of our fields is called in this header; fields that it lacks are left out."""
    squeezed = [squeeze(name) for name in header]
    found: dict[str, str] = {}
    for field, aliases in ALIASES.items():
        place = next((squeezed.index(alias) for alias in aliases if alias in squeezed), None)
        if place is not None and not (field == "state" and _is_mailing_state(squeezed, place)):
            found[field] = header[place]
    return found


def _is_mailing_state(squeezed: list[str], place: int) -> bool:
    """Return whether this is the STATE of `OWNER, ADDRESS, CITY, STATE, ZIP`: of the owner, not of the parcel."""
    after_city = place > 0 and squeezed[place - 1].endswith("city")
    before_zip = place + 1 < len(squeezed) and squeezed[place + 1] in _ZIPS
    return (after_city or before_zip) and not any(name in squeezed for name in ALIASES["county"])


def resolve_mapping(header: Sequence[str], chosen: Mapping[str, str] | None, name: str) -> dict[str, str]:
    """Return the proposed mapping, overridden by what the operator chose. A chosen column must exist."""
    if not chosen:
        return propose_mapping(header)
    picked = {field: _find(header, column, field, name) for field, column in check_fields(chosen).items()}
    rest = [column for column in header if column not in picked.values()]
    return {**propose_mapping(rest), **picked}


def parse_choice(words: str) -> tuple[str, str]:
    """Parse `parcel_id=Parcel ID`, as an operator writes it."""
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
