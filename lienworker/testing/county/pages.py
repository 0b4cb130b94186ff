"""The pages of Juniper County, rendered from a parcel's number alone: the same number, the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from lienworker.testing.county.people import DEEDS, HOLDERS, USES, Parcel

NEWEST_YEAR = 2024
YEARS = 8
DEFAULT_SIZE = 12_000
_AUTHORITIES = ("COUNTY GENERAL", "SCHOOL BOARD", "WATER MANAGEMENT", "FIRE DISTRICT 4", "LIBRARY")
_MARK = '<meta name="generator" content="juniper-county-demo">'
_LEVY_LINE = 76  # bytes
COLUMNS = {
    "values": "Tax Year|Land Value|Building Value|Just Value|Assessed Value|Taxable Value",
    "taxes": "Tax Year|Bill Number|Amount|Paid|Due|Status|Date Paid",
    "liens": "Certificate Number|Tax Year|Face Amount|Interest Rate|Holder|Sale Date|Redeemed On|Status",
    "sales": "Sale Date|Sale Price|Deed Type|Book/Page|Grantor|Grantee",
    "levies": "Year|Authority|Millage|Levy",
}
_HEADER = (
    "<header><h1>Juniper County Property Appraiser</h1>"
    '<nav><a href="/">Home</a> <a href="/login">Log in</a></nav>'
    '<form action="/search"><label for="q">Search by owner or parcel</label><input id="q" name="q">'
    "<button>Search</button></form></header>"
)
Row = Sequence[object]


def parcel_id(n: int) -> str:
    return Parcel(n).parcel_id


def parcel_number(wanted: str) -> int | None:
    """The number behind a parcel id, or None for an id that the county never gave out."""
    tail = wanted.rpartition("-")[2]
    if not (tail.isascii() and tail.isdigit()):
        return None
    return int(tail) if parcel_id(int(tail)) == wanted else None


def render_parcel(n: int, size: int = DEFAULT_SIZE) -> str:
    """The page of parcel `n`, about `size` bytes long (the levy table grows until it is)."""
    parcel = Parcel(n)
    parts = [
        _facts("Summary", _summary(parcel)),
        _facts("Owner Information", _owner(parcel)),
        _grid("values", "Valuation", value_rows(parcel)),
        _grid("taxes", "Tax Bills", tax_rows(parcel)),
        _grid("liens", "Tax Certificates", _liens(parcel)),
        _grid("sales", "Sales History", sale_rows(parcel)),
    ]
    spare = size - sum(map(len, parts)) - 1_000
    parts.append(_grid("levies", "Taxing Authorities", _levies(parcel, spare)))
    return page(f"Parcel {parcel.parcel_id}", "".join(parts))


def page(title: str, content: str) -> str:
    """Any page of the county, with its header, its search box and its log-in link."""
    head = f'<head><meta charset="utf-8">{_MARK}<title>{escape(title)} - Juniper County</title></head>'
    return f"<!DOCTYPE html>\n<html>{head}\n<body>{_HEADER}\n<main>{content}</main></body></html>\n"


def _summary(parcel: Parcel) -> Iterator[tuple[str, str, str]]:
    town, code = parcel.town
    yield "Parcel ID", "jc-parcel-id", parcel.parcel_id
    yield "Property Address", "jc-situs", parcel.situs
    yield "City", "jc-city", town
    yield "Zip Code", "jc-zip", code
    yield (
        "Legal Description",
        "jc-legal",
        f"LOT {parcel.roll('lot', 90) + 1} BLK {parcel.n % 40} JUNIPER & SALT CREEK ADD",
    )
    yield "Property Use", "jc-use", parcel.pick("use", USES)
    yield "Acres", "jc-acres", f"{(parcel.roll('acres', 900) + 5) / 100:.2f}"
    yield "Year Built", "jc-built", str(1950 + parcel.roll("built", 70)) if parcel.roll("vacant", 5) else ""
    yield "Homestead", "jc-homestead", "Y" if parcel.roll("homestead", 3) == 0 else "N"
    yield "Total Due", "jc-due", dollars(sum(bill[4] for bill in _bills(parcel)))


def _owner(parcel: Parcel) -> Iterator[tuple[str, str, str]]:
    yield "Owner Name", "jc-owner", parcel.owner
    yield "Mailing Address", "jc-mailing", "\n".join(parcel.mailing)


def value_rows(parcel: Parcel) -> Iterator[Row]:
    for age in range(YEARS):
        land = 20_000 + parcel.roll("land", 80_000) - 500 * age
        building = (60_000 + parcel.roll("building", 200_000) - 2_000 * age) if parcel.roll("vacant", 5) else 0
        just = land + building
        exempt = 25_000 if parcel.roll("homestead", 3) == 0 else 0
        amounts = (land, building, just, just * 9 // 10, max(0, just * 9 // 10 - exempt))
        yield (NEWEST_YEAR - age, *map(dollars, amounts))


def _bills(parcel: Parcel) -> list[tuple[int, str, float, float, float]]:
    """(year, bill number, amount, paid, due); about one bill in six is open."""
    bills = []
    for age in range(YEARS):
        year = NEWEST_YEAR - age
        amount = round(400 + parcel.roll(f"tax {year}", 300_000) / 100, 2)
        unpaid = parcel.roll(f"open {year}", 6) == 0
        bills.append((year, f"{year}-{parcel.n:07d}", amount, 0.0 if unpaid else amount, amount if unpaid else 0.0))
    return bills


def tax_rows(parcel: Parcel) -> Iterator[Row]:
    for year, bill, amount, paid, due in _bills(parcel):
        state, paid_on = ("Unpaid", "") if due else ("Paid", f"11/{parcel.roll(bill, 28) + 1:02d}/{year}")
        yield year, bill, dollars(amount), dollars(paid), dollars(due), state, paid_on


def _liens(parcel: Parcel) -> Iterator[Row]:
    """An unpaid bill is sold as a certificate the summer after; the oldest of them have been redeemed."""
    for year, bill, amount, _, due in _bills(parcel):
        if not due:
            continue
        redeemed = f"03/15/{year + 3}" if year < NEWEST_YEAR - 4 else ""
        rate = f"{parcel.roll('rate ' + bill, 72) * 0.25:.2f}%"
        state = "Redeemed" if redeemed else "Outstanding"
        holder = parcel.pick("holder " + bill, HOLDERS)
        yield (
            f"{year + 1}-{parcel.n:07d}",
            year,
            dollars(amount + 35.5),
            rate,
            holder,
            f"06/01/{year + 1}",
            redeemed,
            state,
        )


def sale_rows(parcel: Parcel) -> Iterator[Row]:
    buyer = parcel.owner
    for turn in range(parcel.roll("sales", 4) + 1):
        year = 2021 - 6 * turn - parcel.roll(f"sale {turn}", 5)
        seller = parcel.person(f"seller {turn}")
        price = dollars(10_000 + parcel.roll(f"price {turn}", 300_000))
        book = f"{1000 + parcel.roll(f'book {turn}', 900)}/{parcel.roll(f'page {turn}', 900) + 1:04d}"
        yield f"0{turn + 2}/1{turn}/{year}", price, parcel.pick(f"deed {turn}", DEEDS), book, seller, buyer
        buyer = seller


def _levies(parcel: Parcel, spare: int) -> Iterator[Row]:
    """As many lines as fill the spare bytes."""
    for line in range(max(0, spare // _LEVY_LINE)):
        millage = (parcel.roll(f"mill {line % 97}", 90_000) + 1_000) / 10_000
        year = NEWEST_YEAR - line // len(_AUTHORITIES)
        yield year, _AUTHORITIES[line % len(_AUTHORITIES)], f"{millage:.4f}", f"${millage * 25:,.2f}"


def _facts(title: str, facts: Iterable[tuple[str, str, str]]) -> str:
    rows = "\n".join(f'<tr><th>{label}</th><td id="{place}">{_lines(value)}</td></tr>' for label, place, value in facts)
    return f'<section><h2>{title}</h2><table class="jc-facts">\n{rows}\n</table></section>\n'


def _grid(name: str, title: str, rows: Iterable[Row]) -> str:
    head = "".join(f"<th>{column}</th>" for column in COLUMNS[name].split("|"))
    lines = "\n".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<section><h2>{title}</h2><table id="jc-{name}"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{lines}</tbody></table></section>\n"
    )


def _lines(value: str) -> str:
    return escape(value).replace("\n", "<br>")


def dollars(amount: float) -> str:
    return f"${amount:,.2f}"
