"""Numbers of an .xlsx sheet whose format shows more than the number: zeros in front, hyphens between the digits.

A parcel id that somebody typed as 00123 is stored as the number 123 with the format `00000`; one typed as 12-34-567
may be 1234567 with `00-00-000`. The readers of workbooks return the number alone, and a wrong id is worse than none.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from typing import Any

from lxml import etree  # type: ignore[import-untyped]

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_LINK = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
#: Zeros for digits; hyphens, spaces and slashes as they are, other characters behind a backslash or in quotes.
_MASK = re.compile(r'(?:0|[-/ ()]|\\.|"[^"]*")+')
_PIECE = re.compile(r'0|[-/ ()]|\\.|"[^"]*"')
_CELL = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")


def shown_numbers(body: bytes, sheet: str) -> dict[tuple[int, int], str]:
    """Return the texts of such cells by row and column, counted from 0; nothing for other kinds of workbooks."""
    if not body.startswith(b"PK"):
        return {}
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        if "xl/styles.xml" not in archive.namelist():
            return {}
        masks = _masks(_tree(archive, "xl/styles.xml"))
        path = _sheet_path(archive, sheet) if masks else None
        return _masked_cells(archive, path, masks) if path else {}


def _tree(archive: zipfile.ZipFile, member: str) -> Any:
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    return etree.fromstring(archive.read(member), parser)


def _masks(styles: Any) -> dict[str, str]:
    """Return the masks by the number that cells name them with."""
    codes = {node.get("numFmtId"): node.get("formatCode") or "" for node in styles.iter(f"{_MAIN}numFmt")}
    table = styles.find(f"{_MAIN}cellXfs")
    uses = [] if table is None else [codes.get(node.get("numFmtId"), "") for node in table.iter(f"{_MAIN}xf")]
    return {str(place): code for place, code in enumerate(uses) if code.count("0") > 1 and _MASK.fullmatch(code)}


def _sheet_path(archive: zipfile.ZipFile, sheet: str) -> str | None:
    book = _tree(archive, "xl/workbook.xml")
    link = next((node.get(_LINK) for node in book.iter(f"{_MAIN}sheet") if node.get("name") == sheet), None)
    relations = _tree(archive, "xl/_rels/workbook.xml.rels")
    target = next((node.get("Target") for node in relations if node.get("Id") == link), None)
    return posixpath.normpath(posixpath.join("/xl", target)).lstrip("/") if target else None


def _masked_cells(archive: zipfile.ZipFile, path: str, masks: dict[str, str]) -> dict[tuple[int, int], str]:
    found: dict[tuple[int, int], str] = {}
    with archive.open(path) as stream:
        for _, cell in etree.iterparse(stream, tag=f"{_MAIN}c", resolve_entities=False, no_network=True):
            mask = masks.get(cell.get("s", ""))
            if mask and cell.get("t") in (None, "n") and (place := _CELL.fullmatch(cell.get("r") or "")):
                value = cell.findtext(f"{_MAIN}v") or ""
                if value.isdecimal():
                    found[int(place[2]) - 1, _column(place[1])] = apply_mask(value, mask)
            cell.clear()
    return found


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def apply_mask(digits: str, mask: str) -> str:
    """Fill the zeros of the mask with the digits, from the right; digits that are left over stand in front."""
    pieces = _PIECE.findall(mask)
    room = pieces.count("0")
    filling = iter(digits.zfill(room)[-room:])
    over = digits[:-room] if len(digits) > room else ""
    shown = "".join(next(filling) if piece == "0" else piece.strip('"').lstrip("\\") for piece in pieces)
    return over + shown
