"""The words at the heads of tables: which column is a sale's price, a bill's year, a lien's holder."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.reading.labels import FIELD_OF

Cleaner = Callable[[object], Any]
Columns = dict[str, tuple[str, Cleaner]]

_SPOKEN = re.compile(r"\bbook (\w+) ?/? ?(?:and )?page (\w+)", re.I)
YEAR_WORDS = "year|tax year|roll year|assessment year|fiscal year|taxyear|tax roll year|yr|payable year|bill year"


def _book_page(value: object) -> str | None:
    """Book and page; of what a link says to the blind (`View the records for Book 12 and Page 34`) only these."""
    found = _SPOKEN.search(str(value))
    return f"{found[1]}/{found[2]}" if found else clean.known(value)


def _columns(*rules: tuple[str, Cleaner, str]) -> Columns:
    return {word: (name, wash) for name, wash, words in rules for word in words.split("|")}


SALES = _columns(
    (
        "date",
        clean.iso_date,
        "date|sale date|sales date|last sale date|last transfer date|date of sale|deed date|transfer date|recorded"
        "|recording date"
        "|sale recorded|date sold|record date|conveyance date|transaction date|recorded date"
        "|deed recorded",
    ),
    (
        "price",
        clean.money,
        "price|sale price|sales price|transfer price|transfer amount|last sale price|sale amount|sales amount|amount"
        "|consideration|sale value",
    ),
    (
        "deed_type",
        clean.known,
        "deed type|instrument|instrument type|deed|deed code|type|sale instrument|inst type"
        "|document type|deed inst|sale type|conveyance type|inst",
    ),
    (
        "book_page",
        _book_page,
        "book page|bk pg|book and page|or book page|deed book page|book pg|bk page|legal reference"
        "|book page number|instrument book page|deed book and page|or bk pg|official record"
        "|document number|doc number|instrument number|clerk file number|deed reference|book page or instrument",
    ),
    ("book", clean.text, "book|deed book|or book|bk"),
    ("page", clean.text, "page|deed page|or page|pg"),
    (
        "grantor",
        clean.known,
        "grantor|seller|grantor name|seller name|from|previous owner|grantors",
    ),
    (
        "grantee",
        clean.known,
        "grantee|buyer|grantee name|buyer name|to|owner|new owner|grantees",
    ),
)
TAXES = _columns(
    ("year", clean.year, YEAR_WORDS),
    (
        "bill",
        clean.identifier,
        "bill|bill number|bill no|receipt|receipt number|bill id|invoice number|statement number",
    ),
    (
        "amount",
        clean.money,
        "amount|total tax|tax amount|tax|taxes|total taxes|billed|amount billed|net tax|gross tax"
        "|total|total tax billed|base tax|tax billed|original amount|bill amount|charged|total billed"
        "|charges|original charge|original tax|tax charged|original bill",
    ),
    (
        "paid",
        clean.money,
        "paid|amount paid|payments|payment|total paid|paid amount|payment amount|tax paid",
    ),
    (
        "due",
        clean.money,
        "due|amount due|balance|balance due|total due|unpaid|total balance|total amount due",
    ),
    ("status", clean.text, "status|payment status|bill status|tax status"),
    (
        "paid_on",
        clean.iso_date,
        "date paid|paid date|payment date|paid on|last paid|date of payment|posted date",
    ),
)
TAXES |= {
    word: ("amount" if name == "tax_amount" else "due", clean.money)
    for word, name in FIELD_OF.items()
    if name in ("tax_amount", "total_due") and word not in TAXES
}
LIENS = _columns(
    (
        "certificate_number",
        clean.identifier,
        "certificate|certificate number|certificate no|cert number|cert no|cert|tax certificate"
        "|certificate of sale number|lien number|certificate id|tax certificate number|cert id|lien",
    ),
    ("tax_year", clean.year, YEAR_WORDS),
    (
        "face_amount",
        clean.money,
        "face amount|face value|face|amount|certificate amount|lien amount|tax amount|cert amount",
    ),
    (
        "interest_rate",
        clean.number,
        "interest rate|rate|bid rate|interest|winning rate|int rate|percent",
    ),
    ("winning_bid", clean.money, "winning bid|bid|winning bid amount|bid amount"),
    (
        "holder",
        clean.known,
        "holder|certificate holder|buyer|bidder|purchaser|lien holder|cert holder|winner|buyer name",
    ),
    (
        "sale_date",
        clean.iso_date,
        "sale date|date sold|sold|sold on|issue date|date|purchase date|date issued",
    ),
    (
        "redeemed_on",
        clean.iso_date,
        "redeemed on|redeemed|redemption date|date redeemed|redeemed date",
    ),
    ("status", clean.stated, "status|certificate status|cert status|lien status"),
)
VALUE_OF = {
    "land_value": "land",
    "building_value": "building",
    "market_value": "market",
    "assessed_value": "assessed",
    "taxable_value": "taxable",
}
VALUES: Columns = _columns(("year", clean.year, YEAR_WORDS)) | {
    word: (VALUE_OF[name], clean.money) for word, name in FIELD_OF.items() if name in VALUE_OF
} | {"total": ("market", clean.money), "market": ("market", clean.money)}  # fmt: skip

# What a table must have in its head to be about this; asked in this order.
KINDS: tuple[tuple[str, Columns, tuple[frozenset[str], ...]], ...] = (
    (
        "liens",
        LIENS,
        (
            frozenset({"certificate_number", "face_amount"}),
            frozenset({"certificate_number", "holder"}),
            frozenset({"certificate_number", "status"}),
        ),
    ),
    (
        "values",
        VALUES,
        (
            frozenset({"year", "land"}),
            frozenset({"year", "assessed"}),
            frozenset({"year", "taxable"}),
            frozenset({"year", "market", "building"}),
        ),
    ),
    (
        "taxes",
        TAXES,
        (
            frozenset({"year", "amount"}),
            frozenset({"year", "paid"}),
            frozenset({"year", "due"}),
            frozenset({"year", "bill"}),
        ),
    ),
    (
        "sales",
        SALES,
        (
            frozenset({"date", "price"}),
            frozenset({"date", "book_page"}),
            frozenset({"date", "grantor"}),
            frozenset({"price", "book_page"}),
        ),
    ),
)
