"""Asking a layer: for one parcel, and what it is (`…/FeatureServer/0?f=json`): by which column it can be asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from lienworker.errors import PageError
from lienworker.platforms.core.base import Page, Target
from lienworker.platforms.reading.labels import ID_RANK, normalise
from lienworker.platforms.rules import fill
from lienworker.platforms.vendors.arcgis.names import NAMES, spelled

_TEMPLATE = "{base_url}/query?where={field}%3D%27{parcel_id}%27&outFields=*&returnGeometry=false&f=json"
#: For a column of numbers, which some services refuse to compare with a text.
_NUMBER_TEMPLATE = _TEMPLATE.replace("%27", "")
_NUMBERS = frozenset(
    f"esriFieldType{name}" for name in ("Integer", "SmallInteger", "BigInteger", "Double", "Single", "OID")
)


def query_url(target: Target) -> str | None:
    """Return the address that asks for one parcel; None where the target does not say enough."""
    parcel_id = target.parcel_id or ""
    if target.extra.get("field_type") == "number" and parcel_id.isascii() and parcel_id.isdecimal():
        return fill(_NUMBER_TEMPLATE, target)
    # An apostrophe ends the text of a query; doubled, it is part of it.
    return fill(_TEMPLATE, replace(target, parcel_id=parcel_id.replace("'", "''")))


def describe_url(layer: str) -> str:
    return f"{layer}?f=json"


def learn(page: Page, field: str | None) -> dict[str, str]:
    """Return the settings to ask the layer by: its column of parcel ids and what kind of column that is.

    `field` is the column that somebody named; the layer's own spelling of it counts. Raises PageError where the layer
    cannot be asked for a parcel.
    """
    types = _columns(page.json())
    column = _spelled_here(field, types) if field else None
    column = column or best_id_column(types)
    if column is None:
        named = f" (not even {field})" if field else ""
        raise PageError("no_id_column", f"none of its {len(types)} columns is known to have parcel ids{named}")
    return {"field": column, "field_type": "number" if types[column] in _NUMBERS else "text"}


def _columns(about: Any) -> dict[str, str]:
    """Return the types of the columns by their names."""
    told: Mapping[str, Any] = about if isinstance(about, dict) else {}
    error = told.get("error")
    if isinstance(error, dict):
        raise PageError("refused", f"the service answered: {error.get('message') or error.get('code')}"[:200])
    capabilities = told.get("capabilities")
    if isinstance(capabilities, str) and capabilities and "query" not in capabilities.lower():
        raise PageError("refused", f"the layer cannot be queried; it allows {capabilities}"[:200])
    fields = told.get("fields")
    found = [field for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []
    types = {str(field["name"]): str(field.get("type")) for field in found if field.get("name")}
    if not types:
        raise PageError("not_a_layer", "the answer is not the description of a layer: it has no columns")
    return types


def _spelled_here(field: str, columns: Iterable[str]) -> str | None:
    """Return the layer's spelling of a column: in other letters, or with the table that it is joined from."""
    wanted = field.lower()
    last = wanted.rpartition(".")[2]
    names = list(columns)
    same = [name for name in names if name.lower() == wanted]
    alike = [name for name in names if name.lower().rpartition(".")[2] == last]
    return same[0] if same else alike[0] if len(alike) == 1 else None


def best_id_column(columns: Iterable[str]) -> str | None:
    """Return the column that surely has the parcel ids, by its name."""
    ranked = [(rank, name) for name in columns if (rank := _rank(name)) is not None]
    return min(ranked)[1] if ranked else None


def _rank(name: str) -> int | None:
    word = normalise(spelled(name))
    return ID_RANK.get(word, len(ID_RANK) if NAMES.get(word) == "parcel_id" else None)
