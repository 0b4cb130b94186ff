"""How much of what a reader sees in a page is in its record, and what in the record is wrong.

A folder of pages has an `expected.json` beside them: a list of `{"file", "place", "expected"}`, where `expected` says
what a reader sees, under a canonical name or under one that people use (`owner`, `situs`, `just_2023`). A text is
looked for as a reader would: spaces folded, an amount as a number, a date as a date. Any other value has to be there
as it is. Of the rest, `platform` is checked where it names one, `reason` is why the page has no record, and `url` is
where it came from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from lienworker.errors import InputError, PageError
from lienworker.platforms.catalog.guarded import parse_guarded
from lienworker.platforms.catalog.registry import Registry
from lienworker.platforms.core import clean
from lienworker.platforms.core.base import CANONICAL, Page, Record, Target
from lienworker.platforms.core.doubts import Doubt, doubts_of

FOUND, MISSING, WRONG = "found", "missing", "wrong"
_COLUMNS = ("land", "building", "market", "assessed", "taxable")
# What people call a field; where the record has that field, it must say the same.
_MEANT = {
    **dict.fromkeys(CANONICAL[: CANONICAL.index("values")]),
    **dict.fromkeys(("tax_year", "tax_amount", "total_due", "tax_status")),
    **dict.fromkeys(
        ("parid", "pin", "pid", "folio", "strap", "prop_id", "parcel", "account", "geoparcel", "tax_map"), "parcel_id"
    ),
    "owner": "owner_name",
    "mailing_name": "owner_name",
    "situs": "property_address",
    "mailing": "owner_address",
    "legal": "legal_description",
    "living_area": "building_area_sqft",
    **{name: f"{name}_value" for name in _COLUMNS},
    **dict.fromkeys(("just", "just_value", "total_just", "appraisal", "appraised", "market_total"), "market_value"),
    **dict.fromkeys(("assessment", "assessed_total"), "assessed_value"),
    **dict.fromkeys(("due", "balance_due"), "total_due"),
}
_OF_YEAR = re.compile(r"(?P<name>[a-z_]+?)_(?P<year>20\d\d)")
_ONE_OF = re.compile(r"[a-z_]+?(?=[2-9]$)")
_PLACE = re.compile(r"(?P<state>[A-Z]{2})\b[ /]*(?P<county>[^(:/]*)")


@dataclass(frozen=True)
class Case:
    """A page, and what a reader sees in it."""

    file: str
    page: Page
    target: Target
    expected: dict[str, Any]
    platform: str = ""
    reason: str = ""
    """Why the page has no record, where it should have none."""


@dataclass(frozen=True)
class Finding:
    """One value that a reader sees, and what the record has of it."""

    file: str
    platform: str
    field: str
    expected: Any
    outcome: str
    shown: Any = None
    """What the record has in its place."""
    named: bool | None = None
    """Whether it stands under its canonical name; None where it has none of its own."""


@dataclass(frozen=True)
class Score:
    """The findings of some pages, why others have no record, and what looks wrong in those that have one."""

    findings: list[Finding]
    refused: dict[str, str] = field(default_factory=dict)
    doubts: dict[str, list[Doubt]] = field(default_factory=dict)

    def count(self, outcome: str) -> int:
        return sum(finding.outcome == outcome for finding in self.findings)

    def lost(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.outcome != FOUND]

    @property
    def recall(self) -> float:
        """The share of the values that is anywhere in the records."""
        return self.count(FOUND) / len(self.findings) if self.findings else 1.0

    @property
    def named(self) -> float:
        """The share of the values with a canonical name that stands under it."""
        named = [finding.named for finding in self.findings if finding.named is not None]
        return sum(named) / len(named) if named else 1.0

    def by_platform(self) -> dict[str, Score]:
        return self._grouped(lambda finding: finding.platform)

    def by_field(self) -> dict[str, Score]:
        return self._grouped(lambda finding: _meaning(finding.field)[0] or finding.field)

    def _grouped(self, key: Callable[[Finding], str]) -> dict[str, Score]:
        groups: dict[str, list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault(key(finding), []).append(finding)
        return {name: Score(groups[name]) for name in sorted(groups)}


def read_cases(folder: Path) -> Iterator[Case]:
    """The pages of a folder with their expectations. Raises InputError where one cannot be read."""
    source = folder / "expected.json"
    try:
        for entry in json.loads(source.read_text(encoding="utf-8")):
            file = entry["file"]
            place = _PLACE.match(entry.get("place", ""))
            target = Target(state=place["state"], county=place["county"].strip()) if place else Target()
            page = Page(entry.get("url", ""), (folder / file).read_bytes())
            yield Case(file, page, target, entry["expected"], entry.get("platform", ""), entry.get("reason", ""))
    except OSError as problem:
        raise InputError(f"{problem.filename} cannot be read: {problem.strerror}.") from None
    except (ValueError, TypeError, KeyError) as problem:
        raise InputError(
            f'{source} is no list of {{"file": …, "expected": {{…}}}}: {type(problem).__name__}: {problem}.'
        ) from None


def score(registry: Registry, cases: Iterable[Case], today: date, platform: str | None = None) -> Score:
    """What the record of each page has of its expectations; with `platform` as that one reads it."""
    findings: list[Finding] = []
    refused: dict[str, str] = {}
    doubts: dict[str, list[Doubt]] = {}
    for case in cases:
        target = Target(platform, case.target.state, case.target.county)
        try:
            parsed = parse_guarded(registry, case.page, target)
        except PageError as problem:
            refused[case.file] = problem.reason
            findings += _without_a_record(case, problem.reason, platform or registry.choose(case.page, target).name)
            continue
        finally:
            case.page.forget()
        if not platform and case.platform in registry.names():
            outcome = FOUND if parsed.platform == case.platform else WRONG
            findings.append(Finding(case.file, case.platform, "platform", case.platform, outcome, parsed.platform))
        findings += [_finding(case, parsed.platform, parsed.record, name) for name in case.expected]
        if found := doubts_of(parsed.record, today):
            doubts[case.file] = found
    return Score(findings, refused, doubts)


def _without_a_record(case: Case, reason: str, platform: str) -> list[Finding]:
    """Right where the case says so, or where it names nothing that a parcel has (a form, an empty popup)."""
    if case.reason:
        outcome = FOUND if reason == case.reason else WRONG
        return [Finding(case.file, platform, "reason", case.reason, outcome, reason)]
    if not any(_meaning(name)[0] for name in case.expected):
        return []
    return [
        Finding(
            case.file, platform, name, value, MISSING, f"(no record: {reason})", False if _meaning(name)[0] else None
        )
        for name, value in case.expected.items()
    ]


def _finding(case: Case, platform: str, record: Record, name: str) -> Finding:
    value = case.expected[name]
    if not isinstance(value, str):
        outcome, shown = _compare_exactly(record, name, value)
        return Finding(case.file, platform, name, value, outcome, shown)
    field, year = _meaning(name)
    values, is_whole = _shown_as(record, field, year)
    named = any(has(item, value) for item in values)
    if values and is_whole and not named:
        return Finding(case.file, platform, name, value, WRONG, values[0], named)
    outcome = FOUND if named or has(record, value) else MISSING
    return Finding(case.file, platform, name, value, outcome, named=named if field else None)


def _compare_exactly(record: Record, name: str, value: Any) -> tuple[str, Any]:
    """As it is; of each item of a list of parcels, what is said of it."""
    shown = record.get(name)
    if name == "parcels" and shown is not None and len(shown) == len(value):
        shown = [{name: item.get(name) for name in wanted} for item, wanted in zip(shown, value, strict=True)]
    if shown == value:
        return FOUND, None
    return (MISSING if shown is None else WRONG), shown


def _meaning(name: str) -> tuple[str, int | None]:
    """The canonical field that a name stands for, and of which year; `owner2` is the owner of another item."""
    if name in _MEANT:
        return _MEANT[name] or name, None
    if (found := _OF_YEAR.fullmatch(name)) and (field := _MEANT.get(found["name"], "")):
        return field, int(found["year"])
    if (found := _ONE_OF.match(name)) and found[0] in _MEANT:
        return _MEANT[found[0]] or found[0], None
    return "", None


def _shown_as(record: Record, field: str, year: int | None) -> tuple[list[Any], bool]:
    """What the record says the field is, once for each item of a list; and whether every item says it."""
    if year:
        column = field.removesuffix("_value")
        entries = [entry for entry in record.get("values", ()) if entry.get("year") == year and column in entry]
        return [entry[column] for entry in entries], True
    items = record.get("parcels") or [record]
    shown = [_with_others(item, field) for item in items if field in item]
    return shown, len(shown) == len(items)


def _with_others(item: Record, field: str) -> Any:
    """An id has its namesakes beside it, an owner the other owners."""
    others = {"parcel_id": "alternate_ids", "owner_name": "owner_names"}.get(field, "")
    return [item[field], item[others]] if others in item else item[field]


def has(record: Any, value: str) -> bool:
    """Whether a value that a reader sees is there: as text with spaces folded, or as an amount, or as a date."""
    amount, date, text = clean.money(value), clean.iso_date(value), fold(value)
    for leaf in leaves(record):
        if isinstance(leaf, str) and (text in fold(leaf) or (date and leaf == date)):
            return True
        if amount is not None and isinstance(leaf, int | float) and not isinstance(leaf, bool) and leaf == amount:
            return True
    return False


def leaves(value: Any) -> Iterator[Any]:
    """All that is no dict and no list, at every depth."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves(item)
    else:
        yield value


def fold(value: object) -> str:
    return "".join(str(value).split()).lower()
