"""Who owns the parcel of a qPublic or Beacon page, told apart from who pays the taxes and who only gets the mail.

Each name, address and kind of person is an element of its own; what belongs together has the same beginning of its id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Record
from lienworker.platforms.reading import people
from lienworker.platforms.reading.elements import lines_of, text_of
from lienworker.platforms.reading.labels import is_known
from lienworker.platforms.rules import Path

_IDS = Path(
    "//*[contains(@id, 'ctlBodyPane_ctl')][contains(@id, 'wner') or contains(@id, '_lst') or contains(@id, '_rpt')"
    " or contains(@id, 'Address') or contains(@id, 'lblCitySt')]"
)
_MODULES = Path("//section[contains(@id, 'ctlBodyPane')]")
_TITLE = Path(".//header//div[contains(@class, 'title')]")
_CONTENT = Path("./div[contains(@class, 'module-content')]")
# `…_rptOwner_ctl01` is the second of several, `…_ctl01` all there is in the module.
_PERSON = re.compile(r"ctlBodyPane_ctl\d+_ctl\d+(?:_(?:rpt|lst)(?P<list>[A-Za-z]+)_ctl\d+)?_(?P<part>\w+)$")
_NAME = re.compile(r".*(?:wner|Deed).*_l(?:bl|nk)Search|.*OwnerName\d?_lblSuppressed|lnkDeedName")
_ADDRESS = re.compile(r".*wnerAddress|l(?:bl|nk)Address\d?|lblCitySt(?:ate)?Zip")
_OF_OTHERS = re.compile(r"January|Previous|Prior|Title|Multi")
_NO_OWNER = re.compile(r"mail|contract|prior|previous|agent|lender|escrow|mortgage|tax bill|bill to", re.I)
_PAYER = re.compile(r"tax ?payer|payer", re.I)


@dataclass
class _Person:
    kind: str
    names: dict[str, None] = field(default_factory=dict)
    address: dict[str, None] = field(default_factory=dict)
    """Both in the order of the page, each text once."""

    @property
    def rank(self) -> int:
        """An owner; a taxpayer, where no owner is named; somebody else."""
        return 2 if _NO_OWNER.search(self.kind) else 1 if _PAYER.search(self.kind) else 0


def take_owner(record: Record, root: Any) -> None:
    """Names, and the address of the first owner who has one, else where the bill is mailed."""
    people_shown = _people(root)
    best = min((person.rank for person in people_shown if person.names), default=2)
    owners = [person for person in people_shown if person.names and person.rank == best < 2]
    if not owners:
        if not any(person.names for person in people_shown):
            _take_module(record, root)
        return
    names = list(dict.fromkeys(name for owner in owners for name in owner.names))
    addresses = [person.address for person in (*owners, *people_shown) if person.address]
    record |= {"owner_name": names[0], "owner_names": names}
    record["owner_address"] = clean.text(" ".join(addresses[0])) if addresses else None


def _people(root: Any) -> list[_Person]:
    found: dict[str, _Person] = {}
    for element in _IDS(root):
        place = _PERSON.match(element.get("id"))
        if place is None or _OF_OTHERS.search(place["part"]):
            continue
        person = found.setdefault(element.get("id")[: place.start("part")], _Person(place["list"] or ""))
        if place["part"] == "lblOwnerType":
            person.kind = text_of(element) or person.kind
        elif _NAME.fullmatch(place["part"]):
            person.names |= dict.fromkeys(lines_of(element))
        elif _ADDRESS.fullmatch(place["part"]):
            _take_lines(person, [line for line in lines_of(element) if len(line) > 1])
    return list(found.values())


def _take_lines(person: _Person, lines: list[str]) -> None:
    """An address can begin with a co-owner."""
    start = (
        0 if person.address else next((n for n, line in enumerate(lines) if people.is_address_line(line)), len(lines))
    )
    person.names |= dict.fromkeys(line for line in lines[:start] if people.is_owner(line))
    person.address |= dict.fromkeys(lines[start:])


def _take_module(record: Record, root: Any) -> None:
    """Counties with other ids still have a module of owners, names above address, perhaps below a heading."""
    for module in _MODULES(root):
        title = " ".join(text_of(element) for element in _TITLE(module)).lower()
        if "owner" not in title or "radius" in title or record.get("owner_name"):
            continue
        for heading, lines in _blocks([line for part in _CONTENT(module) for line in lines_of(part)]):
            names, address = people.owner_and_address(lines)
            if names and not _NO_OWNER.search(heading):
                record |= {"owner_name": names[0], "owner_names": names}
                record["owner_address"] = people.mailing_address(address)
                break


def _blocks(lines: list[str]) -> list[tuple[str, list[str]]]:
    """The lines below each heading (`Deed Holder`, `Mailing Address`)."""
    blocks: list[tuple[str, list[str]]] = [("", [])]
    for line in lines:
        if is_known(line) or line.lower().endswith(" holder"):
            blocks.append((line, []))
        else:
            blocks[-1][1].append(line)
    return blocks
