"""The way to a property of SRI: its card by the parcel's number, then its details. Two POSTs that look up, no session.

The service's public key is the setting `api_key`, from the script of its site; 401 and 403 say that it has changed.
"""

from __future__ import annotations

from lienworker.platforms.flows import Capture, Condition, Flow, Step

_SEARCH = {
    "searchText": "{parcel_id}", "state": "", "county": "", "propertySaleType": "", "auctionStyle": "",
    "saleStatus": "", "auctionDateRange": "", "recordCount": 50, "startIndex": 0,
}  # fmt: skip
_CARD = "properties[0]"

FLOW = Flow(
    settings={"base_url": "https://sriservicesusermgmtprod.azurewebsites.net/api", "api_key": ""},
    headers={"x-api-key": "{api_key}", "Accept": "application/json"},
    steps=(
        Step(
            post="{base_url}/property/carddetail",
            json=_SEARCH,
            safe=True,
            missing=Condition(json=("length(properties) == `0`",)),
            expect=Condition(json=(_CARD,)),
            capture={
                "id": Capture(json=f"{_CARD}.id"),
                "sale_id": Capture(json=f"{_CARD}.saleId"),
                "sale_type": Capture(json=f"{_CARD}.saleType"),
            },
            keep="card",
        ),
        Step(
            post="{base_url}/property/detail",
            json={"id": "{id}", "propertyId": "{parcel_id}", "saleId": "{sale_id}", "saleType": "{sale_type}"},
            safe=True,
            keep="detail",
            optional=True,
        ),
    ),
)
