"""Tyler iasWorld Public Access, reached as a visitor does: disclaimer, search by parcel id, then tab after tab.

Walking it agrees to the county's disclaimer in the operator's name; the setting `disclaimer` is the button pressed.
Pages that one address reaches are read by `tyler`.
"""

from __future__ import annotations

import re

from lienworker.platforms.flows import Capture, Condition, Flow, Step, Submit
from lienworker.platforms.vendors.tyler import TylerPlatform

_FORM = "{base_url}/search/commonsearch.aspx?mode=parid"
_BANNER = ("td.DataletHeaderTop", "tr.DataletHeaderTop")
_LIST = Condition(css=("tr.SearchResults",))
_HAS_FORM = Condition(css=("[name=inpParid]",))
#: The session may still show the parcel of an earlier search: only one that names the asked id is its page.
_IS_PARCEL = Condition(css=_BANNER, text=("{parcel_id}",))
#: The tabs that are kept, by how the side menus spell their modes.
_TABS = {"building": ("residential",), "values": ("value",), "sales": ("sale",), "taxes": ("tax", "charge")}


def _links(modes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"#sidemenu a[href*='mode={mode}']" for mode in modes)


def _link(modes: tuple[str, ...]) -> Capture:
    return Capture(css=", ".join(f"{link}::attr(href)" for link in _links(modes)), optional=True)


def _tab(part: str, modes: tuple[str, ...]) -> Step:
    """Open a tab where the side menu has it."""
    return Step(get=f"{{{part}_tab}}", when=Condition(css=_links(modes)), expect=_IS_PARCEL, keep=part, optional=True)


FLOW = Flow(
    settings={"base_url": "", "disclaimer": "btAgree"},
    session=20 * 60.0,
    open=(
        Step(get=_FORM),
        Step(when=Condition(css=("#btAgree",)), submit=Submit(form="#frmMain", click="{disclaimer}"), safe=True),
        Step(when=Condition(without=_HAS_FORM), get=_FORM),
        Step(expect=_HAS_FORM),
    ),
    steps=(
        Step(
            submit=Submit(form="#frmMain", set={"inpParid": "{parcel_id}", "hdAction": "Search"}, click="btSearch"),
            safe=True,
            missing=Condition(text=("did not find any records",)),
            expect=Condition(css=(*_BANNER, "tr.SearchResults")),
            capture={"detail": Capture(css="tr.SearchResults::attr(onclick)", re=r"'(.+?)'", optional=True)},
        ),
        # One hit may open the parcel at once.
        Step(when=Condition(css=_BANNER), expect=_IS_PARCEL, keep="profile"),
        Step(when=_LIST, get="{detail}", expect=_IS_PARCEL, keep="profile"),
        Step(
            expect=_IS_PARCEL,
            capture={f"{part}_tab": _link(modes) for part, modes in _TABS.items()},
        ),
        *(_tab(part, modes) for part, modes in _TABS.items()),
    ),
)


class IasWorldPlatform(TylerPlatform):
    """The same pages as `tyler`, several of a parcel. One page alone is left to `tyler`, which is asked first."""

    name = "iasworld"
    version = "1"
    reach = "search from documentation, tabs verified on a recorded page"
    url_pattern = re.compile(r"/search/commonsearch\.aspx", re.I)
    url_template = ""
    flow = FLOW


PLATFORM = IasWorldPlatform()
