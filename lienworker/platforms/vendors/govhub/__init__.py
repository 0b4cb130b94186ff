"""GovHub, the search of Grant Street's TaxSys (county-taxes.net): accounts with their owners, as Algolia answers."""

from __future__ import annotations

import re
from typing import Any

from lienworker.errors import PageError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Record
from lienworker.platforms.services import Facts, JsonPlatform, inside, objects, owners, shown_fields

_UNSEEN = frozenset({"_highlightResult", "child_groups", "custom_parameters"})


class GovHubPlatform(JsonPlatform):
    """One hit is an account, several are a list. Amounts are not in it: they are on the account's page."""

    name = "govhub"
    version = "1"
    delay = 3.0
    evidence = "a part of a real page"
    url_pattern = re.compile(r"//[\w-]+\.algolia(?:net)?\.(?:net|com)/1/indexes/", re.I)
    marks = ('"hits"', "Taxsys-GovHub")

    def read(self, data: Any) -> Record:
        hits = [hit for result in objects(data, "results") for hit in objects(result, "hits")]
        if not hits:
            raise PageError("parcel_not_found", "the search found no account")
        records = [_account(hit) for hit in hits]
        return records[0] if len(records) == 1 else {"parcels": records}


def _account(hit: Facts) -> Record:
    more = inside(hit, "custom_parameters")
    keys = (key for key in objects(more, "alternate_keys") if key.get("external_type") == "Alternate Key")
    owner, site = _entity(more, "Owner/Address"), _entity(more, "Address")
    return {
        "parcel_id": clean.identifier(hit.get("external_id")),
        "alternate_ids": {"alternate": clean.identifier(next(keys, {}).get("external_id"))},
        **owners([owner.get("name") or hit.get("display_name")]),
        "owner_address": clean.joined([owner.get(name) for name in ("address", "city", "state", "zip")], " "),
        "property_address": clean.text(site.get("address")),
        "city": clean.text(site.get("city")),
        "zip": clean.text(site.get("zip")),
        "fields": shown_fields(
            {name: value for name, value in hit.items() if name not in _UNSEEN},
            {name: more.get(name) for name in ("public_url", "external_type")},
        ),
    }


def _entity(more: Facts, kind: str) -> Facts:
    return next((item for item in objects(more, "entities") if item.get("external_type") == kind), {})


PLATFORM = GovHubPlatform()
