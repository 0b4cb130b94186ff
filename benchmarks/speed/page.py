"""The page of the benchmark: 50 KB of a county's parcel page, and where its twelve fields are."""

from __future__ import annotations

from functools import cache

SIZE = 50_000
FIELDS = {
    "parcel_id": "Parcel Number",
    "owner_name": "Owner",
    "owner_address": "Mailing Address",
    "property_address": "Location",
    "city": "City",
    "zip": "Zip",
    "legal_description": "Legal Description",
    "property_use": "Use",
    "acres": "Acres",
    "year_built": "Year Built",
    "market_value": "Market Value",
    "total_due": "Total Due",
}
#: What a person would write for each: the cell after the label.
PATHS = {name: f"//th[normalize-space()='{label}']/following-sibling::td[1]/text()" for name, label in FIELDS.items()}


def parcel_id(number: int) -> str:
    return f"{number // 10_000:02d}-{number % 10_000:04d}-000"


def render(number: int) -> bytes:
    values = {
        "Parcel Number": parcel_id(number),
        "Owner": f"JUNIPER HOLDINGS {number} LLC",
        "Mailing Address": f"{number} Main Street, Springfield, XX 00001",
        "Location": f"{number + 7} Cedar Avenue",
        "City": "Springfield",
        "Zip": f"{number % 90_000 + 10_000}",
        "Legal Description": f"LOT {number} BLOCK {number % 97} JUNIPER HEIGHTS",
        "Use": "Single Family",
        "Acres": f"{number % 400 / 100:.2f}",
        "Year Built": str(1900 + number % 120),
        "Market Value": f"${number * 137 % 900_000:,}.00",
        "Total Due": f"${number * 7 % 20_000:,}.50",
    }
    facts = "".join(f"<tr><th>{label}</th><td>{value}</td></tr>\n" for label, value in values.items())
    head = f"<!doctype html><html><head><title>Parcel {values['Parcel Number']}</title></head><body>"
    return (head + f'<table class="facts">{facts}</table>' + _rest()).encode()


@cache
def _rest() -> str:
    """Histories and navigation, as on any such page, up to the size."""
    rows = (
        f"<tr class='row{n % 2}'><td class='year'>{1950 + n % 75}</td><td>${n * 311:,}.00</td><td>${n * 97:,}.00</td>"
        f"<td><a href='/bill/{n}' title='Tax bill'>Bill {n}</a></td></tr>\n"
        for n in range(1_000)
    )
    text, room = (
        "<div id='history'><table><tr><th>Year</th><th>Value</th><th>Tax</th><th>Bill</th></tr>\n",
        SIZE - 1_100,
    )
    for row in rows:
        if len(text) + len(row) > room:
            break
        text += row
    return text + "</table></div><footer>County records are public.</footer></body></html>"
