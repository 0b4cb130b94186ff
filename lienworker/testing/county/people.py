"""Who lives in Juniper County and where: invented names, picked by number, always the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")

FIRST = ("ADA", "BRAM", "CLEO", "DORIAN", "ESME", "FLINT", "GRETA", "HOLLIS", "INEZ", "JUDE", "KIT", "LORNA")
LAST = (
    "ABERNOOK",
    "BRAMBLE",
    "CORRIGAN",
    "DRUMLIN",
    "EVERMERE",
    "FENWAKE",
    "GALLOWAY",
    "HOLLOWELL",
    "IVERSUND",
)
FIRMS = (
    "TALLGRASS HOLDINGS LLC",
    "O'MERE & DAUGHTERS INC",
    "BLUE HERON LAND TRUST",
    "QUARRY HILL PARTNERS LP",
)
STREETS = ("ACORN LN", "BITTERN RD", "CEDAR HOLLOW DR", "DAMSON ST", "ELDERBERRY CT", "FERRY LANDING RD")
TOWNS = (
    ("JUNIPER SPRINGS", "00901"),
    ("MILLBROOK", "00902"),
    ("OLD FERRY", "00903"),
    ("SALT CREEK", "00904"),
)
USES = ("0100 - SINGLE FAMILY", "0000 - VACANT RESIDENTIAL", "0200 - MOBILE HOME", "1000 - VACANT COMMERCIAL")
HOLDERS = ("LANTERN TAX FUND 3 LLC", "HARROWGATE CAPITAL", "COUNTY HELD", "MERIDIAN LIEN CO")
DEEDS = ("WD", "QC", "TD", "SW")


@dataclass(frozen=True)
class Parcel:
    """The head of a parcel, from its number alone."""

    n: int

    @property
    def parcel_id(self) -> str:
        return f"{self.n % 12 + 1:02d}-{self.roll('block', 900) + 100}-{self.n:07d}"

    @property
    def owner(self) -> str:
        if self.roll("firm", 7) == 0:
            return self.pick("firm name", FIRMS)
        return self.person("owner")

    @property
    def situs(self) -> str:
        return f"{self.roll('house', 9000) + 100} {self.pick('street', STREETS)}"

    @property
    def town(self) -> tuple[str, str]:
        return self.pick("town", TOWNS)

    @property
    def mailing(self) -> tuple[str, str]:
        """Where the bill goes: mostly home, sometimes a box in another town."""
        if self.roll("absent", 4) == 0:
            return f"PO BOX {self.roll('box', 9000) + 10}", "FARHAVEN, XX 00950"
        return self.situs, f"{self.town[0]}, XX {self.town[1]}"

    def roll(self, what: str, sides: int) -> int:
        """A number below `sides` that depends on nothing but the parcel and the question."""
        return crc32(f"{what}/{self.n}".encode()) % sides

    def pick(self, what: str, choices: Sequence[T]) -> T:
        return choices[self.roll(what, len(choices))]

    def person(self, what: str) -> str:
        return f"{self.pick(what + ' last', LAST)} {self.pick(what + ' first', FIRST)}"
