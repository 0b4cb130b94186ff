"""Two runs over the same pages compared: fields gained, lost and changed, with samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from dataclasses import field as made_by
from typing import Any

from lienworker.errors import InputError
from lienworker.store.runs import RunPage, pages_of, run, runs

_SAMPLES = 5
_LONGEST = 300


@dataclass(slots=True)
class FieldChanges:
    """One field of one platform, over all pages that both runs saw."""

    platform: str
    field: str
    gained: int = 0
    lost: int = 0
    changed: int = 0
    samples: list[dict[str, Any]] = made_by(default_factory=list)

    def count(self, kind: str, task_id: str, parcel_id: str | None, before: Any, after: Any) -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        if sum(sample["kind"] == kind for sample in self.samples) < _SAMPLES:
            cut = {"before": _cut(before), "after": _cut(after)}
            self.samples.append({"kind": kind, "task_id": task_id, "parcel_id": parcel_id, **cut})


def compare(run_a: int, run_b: int) -> dict[str, Any]:
    """Return what changed from the first run to the second. Pages that only one run saw are counted, not compared."""
    about = {"a": _known(run_a), "b": _known(run_b)}
    counts = {"pages": 0, "same": 0, "only_a": 0, "only_b": 0}
    records = FieldChanges("", "record")
    fields: dict[tuple[str, str], FieldChanges] = {}
    for before, after in _side_by_side(pages_of(run_a), pages_of(run_b)):
        if before is None or after is None:
            counts["only_a" if after is None else "only_b"] += 1
            continue
        counts["pages"] += 1
        if before.data == after.data and before.reason == after.reason:
            counts["same"] += 1
        elif before.data is None or after.data is None:
            _compare_outcomes(records, before, after)
        else:
            _compare_fields(fields, before, after)
    found = sorted(fields.values(), key=lambda item: (-item.lost, -item.changed, -item.gained, item.field))
    return {**about, **counts, "records": asdict(records), "fields": [asdict(item) for item in found]}


def _known(run_id: int) -> dict[str, Any]:
    found = run(run_id)
    if found is None:
        there = ", ".join(str(item["id"]) for item in runs()) or "none yet; `lienworker reparse` makes one"
        raise InputError(f"there is no run {run_id}; the runs are {there}.")
    return found


def _side_by_side(
    first: Iterator[RunPage], second: Iterator[RunPage]
) -> Iterator[tuple[RunPage | None, RunPage | None]]:
    """Yield the pages of both runs in pairs. Both are in the order of their tasks, so neither has to be in memory."""
    a, b = next(first, None), next(second, None)
    while a is not None or b is not None:
        if b is None or (a is not None and a.task_id < b.task_id):
            yield a, None
            a = next(first, None)
        elif a is None or b.task_id < a.task_id:
            yield None, b
            b = next(second, None)
        else:
            yield a, b
            a, b = next(first, None), next(second, None)


def _compare_outcomes(records: FieldChanges, before: RunPage, after: RunPage) -> None:
    """Count a page that yielded a record in one run only, or that failed for another reason."""
    kind = "changed" if before.data is after.data is None else "gained" if before.data is None else "lost"
    words = [item.reason or "a record" for item in (before, after)]
    records.count(kind, after.task_id, _parcel(after) or _parcel(before), *words)


def _compare_fields(fields: dict[tuple[str, str], FieldChanges], before: RunPage, after: RunPage) -> None:
    assert before.data is not None
    assert after.data is not None
    for name in before.data.keys() | after.data.keys():
        old, new = before.data.get(name), after.data.get(name)
        if old == new:
            continue
        key = (after.platform or "", name)
        changes = fields.setdefault(key, FieldChanges(*key))
        kind = "gained" if old is None else "lost" if new is None else "changed"
        changes.count(kind, after.task_id, _parcel(after), old, new)


def _parcel(page: RunPage) -> str | None:
    return page.parcel_id or (page.data or {}).get("parcel_id")


def _cut(value: Any) -> Any:
    text = str(value)
    return value if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
