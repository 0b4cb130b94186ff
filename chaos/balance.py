"""The balance of a run: what went in, what came out, and what must not be there: lost and doubled."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.counties import Counties
from chaos.witness import Sightings
from lienworker.outbox.rows import NEVER_DUE
from lienworker.testing.gateway.state import GatewayState

#: How many pairs of requests that came close are told one by one.
_SHOWN_CLOSE = 10
_OPEN = "('waiting', 'leased', 'held')"
_NEITHER_ENDED_NOR_WAITING = f"""
SELECT task_id FROM tasks t WHERE status IN ('pending', 'processing') AND NOT EXISTS (
    SELECT 1 FROM outbox o WHERE o.task_id = t.task_id AND o.topic IN ('fetch', 'scrape') AND o.state IN {_OPEN})
"""
_WITHOUT_A_WAY_OUT = f"""
SELECT r.task_id FROM results r JOIN tasks t ON t.task_id = r.task_id WHERE r.synced = 0 AND NOT EXISTS (
    SELECT 1 FROM outbox o WHERE o.task_id = r.task_id AND o.topic = 'upload_result'
    AND (o.state IN {_OPEN} OR o.state IN ('parked', 'superseded', 'discarded')))
"""
_DELIVERED = """
SELECT r.task_id, r.raw_sha256 FROM results r JOIN outbox o ON o.task_id = r.task_id AND o.generation = r.generation
WHERE o.topic = 'upload_result' AND o.state = 'delivered'
"""
_MOVING = f"SELECT task_id FROM outbox WHERE state = 'leased' OR (state = 'waiting' AND due_at < {NEVER_DUE})"
_NOT_ENDED = "SELECT task_id, url FROM tasks WHERE status IN ('pending', 'processing')"
_KEPT = "SELECT t.url FROM outbox o JOIN tasks t ON t.task_id = o.task_id WHERE o.topic = 'fetch' AND o.reason IN"
_WITHOUT_A_REASON = "SELECT task_id FROM tasks WHERE status IN ('failed', 'expired') AND coalesce(reason, '') = ''"


class Books:
    """The node's database, read from outside."""

    def __init__(self, data: Path) -> None:
        self._file = data / "lienworker.db"

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(f"file:{self._file}?mode=ro", uri=True, timeout=30)) as connection:
            return connection.execute(sql).fetchall()

    def moving(self, patient: Sequence[str] = ()) -> int:
        """Rows that will still move by themselves; those of `patient` sites (by address) may wait for ever."""
        waiting = {task_id for task_id, url in self.ask(_NOT_ENDED) if url.startswith(tuple(patient))}
        return sum(task_id not in waiting for (task_id,) in self.ask(_MOVING))

    def count(self, sql: str, sites: Sequence[str]) -> int:
        """How many of the addresses that a query gives belong to these sites."""
        return sum(url.startswith(tuple(f"{site}/" for site in sites)) for (url,) in self.ask(sql))

    def integrity(self) -> list[str]:
        return [str(row[0]) for row in self.ask("PRAGMA integrity_check") if row[0] != "ok"]

    def keep(self, place: Path) -> None:
        """A copy, made by SQLite: nobody else opens a database that is in use."""
        with (
            contextlib.closing(sqlite3.connect(self._file)) as ours,
            contextlib.closing(sqlite3.connect(place)) as copy,
        ):
            ours.backup(copy)

    def ended(self) -> int:
        """Rows that have come to their end."""
        return int(self.ask("SELECT count(*) FROM outbox WHERE finished_at IS NOT NULL")[0][0])

    def in_words(self) -> str:
        sql = "SELECT topic || ' ' || state || coalesce(' ' || reason, ''), count(*) FROM outbox GROUP BY 1"
        return ", ".join(f"{n} {name}" for name, n in self.ask(sql))


@dataclass
class Balance:
    """What the run came to. `lost`, `doubled` and `wrong` are sentences; all is well where there are none."""

    lines: list[tuple[str, str]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def is_well(self) -> bool:
        return not (self.lost or self.doubled or self.wrong)

    def in_words(self) -> Iterator[str]:
        for name, value in self.lines:
            yield f"  {name:<44} {value}"
        for name, sentences in (("LOST", self.lost), ("DOUBLED", self.doubled), ("WRONG", self.wrong)):
            yield f"  {name.lower():<44} {len(sentences)}"
            yield from (f"    {name}: {sentence}" for sentence in sentences[:20])


def draw_up(
    books: Books,
    counties: Counties,
    gateway: GatewayState,
    sightings: Sightings,
    promised: set[str],
    most_in_the_air: int,
) -> Balance:
    """Counts everything, once nothing moves any more."""
    balance = Balance()
    balance.doubled = sightings.doubled_pages + sightings.doubled_sends
    balance.wrong = list(sightings.too_early)
    _tasks(balance, books, gateway, promised, counties.patient)
    _pages(balance, books, counties, most_in_the_air)
    _results(balance, books, gateway)
    _hostile(balance, books, counties)
    _pacing(balance, counties)
    balance.wrong += [f"integrity_check: {sentence}" for sentence in books.integrity()]
    return balance


def _tasks(balance: Balance, books: Books, gateway: GatewayState, promised: set[str], patient: Sequence[str]) -> None:
    statuses = dict(books.ask("SELECT status, count(*) FROM tasks GROUP BY 1"))
    kept = {row[0] for row in books.ask("SELECT task_id FROM tasks")}
    urls = {row[0] for row in books.ask("SELECT url FROM tasks")}
    handed_out = {name for name, record in gateway.tasks.items() if record.times_handed_out}
    balance.lines += [
        ("tasks in (committed)", f"{len(kept):,}, {len(handed_out & kept):,} of them from the Gateway"),
        ("tasks completed", f"{statuses.get('completed', 0):,}"),
    ]
    for reason, n in books.ask("SELECT reason, count(*) FROM tasks WHERE status IN ('failed', 'expired') GROUP BY 1"):
        balance.lines.append((f"tasks failed: {reason}", f"{n:,}"))
    balance.lines.append(
        ("handed out in a reply that we never had", f"{len(handed_out - kept):,} (not ours to promise)")
    )
    balance.lost += [f"task {row[0]} neither ended nor waits" for row in books.ask(_NEITHER_ENDED_NOR_WAITING)]
    balance.lost += [f"{url} was imported and is not there" for url in sorted(promised - urls)]
    balance.lost += [f"task {row[0]} failed without a reason" for row in books.ask(_WITHOUT_A_REASON)]
    left = len([url for _, url in books.ask(_NOT_ENDED) if not url.startswith(tuple(patient))])
    if left:
        balance.wrong.append(f"{left} tasks have not ended: {books.in_words()}")


def _pages(balance: Balance, books: Books, counties: Counties, most_in_the_air: int) -> None:
    sites = [county.url for county in counties.honest]
    served = sum(county.served.total() for county in counties.honest)
    committed = books.count("SELECT url FROM pages", sites)
    committed += books.count(f"{_KEPT} ('not_modified', 'unchanged')", sites)
    repeats = served - committed
    balance.lines += [
        ("pages served whole by the counties", f"{served:,}"),
        ("pages committed", f"{committed:,}"),
        ("pages fetched twice after their commit", f"{len([s for s in balance.doubled if 'page' in s]):,}"),
        ("repeats of uncommitted pages", f"{repeats:,} (at most {most_in_the_air:,} were in the air)"),
        ("answers that the counties spoiled", f"{sum(county.failed for county in counties.honest):,}"),
    ]
    again = "SELECT reason, count(*) FROM attempts WHERE topic = 'scrape' AND reason <> 'worker_died' GROUP BY 1"
    for reason, n in books.ask(again):
        balance.lines.append((f"pages that were no good: {reason}", f"{n:,}"))
        if reason == "raw_page_damaged":  # nobody damages files here
            balance.doubled.append(f"{n} pages were fetched again, for their files could not be read")
    if repeats > most_in_the_air:
        balance.wrong.append(f"{repeats} pages were fetched again, more than were in the air")


def _hostile(balance: Balance, books: Books, counties: Counties) -> None:
    """Whatever they came to, each has come to something: see `_tasks`."""
    sites = tuple(f"{county.url}/" for county in counties.all_hostile)
    rows = books.ask("SELECT url, status, coalesce(reason, '') FROM tasks")
    ends = Counter(f"{status} {reason}".strip() for url, status, reason in rows if url.startswith(sites))
    if sites:
        balance.lines.append(("tasks at hostile sites", _listed(ends)))
        balance.lines.append(("hostile answers", _listed(counties.struck())))


def _pacing(balance: Balance, counties: Counties) -> None:
    close = list(counties.too_close())
    balance.wrong += [pair.in_words(counties.began) for pair in close]
    if not counties.polite:
        return
    asked = Counter(one.what for county in counties.polite for one in county.arrivals)
    uncounted = list(counties.too_close_uncounted())
    apart = Counter(f"{pair.before.what}, {pair.after.what}" for pair in uncounted)
    balance.lines += [
        ("requests at sites that measure", _listed(asked)),
        ("pages closer than the site's delay", f"{len(close):,}"),
        ("closer, with robots.txt or a redirect", f"{_listed(apart)} (not counted by the pacing)"),
        *(("", pair.in_words(counties.began)) for pair in uncounted[:_SHOWN_CLOSE]),
    ]


def _listed(counted: Counter[str]) -> str:
    return ", ".join(f"{n:,} {name}" for name, n in sorted(counted.items())) or "none"


def _results(balance: Balance, books: Books, gateway: GatewayState) -> None:
    storings = [version.row for versions in gateway.history.values() for version in versions]
    stored = {row.raw_html_hash for row in storings}
    different = {(row.task_id, row.raw_html_hash, row.scraped_at) for row in storings}
    delivered = books.ask(_DELIVERED)
    for task_id, sha256 in delivered:
        if sha256 not in stored:
            balance.lost.append(f"the result of {task_id} counts as delivered, but is not there")
    balance.lost += [f"the result of {row[0]} has no way out" for row in books.ask(_WITHOUT_A_WAY_OUT)]
    balance.lines += [
        ("results delivered", f"{len(delivered):,}; the Gateway has {len(gateway.results):,} parcels"),
        ("rows sent again after their acknowledgement", f"{len([s for s in balance.doubled if 'sent' in s]):,}"),
        ("duplicates (the acknowledgement never came)", f"{len(storings) - len(different):,}"),
        ("raw files uploaded", f"{len(gateway.raw_uploads):,}, {len(gateway.raw_files):,} of them different"),
    ]
    parked = "SELECT topic, reason, count(*) FROM outbox WHERE state = 'parked' GROUP BY 1, 2"
    balance.lines += [(f"parked: {topic}, {reason}", f"{n:,}") for topic, reason, n in books.ask(parked)]
