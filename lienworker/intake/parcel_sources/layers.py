"""Addresses and columns that a file names, checked: both become part of an address that is fetched."""

from __future__ import annotations

import re
from typing import Any

from lienworker.intake.rows import BadRowError
from lienworker.intake.urls import UrlChecker

LAYER = re.compile(r"/(?:FeatureServer|MapServer)/\d+$", re.I)
#: A column as ArcGIS spells it, with the database and the table before it where the layer is joined.
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_#$]{0,127}(?:\.[A-Za-z_][A-Za-z0-9_#$]{0,127}){0,4}")
#: Numbers that a service gives its features itself: nobody knows a parcel by them, and they change.
_OBJECT_IDS = frozenset({"objectid", "fid", "oid", "esrioid", "parceloid", "objectid1", "gisobjid"})
_checked = UrlChecker()


def layer_address(url: Any) -> str:
    """Return the address of a layer without a query and a slash at its end; raise BadRowError for anything else."""
    address = web_address(url).partition("?")[0].rstrip("/")
    if not LAYER.search(address):
        raise BadRowError("bad_source", f"{address[:200]} is no layer of an ArcGIS service (.../FeatureServer/0)")
    return address


def web_address(url: Any) -> str:
    checked = _checked(url)
    if checked is None:
        raise BadRowError("bad_source", "it has no address")
    return checked


def id_column(name: Any) -> str | None:
    """Return the column that a parcel is asked for by; None where what is given is none, or counts objects only."""
    if not isinstance(name, str) or not _COLUMN.fullmatch(name.strip()):
        return None
    column = name.strip()
    last = column.rpartition(".")[2]
    return None if re.sub(r"[^a-z0-9]", "", last.lower()) in _OBJECT_IDS else column
