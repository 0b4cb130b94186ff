"""States and counties as people and public lists write them: codes of states, and names of counties that are the same.

A county is compared by its name without case, signs and what it calls itself: `St. Mary's`, `SAINT MARYS COUNTY` and
`Saint Mary's` are one. A city that is its own county (`Baltimore City`) is not the county around it.
"""

from __future__ import annotations

import re
import unicodedata

_CODES = (
    "AL01 AK02 AZ04 AR05 CA06 CO08 CT09 DE10 DC11 FL12 GA13 HI15 ID16 IL17 IN18 IA19 KS20 KY21 LA22 ME23 MD24 MA25 MI26"
    " MN27 MS28 MO29 MT30 NE31 NV32 NH33 NJ34 NM35 NY36 NC37 ND38 OH39 OK40 OR41 PA42 RI44 SC45 SD46 TN47 TX48 UT49"
    " VT50 VA51 WA53 WV54 WI55 WY56 AS60 GU66 MP69 PR72 VI78"
)
#: The FIPS code of each state, by its postal code.
STATE_FIPS = {code[:2]: code[2:] for code in _CODES.split()}
_STATE_OF_FIPS = {fips: state for state, fips in STATE_FIPS.items()}

_SUFFIX = re.compile(r"\s+(?:county|parish|city and borough|borough|census area|municipality)\s*$")
_SAINT = re.compile(r"\bst(e?)\b\.?\s*")
_FIPS = re.compile(r"\d{5}")
#: States with cities that are no part of a county; their codes begin at 510.
_WITH_CITIES = frozenset({"MD", "MO", "NV", "VA"})
_FIRST_CITY = 510
#: Names that a county and such a city share: the bare name means the county.
_SHARED = frozenset({"baltimore", "bedford", "fairfax", "franklin", "richmond", "roanoke", "saintlouis"})


def county_key(name: str) -> str:
    """Return what a county's name is compared by."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    plain = _SUFFIX.sub("", plain.strip())
    return re.sub(r"[^a-z0-9]", "", _SAINT.sub(r"saint\1 ", plain))


def county_keys(name: str) -> list[str]:
    """Return the keys that a person may mean, the likeliest first: Chesapeake is a city of its own."""
    key = county_key(name)
    bare = key.removesuffix("city")
    if bare in _SHARED:
        return [key]
    return [key, bare if key.endswith("city") and bare else f"{key}city"]


def is_fips(text: str) -> bool:
    """Return whether a text is the five digits of a county."""
    return bool(_FIPS.fullmatch(text))


def is_city_of_its_own(state: str, fips: str) -> bool:
    return state in _WITH_CITIES and is_fips(fips) and int(fips[2:]) >= _FIRST_CITY


def state_code(text: str) -> str | None:
    """Return the postal code of a state that is named by it or by its FIPS code."""
    word = text.strip().upper()
    return word if word in STATE_FIPS else _STATE_OF_FIPS.get(word[:2]) if word[:2].isdecimal() else None


def split_place(text: str) -> tuple[str, str | None] | None:
    """Read `FL Dixie`, `FL`, `12029` or `12`: the state, and the county or its code. None where there is no state."""
    first, _, rest = text.strip().partition(" ")
    state = state_code(first)
    if state is None:
        return None
    return state, rest.strip() or (first if is_fips(first) else None)
