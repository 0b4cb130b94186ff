"""County services that answer with JSON: the base of their platforms, and looking into what they answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from lienworker.errors import PageError
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import Page, Record, Target
from lienworker.platforms.reading.fields import fields_of
from lienworker.platforms.reading.formats import json_reading
from lienworker.platforms.rules import RulePlatform

Facts = dict[str, Any]


class JsonPlatform(RulePlatform):
    """A platform whose pages are JSON; `read` makes the record of an answer."""

    def recognises(self, page: Page) -> bool:
        return page.is_json and super().recognises(page)

    def parse(self, page: Page, target: Target) -> Record:
        if not page.is_json:
            raise PageError("not_a_parcel", f"{self.name} answers with JSON, and this is none")
        return self.checked(self.read(page.json()))

    @abstractmethod
    def read(self, data: Any) -> Record:
        """The record of what the service answered."""


def inside(data: Any, *names: str) -> Facts:
    """The object that the names lead to; an empty one where there is none."""
    for name in names:
        data = data.get(name) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def objects(data: Any, *names: str) -> list[Facts]:
    """The objects of the list that the names lead to."""
    found = inside(data, *names[:-1]).get(names[-1]) if names else data
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def shown_fields(*parts: Facts) -> dict[str, str]:
    """Every name and its scalar, as the service wrote them."""
    return fields_of(pair for part in parts for pair in json_reading(part)[0])


def owners(names: Iterable[object]) -> Record:
    """The owners that are named, the first of them as the owner."""
    found = [name for item in names if (name := clean.known(item))]
    return {"owner_name": found[0] if found else None, "owner_names": found}


def positive(value: object) -> float | None:
    """An amount; these services write 0 or -1 for an area or a number of rooms that they do not know."""
    amount = clean.number(value)
    return amount if amount and amount > 0 else None
