"""What an address tells about the place of its parcel: the state and the county that results are stored by.

Only what an address says for certain is here. A host such as `stjohns.example` is no county's name as people write it,
and a result under another spelling is another parcel.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class AddressPlace(NamedTuple):
    """Where a parcel is; None for what the address does not tell."""

    state: str | None = None
    county: str | None = None


#: Domains of one county each, or of one state, with all hosts below them.
_SITES = {
    "assess.co.polk.ia.us": AddressPlace("IA", "Polk"),
    "bcpa.net": AddressPlace("FL", "Broward"),
    "collierappraiser.com": AddressPlace("FL", "Collier"),
    "cookcountyassessor.com": AddressPlace("IL", "Cook"),
    "cookcountyassessoril.gov": AddressPlace("IL", "Cook"),
    "cookcountypropertyinfo.com": AddressPlace("IL", "Cook"),
    "cookcountytreasurer.com": AddressPlace("IL", "Cook"),
    "cuyahogacounty.gov": AddressPlace("OH", "Cuyahoga"),
    "cuyahogacounty.us": AddressPlace("OH", "Cuyahoga"),
    "floridapa.com": AddressPlace("FL"),
    "hcpafl.org": AddressPlace("FL", "Hillsborough"),
    "juniper.example": AddressPlace("XX", "Juniper"),
    "leepa.org": AddressPlace("FL", "Lee"),
    "miamidade.gov": AddressPlace("FL", "Miami-Dade"),
    "miamidadepa.gov": AddressPlace("FL", "Miami-Dade"),
    "pcpao.gov": AddressPlace("FL", "Pinellas"),
    "pcpao.org": AddressPlace("FL", "Pinellas"),
    "sheriffsaleauction.ohio.gov": AddressPlace("OH"),
    "wvsao.gov": AddressPlace("WV"),
}
#: Schneider names the application of a county after it: `App=DixieCountyFL`. A name of several words is left alone.
_APPLICATIONS = "schneidercorp.com"
_APPLICATION = re.compile(r"[?&]App=(?P<county>[A-Z][a-z]+)County(?P<state>[A-Z]{2})(?:[&#]|$)")
_HOST = re.compile(r"[a-z]+://(?:[^/?#@]*@)?([^/?#:@]+)", re.I)


def place_of_address(url: str) -> AddressPlace:
    """Return the state and the county that an address is known to belong to."""
    found = _HOST.match(url)
    domain = found[1].lower() if found else ""
    while "." in domain:
        if domain in _SITES:
            return _SITES[domain]
        if domain == _APPLICATIONS and (named := _APPLICATION.search(url)):
            return AddressPlace(named["state"], named["county"])
        domain = domain.partition(".")[2]
    return AddressPlace()
