"""The parcels of a source's page: made of its rows, and stored as results that name the page."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any

from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import storable
from lienworker.outbox import transitions
from lienworker.outbox.outcomes import held_or_waiting, parcel_key
from lienworker.outbox.rows import NEVER_DUE, Claimed, Entry, raw_row_of
from lienworker.outbox.states import State, Topic
from lienworker.platforms import Record
from lienworker.platforms.core.doubts import doubts_of
from lienworker.platforms.harvest import KINDS, Plan, Reader, uses_of
from lienworker.platforms.harvest.plan import VERSION
from lienworker.store import tasks
from lienworker.store.harvests import HarvestRecord
from lienworker.store.pages import PageRecord
from lienworker.store.results import NewResult, save_result
from lienworker.store.tasks import DEFAULT_PRIORITY, NewTask, Source

_LONGEST_ID = 255
#: Ids that can be part of a task's id as they are.
_PLAIN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parcel:
    """A parcel as a page has it."""

    task_id: str
    index: int
    parcel_id: str
    county: str
    url: str
    data: Record
    doubts: Sequence[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row of a page that is no parcel, and why."""

    index: int
    reason: str


def parcel_task_id(platform: str, state: str, county: str, parcel_id: str) -> str:
    """Return the id of a harvested parcel's task: by its key, so that the same parcel again is a refresh.

    It is no hash of all of the key: the parcels of a page are neighbors then in every index that has the id, and a
    million of them cost no more each than the first thousand.
    """
    if _PLAIN_ID.fullmatch(parcel_id):
        return f"k-{_place_mark(platform, state, county)}-{parcel_id}"
    odd = hashlib.blake2b(parcel_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"k-{_place_mark(platform, state, county)}-~{odd}"


@lru_cache(maxsize=4096)
def _place_mark(platform: str, state: str, county: str) -> str:
    return hashlib.blake2b(json.dumps((platform, state, county)).encode(), digest_size=8).hexdigest()


class PageReader:
    """Makes parcels of the rows of a page."""

    def __init__(self, harvest: HarvestRecord, plan: Plan, day: date) -> None:
        self._harvest = harvest
        self._plan = plan
        self._kind = KINDS[harvest.kind]
        self._reader = Reader(uses_of(plan.columns, plan.chosen), plan.dates)
        self._day = day

    def parcel(self, index: int, row: Any) -> Parcel | Rejected:
        """Return what a row is; one that cannot be read costs no other."""
        try:
            return self._parcel(index, row)
        except Exception as problem:
            logger.warning("row %d of harvest %d cannot be read", index, self._harvest.id, exc_info=True)
            return Rejected(index, f"it cannot be read ({type(problem).__name__})")

    def _parcel(self, index: int, row: Any) -> Parcel | Rejected:
        record = self._reader.record(self._kind.values(self._plan, row))
        record |= self._kind.geometry(self._plan, row)
        parcel_id = record.get("parcel_id")
        if not parcel_id:
            return Rejected(index, "it has no parcel id")
        parcel_id = storable(parcel_id)
        if len(parcel_id) > _LONGEST_ID:
            return Rejected(index, f"its parcel id has more than {_LONGEST_ID} characters")
        said = record.pop("county", None)
        county = self._harvest.county or storable(said or "")
        if not county:
            return Rejected(index, "nothing says its county")
        key = (self._harvest.platform, self._harvest.state, county, parcel_id)
        doubts = [doubt._asdict() for doubt in doubts_of(record, self._day)]
        url = storable(self._kind.address(self._plan, row, parcel_id))
        return Parcel(parcel_task_id(*key), index, parcel_id, county, url, record, doubts)


@dataclass(frozen=True, slots=True)
class PageStore:
    """Stores parcels as results that name their page. What it does is part of a larger transaction."""

    row: Claimed
    page: PageRecord
    harvest: HarvestRecord

    def deliver(self, made: Sequence[tuple[Parcel, int]]) -> None:
        """Store results, each with its generation, and add the rows that deliver them."""
        if not made:
            return
        raw_id, raw_state = self._raw_row()
        state, reason = held_or_waiting()
        due_at = now_ms() if raw_state == State.DELIVERED else NEVER_DUE
        about = (self.harvest.platform, self.harvest.state)
        save_result(
            *(
                self.result(
                    parcel.task_id,
                    parcel.data,
                    generation=generation,
                    parcel_id=parcel.parcel_id,
                    county=parcel.county,
                    doubts=parcel.doubts,
                    source_task=self.row.task_id,
                    source_index=parcel.index,
                )
                for parcel, generation in made
            )
        )
        transitions.add(
            [
                Entry(
                    Topic.UPLOAD_RESULT, parcel.task_id, generation, self.row.queue, self.row.priority, state=state,
                    due_at=due_at, reason=reason, parcel_key=parcel_key(*about, parcel.county, parcel.parcel_id),
                    raw_id=raw_id,
                )
                for parcel, generation in made
            ]
        )  # fmt: skip

    def _raw_row(self) -> tuple[int, str]:
        """Return the row that uploads the page's raw file; one that was purged is added again, and sent once more."""
        found = raw_row_of(self.row.task_id, self.row.generation)
        if found is None:
            state, reason = held_or_waiting()
            step = (self.row.task_id, self.row.generation, self.row.queue, self.row.priority)
            transitions.add([Entry(Topic.UPLOAD_RAW, *step, state=state, reason=reason)])
            found = raw_row_of(self.row.task_id, self.row.generation)
        assert found is not None
        return found

    def result(self, task_id: str, data: Record, **about: Any) -> NewResult:
        """Return a result of the page; `about` is what is its own."""
        return NewResult(
            task_id=task_id,
            platform=self.harvest.platform,
            state=self.harvest.state,
            data=data,
            json_path=None,
            html_path=self.page.path,
            raw_sha256=self.page.sha256,
            fetched_at=self.page.fetched_at,
            parser_version=f"{self.harvest.platform}/harvest-{VERSION}",
            scraped_at=rfc3339(),
            parse_duration_ms=0,
            **about,
        )

    def add_tasks(self, parcels: Sequence[Parcel]) -> None:
        """Add the tasks of parcels that are new; they are completed."""
        tasks.insert_completed([self._task(parcel) for parcel in parcels])

    def _task(self, parcel: Parcel) -> NewTask:
        return NewTask(
            source=Source.HARVEST,
            url=parcel.url,
            platform=self.harvest.platform,
            state=self.harvest.state,
            county=parcel.county,
            parcel_id=parcel.parcel_id,
            priority=DEFAULT_PRIORITY,
            task_id=parcel.task_id,
        )
