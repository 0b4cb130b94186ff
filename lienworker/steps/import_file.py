"""The importer: rows of a file to tasks, in transactions of a given size; each bad row is rejected with its reason."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from lienworker.db.clock import rfc3339
from lienworker.db.database import current_folder, write
from lienworker.errors import InputError, PageError
from lienworker.hostnames import host_of
from lienworker.intake.fields import resolve_mapping
from lienworker.intake.read import header_of, read_parcels
from lienworker.intake.rows import Defaults, Layout, ParcelRow, Reject, RejectsFile
from lienworker.outbox.pacing import Politeness
from lienworker.outbox.registration import Registered, register_in_transaction
from lienworker.places import is_fips
from lienworker.platforms import Registry, Target
from lienworker.platforms.catalog.registry import FALLBACK
from lienworker.steps.parcel_sources import KnownSources
from lienworker.store.imports import finish_import, record_progress, running_import
from lienworker.store.pending import make_again
from lienworker.store.tasks import DEFAULT_PRIORITY, NewTask
from lienworker.text_safety import plural

DEFAULT_BATCH = 100
_MOST_HOSTS = 10_000
#: Characters of further columns after which a batch is stored, however few its rows: as objects they take up to 25
#: times as much memory, and a row may have a megabyte of them.
_HEAVY = 2_000_000


@dataclass(slots=True)
class Tally:
    """What an import has done so far."""

    rows: int = 0
    added: int = 0
    known: int = 0
    refreshed: int = 0
    rejected: int = 0
    #: Known tasks that are urgent now, and known tasks that learned a state, a county or a parcel id.
    lifted: int = 0
    filled: int = 0
    #: Results that were parked for want of these, and go out now.
    released: int = 0
    #: Rows without a state or a county whose address does not tell it: see `warning`.
    placeless: int = 0
    urgent: int = 0

    def count(self, registered: Registered) -> None:
        self.added += registered.added
        self.known += registered.known
        self.refreshed += registered.refreshed
        self.lifted += registered.lifted
        self.filled += len(registered.filled.task_ids)
        self.released += registered.filled.released

    def in_words(self, what: str = "row") -> str:
        parts = [f"{self.added:,} new", f"{self.known:,} already known"]
        parts += [f"{self.refreshed:,} to be refreshed"] if self.refreshed else []
        parts += [f"{self.rejected:,} rejected"] if self.rejected else []
        parts += [f"{self.lifted:,} moved to the queue urgent"] if self.lifted else []
        parts += [f"{self.filled:,} learned their state, county or parcel id"] if self.filled else []
        parts += [f"{self.released:,} parked results can be delivered now"] if self.released else []
        return f"{plural(self.rows, what)}: {', '.join(parts)}; {self._queues()}"

    def _queues(self) -> str:
        good = self.rows - self.rejected
        if self.urgent in (0, good):
            return f"queue {'urgent' if self.urgent else 'default'}"
        return f"{self.urgent:,} in the queue urgent, {good - self.urgent:,} in default"

    def warning(self) -> str | None:
        """Say that results may come to nothing for want of a state and a county, and what to do about it."""
        if not self.placeless:
            return None
        has = "has" if self.placeless == 1 else "have"
        return (
            f"{self.placeless:,} of {plural(self.rows, 'row')} {has} no state or no county, and the address does not"
            " tell: a Gateway takes no such result, unless its page says where the parcel is."
        )


@dataclass(frozen=True, slots=True)
class How:
    """How to import a file."""

    defaults: Defaults = field(default_factory=Defaults)
    layout: Layout = field(default_factory=Layout)
    batch_size: int = DEFAULT_BATCH
    refresh: bool = False
    strict: bool = False
    mapping: Mapping[str, str] = field(default_factory=dict)
    #: Until when the tasks are to be done, ms; what for; and whether what is not done by then is dropped.
    due_by: int | None = None
    auction: str | None = None
    drop_after: bool = False

    def options(self) -> dict[str, Any]:
        """Return what was asked for, by name; what was left as it is is not in it."""
        asked = {**asdict(self.defaults), **asdict(self.layout), "refresh": self.refresh, "strict": self.strict}
        asked["batch_size"] = self.batch_size if self.batch_size != DEFAULT_BATCH else None
        return {name: value for name, value in asked.items() if value}


class BatchImport(ABC):
    """One import in transactions. `tally` is accurate at any moment, also after an error."""

    unit: str

    def __init__(self, name: str, how: How) -> None:
        self.name = name
        self._how = how
        self.tally = Tally()
        self.import_id: int | None = None

    def run(self, rejects: RejectsFile, progress: Callable[[Tally], None] = lambda tally: None) -> Tally:
        """Store the tasks. What was committed before an error stays; the same file again adds the rest."""
        batches = self._batches(rejects)
        first = next(batches, [])  # a file that cannot be read at all leaves no trace
        how = self._how
        options = {**how.options(), "mapping": self._mapping()}
        with running_import(self.name, options, how.due_by, how.auction) as self.import_id:
            status = "stopped"
            try:
                self._store(first)
                for batch in batches:
                    self._store(batch)
                    progress(self.tally)
                status = "done"
            finally:
                rejects.close()
                finish_import(self.import_id, status, str(rejects.path) if rejects.count else None)
        return self.tally

    def _mapping(self) -> Mapping[str, str]:
        """Return which column is taken for which of our fields, where a file has columns."""
        return {}

    @abstractmethod
    def _batches(self, rejects: RejectsFile) -> Iterator[list[Any]]:
        """Yield what one transaction stores; write what cannot be used to the rejects."""

    @abstractmethod
    def _store(self, batch: list[Any]) -> None:
        """Store a batch with the counts so far, in one transaction."""


class Importer(BatchImport):
    """The import of a list of parcels."""

    unit = "row"

    def __init__(
        self,
        registry: Registry,
        source: str | Path | BinaryIO,
        name: str,
        how: How,
        sources: KnownSources | None = None,
    ) -> None:
        """`sources` are where to look for parcels of which only the county and the id are given."""
        super().__init__(name, how)
        self._registry = registry
        self._sources = sources
        #: How many rows took which known source, by what is said of it.
        self.looked_up: Counter[str] = Counter()
        self._source = source
        self._politeness: dict[str, Politeness] = {}
        self._platforms: dict[str, str | None] = {}

    def try_out(self, note: Callable[[NewTask | Reject], None], is_known: Callable[[list[str]], set[str]]) -> Tally:
        """Count what `run` would do, and touch nothing. `note` is told of each row as it would be imported."""
        seen: set[str] = set()
        for item in self._tasks():
            note(item)
            if isinstance(item, Reject):
                continue
            if item.task_id in seen or is_known([item.task_id]):
                self.tally.known += 1
            else:
                self.tally.added += 1
                seen.add(item.task_id)
        return self.tally

    def politeness_of(self, host: str) -> Politeness:
        """Return what the platform of a host asks for, as far as a row has shown it."""
        return self._politeness.get(host, Politeness())

    def _mapping(self) -> Mapping[str, str]:
        """Read the header once more, unless it comes from a pipe: what is chosen is all that is known then."""
        how = self._how
        if not isinstance(self._source, str | Path) or not Path(self._source).is_file():
            return how.mapping
        header = header_of(self._source, how.layout, how.mapping)
        return resolve_mapping(header, how.mapping, self.name) if header else how.mapping

    def _store(self, batch: list[NewTask]) -> None:
        assert self.import_id is not None
        for task in batch:
            task.import_id = self.import_id
        with write("import"):
            done = register_in_transaction(batch, refresh=self._how.refresh, politeness=self._politeness)
            self.tally.count(done)
            record_progress(self.import_id, self.tally)
        for task_id in done.filled.task_ids:
            make_again(current_folder(), task_id)
        if len(self._politeness) > _MOST_HOSTS:  # a list of a million sites: they are looked up again
            self._politeness.clear()
            self._platforms.clear()

    def _batches(self, rejects: RejectsFile) -> Iterator[list[NewTask]]:
        batch: list[NewTask] = []
        weight = 0
        for item in self._tasks():
            if isinstance(item, Reject):
                rejects.write(item)
                continue
            batch.append(item)
            weight += _weight(item.target)
            if len(batch) >= self._how.batch_size or weight > _HEAVY:
                yield batch
                batch, weight = [], 0
        yield batch

    def _tasks(self) -> Iterator[NewTask | Reject]:
        how = self._how
        rows = read_parcels(
            self._source, layout=how.layout, defaults=how.defaults, mapping=how.mapping or None, name=self.name
        )
        for row in rows:
            self.tally.rows += 1
            item = row if isinstance(row, Reject) else self._task(row)
            if isinstance(item, Reject):
                self.tally.rejected += 1
                if self._how.strict:
                    raise InputError(f"{self.name}, line {item.line}: {item.detail} (stopped: --strict)")
            yield item

    def _task(self, row: ParcelRow) -> NewTask | Reject:
        try:
            row = row if row.url or row.platform else self._look_up(row)
            url = row.url or self._build_url(row)
        except PageError as problem:
            return Reject(row.line, problem.reason, problem.detail, str(row.parcel_id or ""))
        self._learn_politeness(row.platform, url)
        known = row.platform or self._platforms[host_of(url)]
        state, county = self._place(row, url, known)
        self.tally.urgent += row.queue == "urgent"
        return NewTask(
            source="local_file",
            url=url,
            platform=known,
            platform_learned=bool(known and not row.platform),
            state=state,
            county=county,
            parcel_id=row.parcel_id,
            queue=row.queue or "default",
            priority=row.priority or DEFAULT_PRIORITY,
            target=row.extra,
            due_by=self._how.due_by,
            expires_at=rfc3339(self._how.due_by) if self._how.due_by and self._how.drop_after else None,
        )

    def _look_up(self, row: ParcelRow) -> ParcelRow:
        """Return the row with the platform and the settings of the best known source of its county."""
        if self._sources is None:
            raise PageError(
                "missing_platform", "the row has neither a URL nor a platform to build one; add one of them"
            )
        choice = self._sources.choose(row.state, row.county)
        source = choice.source
        if source is None:
            raise PageError(choice.reason, choice.words)
        self.looked_up[choice.words] += 1
        # A county may be given by its code; results go by its name.
        county = source.county if is_fips(row.county or "") else row.county
        return replace(row, platform=source.platform, county=county, extra={**source.settings, **row.extra})

    def _place(self, row: ParcelRow, url: str, platform: str | None) -> tuple[str | None, str | None]:
        """Return the state and the county of a row: what it says, else what its address is known to tell."""
        if row.state and row.county:
            return row.state, row.county
        told = self._registry.place(platform or FALLBACK, url)
        state, county = row.state or told.state, row.county or told.county
        self.tally.placeless += not (state and county)
        return state, county

    def _build_url(self, row: ParcelRow) -> str:
        target = Target(row.platform, row.state, row.county, row.parcel_id, None, row.extra)
        url = self._registry.get(row.platform or "").build_url(target)
        if url is None:
            raise PageError(
                "no_url", f"platform {row.platform!r} cannot build a URL from this row; give {self._lacking(row)}"
            )
        return url

    def _lacking(self, row: ParcelRow) -> str:
        """The columns that would make an address, where the platform says so."""
        template = getattr(self._registry.get(row.platform or ""), "url_template", None)
        there = {"parcel_id": row.parcel_id, "state": row.state, "county": row.county, **row.extra}
        wanted = [name for name in re.findall(r"{(\w+)}", template or "") if not there.get(name)]
        return f"the url column, or {' and '.join(wanted)}" if wanted else "the url column"

    def _learn_politeness(self, platform_name: str | None, url: str) -> None:
        """Learn what the platform of a host asks for; once per host."""
        host = host_of(url)
        if host in self._politeness:
            return
        try:
            platform = self._registry.get(platform_name) if platform_name else self._registry.for_url(url)
        except PageError:  # reported when the page is parsed; the host is still paced
            platform = None
        self._politeness[host] = Politeness(platform.delay, platform.concurrency) if platform else Politeness()
        self._platforms[host] = platform.name if platform else None


def _weight(extra: Mapping[str, Any]) -> int:
    """Estimate how many characters the further columns of a row have; a nested value is serialized to be counted."""
    if not extra:
        return 0
    return sum(
        8 + len(value if value.__class__ is str else json.dumps(value) if isinstance(value, list | dict) else "")
        for value in extra.values()
    )
