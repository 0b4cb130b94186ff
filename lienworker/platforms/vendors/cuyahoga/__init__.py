"""Cuyahoga County, Ohio, MyPlace: a tax bill with its values, flags, charges and balances; a building by its labels."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record, Target
from lienworker.platforms.reading import Pair, people
from lienworker.platforms.reading.elements import grid_of, next_saying, text_of
from lienworker.platforms.rules import Labels, Path, RulePlatform

_HEAD = Labels(Path("//div[starts-with(@class, 'Label')][following-sibling::div[starts-with(@class, 'Data')]]"))
_CELLS = Path(
    "//td[starts-with(@class, 'HeadingBo') or starts-with(@class, 'LabelBo')"
    " or starts-with(concat(@class, ' '), 'Label ')]"
    "[not(ancestor::table[contains(@class, 'ChargeAndPayment')])]"
)
_BALANCES = Path("//div[contains(@class, 'Data') and contains(@class, 'row')]")
_CHARGES = Path("//table[contains(@class, 'ChargeAndPaymentDetailTable')]")
_BILL_TITLE = Path("//div[contains(@class, 'HeaderHighlight')]")
# A search lists its parcels in one list: a link to the parcel, then its owner, street and city, each an item.
_HITS = Path("//ul[@id='AddressInfo']/li[.//a[contains(@onclick, 'selectParcel')]]")
# The pages of a chosen parcel that are no tax bill have it above them: its number, then owner, street and city.
_CHOSEN = Path("//div[@id='viewPropertyHeader']//li|//ul[@id='SelectedAddressInfo']/li")
_DETAILS = Labels(Path("//div[starts-with(@class, 'generalInfoLabel')]"))
_CHARGE_YEAR = re.compile(r"- ?((?:19|20)\d\d)$")
_NAMES = {
    "primary owner": "owner_name",
    "deeded owner": "owner_name",
    "tax mailing address": "owner_address",
    "tax year": "",
    "assessed values land value": "",
    "assessed values building value": "",
    "assessed values total value": "assessed_value",
    "market values land value": "land_value",
    "market values building value": "building_value",
    "market values total value": "market_value",
    "flags homestead reduction": "homestead",
    "balance due": "total_due",
    "half year charge amounts gross tax": "",
    "living area total": "building_area_sqft",
    "age": "year_built",  # so MyPlace calls it
}


class CuyahogaPlatform(RulePlatform):
    """`div.Label` and `div.Data` above, `td.LabelBo` and `td.DataBo` under headings below."""

    name = "cuyahoga"
    version = "3"
    delay = 3.0
    evidence = "real pages"
    url_pattern = re.compile(r"//myplace\.cuyahogacounty\.(?:us|gov)/", re.I)
    marks = ("TaxBillSummaryHeadingTable",)
    labels = (_HEAD, _DETAILS)
    names = _NAMES

    def recognises(self, page: Page) -> bool:
        # In this order: a page in lower case is the dearest thing that recognition asks for.
        return super().recognises(page) or (
            ("propertylabel" in page.text or "selectParcel(" in page.text)
            and "myplace.cuyahogacounty" in page.lower_text
        )

    def parse(self, page: Page, target: Target) -> Record:
        # The page of a parcel keeps the list that it was chosen from.
        of_parcel = self.marks[0] in page.text or "propertylabel" in page.text
        if not of_parcel and (hits := _HITS(page.selector.root)):
            return self.checked({"parcels": [_hit(hit) for hit in hits]})
        return super().parse(page, target)

    def pairs(self, root: Any) -> list[Pair]:
        pairs, section = super().pairs(root), ""
        for cell in _CELLS(root):
            name, value = text_of(cell), next_saying(cell)
            if cell.get("class", "").startswith("Heading"):
                section = name
            elif name and value is not None:
                pairs.append(Pair(name, (text_of(value),), section))
        for data in _BALANCES(root):
            label = data.getprevious()
            if label is not None and (name := text_of(label)):
                pairs.append(Pair(name, (text_of(data),), "Tax Balance Summary"))
        return pairs

    def finish(self, record: Record, root: Any, page: Page) -> None:
        title = " ".join(text_of(element) for element in _BILL_TITLE(root))
        year = record["tax_year"] = clean.year(title)
        fields = record["fields"]
        # The mailing address begins with a name, all in one line, spelled as the mail wants it.
        if address := record.get("owner_address"):
            record["owner_address"] = people.without_name(address)
        if not record.get("parcel_id") and (chosen := _CHOSEN(root)):
            record |= _hit(chosen[0])
        charges = [row for table in _CHARGES(root) if (grid := grid_of(table)) for row in grid.rows]
        record["taxes"] = _bills(year, charges)
        for row in charges:
            if len(row) > 4 and "BALANCE" in row[1] and row[4]:
                fields.setdefault(f"{row[1]}", row[4])
        if clean.money(fields.get("DELQ BALANCE")):
            record["tax_status"] = "Delinquent"
        sold, pending = clean.yes_no(fields.get("Cert. Sold")), clean.yes_no(fields.get("Cert. Pending"))
        if sold or pending:
            record["liens"] = [{"status": "Cert. Sold" if sold else "Cert. Pending"}]


def _hit(hit: Any) -> Record:
    below = [text_of(item) for item in islice(hit.itersiblings("li"), 3)]
    owner, street, city = [*below, "", "", ""][:3]
    found = {"parcel_id": clean.identifier(text_of(hit)), "property_address": clean.joined((street, city), " ")}
    return found | ({"owner_name": owner, "owner_names": [owner]} if people.is_owner(owner) else {})


def _bills(year: int | None, charges: list[list[str]]) -> list[Record]:
    """A bill for each year. A charge is of the year that it names, else of the bill's own: so they add up."""
    bills: dict[int, Record] = {}
    for row in charges:
        if len(row) < 5 or row[0] or not row[1] or row[1].endswith("BALANCE"):
            continue  # a heading, or the sum of what stands above it
        named = _CHARGE_YEAR.search(row[1])
        of_year = int(named[1]) if named else year
        if of_year is not None:
            bill = bills.setdefault(of_year, {"year": of_year, "amount": 0.0, "paid": 0.0, "due": 0.0})
            for name, cell in zip(("amount", "paid", "due"), row[2:5], strict=True):
                bill[name] = round(bill[name] + (clean.money(cell) or 0.0), 2)
    return sorted(bills.values(), key=lambda bill: -int(bill["year"]))


PLATFORM = CuyahogaPlatform()
