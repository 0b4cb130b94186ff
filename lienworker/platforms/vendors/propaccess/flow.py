"""The way to a property of PropAccess: its own address, or where the district wants a search first, that."""

from __future__ import annotations

from lienworker.platforms.flows import Capture, Condition, Flow, Step, Submit

_SEARCH_BOX = Condition(css=("[name='propertySearchOptions:searchText']",))
_RESULTS = "#propertySearchResults_resultsTable"

FLOW = Flow(
    settings={"base_url": "", "cid": ""},
    session=15 * 60.0,
    open=(Step(get="{base_url}/clientdb/PropertySearch.aspx?cid={cid}"),),
    lost=Condition(text=("Session expired",)),
    steps=(
        Step(
            get="{base_url}/clientdb/Property.aspx?cid={cid}&prop_id={parcel_id}",
            missing=Condition(text=("Property not found.",)),
            lost=Condition(url=(r"customdisplay\.htm",)),
        ),
        Step(
            when=_SEARCH_BOX,
            submit=Submit(
                form="form",
                set={"propertySearchOptions:searchText": "{parcel_id}"},
                click="propertySearchOptions:search",
            ),
            safe=True,
            missing=Condition(text=("None found",)),
            lost=Condition(url=(r"customdisplay\.htm",)),
            expect=Condition(css=(_RESULTS,)),
            capture={"property": Capture(css=f"{_RESULTS} a[href*='Property.aspx']::attr(href)")},
        ),
        Step(when=Condition(css=(_RESULTS,)), get="{property}"),
        Step(expect=Condition(css=("[id^=propertyHeading]",), text=("{parcel_id}",)), keep="property"),
    ),
)
