"""The way to a parcel of Munis: search, the list of its bills, the bill that is listed first, and its payments.

The page of payments shows the bill that the session viewed last, so they are read one after the other.
"""

from __future__ import annotations

from lienworker.platforms.flows import Condition, Flow, Step, Submit

_CONTROL = "ctl00$ctl00$PrimaryPlaceHolder$ContentPlaceHolderMain$Control$"
_GRID = "table[id$=BillsGridView]"

FLOW = Flow(
    settings={"base_url": ""},
    session=12 * 60.0,
    open=(Step(get="{base_url}/citizens/RealEstate/Default.aspx?mode=new"),),
    steps=(
        Step(
            submit=Submit(
                form="#aspnetForm, form",
                set={f"{_CONTROL}ParcelIdSearchFieldLayout$ctl01$ParcelIDTextBox": "{parcel_id}"},
                click=f"{_CONTROL}FormLayoutItem7$ctl01$Button1",
            ),
            safe=True,
            missing=Condition(css=(_GRID,), without=Condition(css=(f"{_GRID} td",))),
            expect=Condition(css=(_GRID,), text=("{parcel_id}",)),
            keep="bills",
        ),
        Step(
            submit=Submit(
                form="#aspnetForm, form", click=f'{_GRID} tr:contains("{{parcel_id}}") a[id$=ViewBillLinkButton]'
            ),
            safe=True,
            expect=Condition(css=("[id*=ViewBill1_]",), text=("{parcel_id}",)),
            keep="bill",
        ),
        Step(get="ViewPayments.aspx", keep="payments", optional=True),
    ),
)
