"""The scenarios of the walk. Together they reach every point; a test says so.

Each is something that happens on a data folder: prepared once, copied for each kill, done until the kill, done again,
and then looked at from outside.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from unittest.mock import patch

from lienworker.db.clock import now_ms
from lienworker.db.database import close, execute, one_row, open_store, write
from lienworker.maintenance.backup import verify
from lienworker.operator.archive import archive_pending
from lienworker.operator.begin_harvest import Wish, begin, look_at
from lienworker.steps.fetch import FetchLoop
from lienworker.store.tasks import NewTask
from tests.harness.descriptors import lost_locks
from tests.harness.in_process import Desk, desk
from tests.harness.node import write_list
from tests.harness.on_demand import gateway_tasks
from tests.harness.session_site import CARDS
from tests.harness.shelf import DEFINITION, page, shelf_in
from tests.killpoints.stage import KILLED, Stage, counted
from tests.steps.upload.test_order import another_round

_A_MONTH = 30 * 86_400_000
#: What a worker of the walk may have in hand: its threads less four, and the rows of each.
_SLOTS, _BATCH = 4, 4
_LIST = (
    "<html><h1>Parcels for sale</h1><table><tr><th>Parcel ID</th><th>Owner Name</th><th>Amount Due</th></tr>"
    "<tr><td><a href='/parcel/00-1'>00-1</a></td><td>OTTER IDA</td><td>$10.00</td></tr>"
    "<tr><td><a href='/parcel/00-2'>00-2</a></td><td>HERON JO</td><td>$20.00</td></tr></table></html>"
)
_HANGING = """
from lienworker.platforms import Platform

class Hanging(Platform):
    name = "hanging"
    delay = 0.0
    concurrency = 32
    def parse(self, page, target):
        while True:
            pass

PLATFORM = Hanging()
"""


class Scenario:
    """By default: a command, and the same command again."""

    #: What `lienworker` is called with.
    command: tuple[str, ...] = ()
    #: What it says at its end, the second time too.
    exit_code = 0

    @property
    def name(self) -> str:
        return type(self).__name__

    def prepare(self, here: Stage) -> None:
        """Makes the data folder. Once: the stage of a kill gets a copy."""

    def enter(self, here: Stage) -> None:
        """What is not in the folder: tasks and faults at the Gateway."""

    def act(self, here: Stage, **order: object) -> int:
        return here.cli(*self.command, **order)

    def again(self, here: Stage) -> None:
        assert here.cli(*self.command) == self.exit_code, here.said.read_text()[-3000:]

    def check(self, here: Stage, point: str) -> None:
        """What is special here; the promises are looked at in any case."""


class Day(Scenario):
    """A worker in on-demand mode with one of everything to do: poll, fetch, scrape, upload, report, chores."""

    parked = frozenset(
        {
            ("lost1", "upload_raw", "raw_page_damaged"),
            ("odd1", "upload_raw", "incomplete_key"),
            ("odd1", "upload_result", "incomplete_key"),
        }
    )

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway) as hands:
            hands.add(6)
            hands.add(1, name="lost")
            (path,) = one_row("SELECT path FROM pages WHERE task_id = 'lost1'")
            (here.data / path).rename(here.root / "lost")
            hands.add(1, name="odd", county=None)
            hands.add(1, name="again", source="local_file")
            another_round(hands, "again1")
            hands.add(1, name="older", parcel_id="same")
            hands.next_moment()
            hands.add(1, name="newer", parcel_id="same")
            hands.add_unread("unread")
            _register(
                NewTask("gateway", "http://dead.example/1", task_id="dead1"),
                NewTask("gateway", "http://late.example/1", task_id="late1"),
                NewTask("gateway", **_row(here, 50, host="localhost"), task_id="jumped1"),
            )
            _let_things_go_wrong(here)
        close()
        (here.data / "worker_id").unlink()
        (here.data / "pending" / "p1.json").unlink()  # as a kill leaves it: the next start makes it

    def enter(self, here: Stage) -> None:
        tasks = gateway_tasks(here.county, 6)
        tasks[3]["target"] = here.county.odd_parcels()[0]  # does not exist: fails, is reported
        tasks[4]["platform"], tasks[4]["target"] = "demo", {"parcel_id": "no url"}
        here.gateway.enqueue(*tasks)
        here.gateway.fault("500", endpoint="work", count=1)

    def act(self, here: Stage, **order: object) -> int:
        code = here.work(lambda: self._is_over(here), **order)
        times = {
            name: record.handed_out_at for name, record in here.gateway.state.tasks.items() if record.handed_out_at
        }
        # What the last reply carried may be lost with whoever had it in hand: it was never ours.
        here.in_the_air = {name for name, at in times.items() if at == max(times.values())}
        return code

    def again(self, here: Stage) -> None:
        """A probe that died with its process is given up after two minutes, a beat is due, and so is every row."""
        here.change(
            "UPDATE breakers SET retry_at = 0",
            "UPDATE facts SET value = value - 120000 WHERE name = 'heartbeat_at'",
            "DELETE FROM facts WHERE name = 'collect_next_poll'",
            "UPDATE outbox SET due_at = 1 WHERE state = 'waiting' AND due_at < 9e14",
        )
        assert here.work(lambda: self._is_over(here)) == 0

    def _is_over(self, here: Stage) -> bool:
        """Quiet, and every regular thing has had its turn."""
        return (
            bool(here.gateway.state.heartbeats)
            and not here.gateway.state.waiting_tasks
            and here.is_quiet()
            and bool(here.sql("SELECT 1 FROM facts WHERE name = 'collect_next_poll'"))
            and bool(here.sql("SELECT 1 FROM facts WHERE name = 'heartbeat_outcome'"))
            and bool(here.sql("SELECT 1 FROM workers WHERE beat > 0"))
            and not here.sql("SELECT 1 FROM pauses")
            and bool(here.sql("SELECT 1 FROM facts WHERE name = 'data_folder_size'"))
        )

    def check(self, here: Stage, point: str) -> None:
        state, gateway = here.state(), here.gateway.state
        assert set(here.sql("SELECT task_id, topic, reason FROM outbox WHERE state = 'parked'")) == self.parked, state
        left = here.sql("SELECT task_id, reason FROM outbox WHERE state IN ('waiting', 'leased', 'held')")
        assert left == [("lost1", "raw_parked")], state
        handed_out = {name for name, record in gateway.tasks.items() if record.times_handed_out}
        kept = {row[0] for row in here.sql("SELECT task_id FROM tasks WHERE task_id LIKE 'task-%'")}
        assert len(handed_out) == 6
        assert handed_out - kept <= here.in_the_air, "lost, though it was ours"
        assert kept == {name for name, record in gateway.tasks.items() if record.state in {"completed", "failed"}}
        # Six, the one that was unread, the one that went round again, the newer of the same parcel, and the one whose
        # clock had jumped.
        assert len(gateway.results) == 6 + 1 + 1 + 1 + 1 + len(kept - {"task-4", "task-5"})
        assert gateway.results["same", "demo", "XX", "Juniper"].task_id == "newer1"
        assert max(len(versions) for versions in gateway.history.values()) <= 2
        ended = dict(here.sql("SELECT task_id, status || ' ' || reason FROM tasks WHERE reason IS NOT NULL"))
        assert (ended["dead1"], ended["late1"]) == ("failed host_down", "expired expired")
        assert here.county.repeats <= _SLOTS * _BATCH, "more than what was in the air"
        self.find_the_lost_page(here)

    def find_the_lost_page(self, here: Stage) -> None:
        """The doctor misses it, and is right; what else it finds is the kill's."""
        (path,) = here.sql("SELECT path FROM pages WHERE task_id = 'lost1'")[0]
        (here.root / "lost").rename(here.data / path)


class LookedAt(Day):
    """The same day, with people who look at it all the time: none of them may take a lock or a log along."""

    looks = (("status",), ("outbox", "status"), ("results", "list"), ("tasks", "list"))

    def act(self, here: Stage, **order: object) -> int:
        with self._lookers(here):
            return super().act(here, **order)

    def again(self, here: Stage) -> None:
        with self._lookers(here):
            super().again(here)

    @contextmanager
    def _lookers(self, here: Stage) -> Iterator[None]:
        over, codes, wrong = threading.Event(), set[int](), list[str]()

        def look() -> None:
            for command in itertools.cycle(self.looks):
                if over.is_set():
                    return
                codes.add(here.cli(*command))
                wrong.extend(lost_locks(here.data))

        looker = threading.Thread(target=look)
        looker.start()
        try:
            yield
        finally:
            over.set()
            looker.join()
        assert (codes, wrong) == ({0}, [])


class Stop(Scenario):
    """A worker that is told to stop while the Gateway does not answer: what it has in hand goes back untried."""

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway) as hands:
            hands.add(3)
        close()

    def enter(self, here: Stage) -> None:
        here.gateway.fault("hang", endpoint="raw")

    def act(self, here: Stage, **order: object) -> int:
        return here.work(lambda: here.gateway.state.calls("raw"), **order)

    def again(self, here: Stage) -> None:
        here.gateway.clear_faults()
        here.change("UPDATE outbox SET due_at = 1 WHERE state = 'waiting' AND due_at < 9e14")
        assert here.work(here.is_quiet) == 0

    def check(self, here: Stage, point: str) -> None:
        assert len(here.gateway.state.results) == 3


class Accident(Scenario):
    """A page that cannot be written: it is nobody's fault, nothing is asked for until storage takes pages again."""

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway):
            _register(NewTask("gateway", **_row(here, 1, county="Blocked"), task_id="blocked1"))
        close()
        self._obstacle(here).parent.mkdir(parents=True)
        self._obstacle(here).touch()

    def act(self, here: Stage, **order: object) -> int:
        return here.work(lambda: self._is_over(here), **order)

    def again(self, here: Stage) -> None:
        here.change("UPDATE outbox SET due_at = 1 WHERE state = 'waiting' AND due_at < 9e14")
        assert here.work(lambda: self._is_over(here)) == 0

    def _is_over(self, here: Stage) -> bool:
        """The obstacle goes when it has done its work, and the next probe comes at once."""
        if here.sql("SELECT 1 FROM pauses WHERE cause = 'storage'"):
            if self._obstacle(here).is_file():
                self._obstacle(here).unlink()
            here.change(
                "UPDATE facts SET value = json_set(value, '$.next_try_at', 0) WHERE name = 'storage_refusal'"
                " AND json_extract(value, '$.next_try_at') > 0"
            )
            return False
        return here.is_quiet()

    def check(self, here: Stage, point: str) -> None:
        assert here.statuses() == {"completed": 1}
        assert here.sql("SELECT count(*) FROM attempts WHERE reason <> 'worker_died'") == [(0,)]
        assert len(here.gateway.state.results) == 1

    def _obstacle(self, here: Stage) -> Path:
        return here.data / "raw" / "demo" / "XX" / "Blocked"


class Unshown(Scenario):
    """The file for people, which standalone mode makes first, cannot be written: the row is given back for later."""

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway) as hands:
            hands.add_unread("unread")
        close()
        (self._obstacle(here) / "x").mkdir(parents=True)

    def enter(self, here: Stage) -> None:
        here.settings["STANDALONE"] = "true"

    def act(self, here: Stage, **order: object) -> int:
        given_back = "SELECT 1 FROM outbox WHERE topic = 'scrape' AND state = 'waiting' AND due_at > created_at + 1000"
        return here.work(lambda: here.sql(given_back), **order)

    def again(self, here: Stage) -> None:
        shutil.rmtree(self._obstacle(here), ignore_errors=True)
        here.change("UPDATE outbox SET due_at = 1 WHERE state = 'waiting' AND due_at < 9e14")
        assert here.work(here.is_quiet) == 0

    def check(self, here: Stage, point: str) -> None:
        assert here.statuses() == {"completed": 1}
        assert here.county.hits == {}, "the page was there already"

    def _obstacle(self, here: Stage) -> Path:
        return here.data / "pending" / "unread1.json"


class Full(Scenario):
    """A worker that may take no more tasks: what its polls came to is remembered when its turn ends."""

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway), write("test"):
            execute("INSERT INTO pauses VALUES ('fetch', 'operator', '2020-01-01T00:00:00.000Z', '')")
        close()

    def enter(self, here: Stage) -> None:
        here.settings["LIENWORKER_MAX_WAITING"] = "1"
        here.gateway.enqueue(*gateway_tasks(here.county, 1))

    def act(self, here: Stage, **order: object) -> int:
        return here.work(lambda: here.sql("SELECT 1 FROM tasks"), **order)

    def again(self, here: Stage) -> None:
        here.change("DELETE FROM pauses", "UPDATE outbox SET due_at = 1 WHERE state = 'waiting' AND due_at < 9e14")
        assert here.work(here.is_quiet) == 0

    def check(self, here: Stage, point: str) -> None:
        # What a reply carried that was never stored was never ours.
        assert len(here.gateway.state.results) == here.statuses().get("completed", 0) <= 1
        assert set(here.statuses()) <= {"completed"}


class Heavy(Scenario):
    """Heavy pages in the hands of two threads: one parses, the other puts its own off."""

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway) as hands:
            hands.add_unread("heavy", _SLOTS * _BATCH, filling="<p></p>" * 16_000)
        close()

    def act(self, here: Stage, **order: object) -> int:
        return here.work(here.is_quiet, **order)

    def again(self, here: Stage) -> None:
        here.change("UPDATE outbox SET due_at = 1 WHERE state = 'waiting' AND due_at < 9e14")
        assert here.work(here.is_quiet) == 0

    def check(self, here: Stage, point: str) -> None:
        assert here.statuses() == {"completed": _SLOTS * _BATCH}
        assert here.county.hits == {}, "the pages were there already"


class Hanging(Scenario):
    """A page that a parser hangs in: its process ends itself, and the page fails alone the next time."""

    exit_code = 1

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway):
            hanging = NewTask("gateway", **_row(here, 1, platform="hanging"), task_id="hanging1")
            _register(hanging, *(NewTask("gateway", **_row(here, n), task_id=f"well{n}") for n in (2, 3)))
        close()

    def enter(self, here: Stage) -> None:
        (here.root / "platforms" / "hanging.py").write_text(_HANGING)

    def act(self, here: Stage, **order: object) -> int:
        return here.work(lambda: False, **order)

    def again(self, here: Stage) -> None:
        here.change("UPDATE outbox SET due_at = 1 WHERE state = 'waiting' AND due_at < 9e14")
        assert here.work(here.is_quiet) == 0

    def check(self, here: Stage, point: str) -> None:
        assert here.statuses() == {"completed": 2, "failed": 1}
        assert here.sql("SELECT task_id, reason FROM tasks WHERE status = 'failed'") == [("hanging1", "too_complex")]


class OddHosts(Scenario):
    """Hosts as an older version stored them, oddly spelled and with absurd numbers, on a site that wants a distance."""

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway):
            _register(*(NewTask("gateway", **_row(here, n), task_id=f"odd{n}") for n in (1, 2, 3)))
        close()
        here.change(
            "UPDATE hosts SET host = replace(host, '127.0.0.1', '127.1'), concurrency = -1",
            "INSERT INTO hosts (host, robots_delay) VALUES ('absurd.example', 1e300)",
            "UPDATE outbox SET host = replace(host, '127.0.0.1', '127.1')",
            "DELETE FROM facts WHERE name = 'spelling_of_hosts'",
        )

    def enter(self, here: Stage) -> None:
        here.settings["LIENWORKER_HOST_DELAY"] = "0.02"

    def act(self, here: Stage, **order: object) -> int:
        return here.work(lambda: self._is_over(here), **order)

    def again(self, here: Stage) -> None:
        assert here.work(lambda: self._is_over(here)) == 0

    def _is_over(self, here: Stage) -> bool:
        return here.is_quiet() and not here.sql("SELECT 1 FROM hosts WHERE robots_delay > 1e9")

    def check(self, here: Stage, point: str) -> None:
        assert here.statuses() == {"completed": 3}
        assert here.sql("SELECT robots_delay FROM hosts WHERE host = 'absurd.example'") == [(3600.0,)]
        assert here.sql("SELECT DISTINCT instr(host, '127.1') FROM outbox WHERE topic = 'fetch'") == [(0,)]


class Import(Scenario):
    """A file into a new folder, in batches."""

    def act(self, here: Stage, **order: object) -> int:
        return here.cli("import", self._file(here), "--batch-size", "4", **order)

    def again(self, here: Stage) -> None:
        tasks = here.sql("SELECT count(*) FROM sqlite_master WHERE name = 'tasks'") != [(0,)]
        if tasks:
            counts = here.sql("SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM outbox)")[0]
            assert counts in {(0, 0), (4, 4), (8, 8), (10, 10)}
        assert here.cli("import", self._file(here)) == 0

    def check(self, here: Stage, point: str) -> None:
        assert here.statuses() == {"pending": 10}
        assert here.sql("SELECT count(*) FROM outbox WHERE topic = 'fetch' AND state = 'waiting'") == [(10,)]

    def _file(self, here: Stage) -> str:
        return write_list(here.root / "parcels.jsonl", here.county.parcels(10))


class SavedPages(Scenario):
    """Pages that a person saved into a new folder: each with its task or not at all, and never fetched."""

    def act(self, here: Stage, **order: object) -> int:
        return here.cli("import", self._folder(here), **order)

    def again(self, here: Stage) -> None:
        if here.sql("SELECT count(*) FROM sqlite_master WHERE name = 'tasks'") != [(0,)]:
            every = "SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM pages), (SELECT count(*) FROM outbox)"
            assert here.sql(every)[0] in {(0, 0, 0), (3, 3, 3)}
        assert here.cli("import", self._folder(here)) == 0

    def check(self, here: Stage, point: str) -> None:
        assert here.statuses() == {"pending": 3}
        assert here.sql("SELECT topic, state, count(*) FROM outbox GROUP BY 1, 2") == [("scrape", "waiting", 3)]
        assert here.county.hits == {}

    def _folder(self, here: Stage) -> str:
        folder = here.root / "saved"
        folder.mkdir(exist_ok=True)
        for number in range(3):
            (folder / f"{number}.html").write_text(f"<html><body>Parcel ID: {number}</body></html>")
        return str(folder)


class Replay(Scenario):
    """The manual resync of what standalone mode held."""

    command = ("outbox", "replay")

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway, STANDALONE="true") as hands:
            hands.add(6)
        close()

    def enter(self, here: Stage) -> None:
        here.settings["STANDALONE"] = "true"

    def check(self, here: Stage, point: str) -> None:
        assert len(here.gateway.state.results) == 6
        assert here.sql("SELECT DISTINCT state FROM outbox") == [("delivered",)]


class Discard(Replay):
    """Raw files are given up by hand: no result waits for one for ever."""

    command = ("outbox", "discard", "--topic", "upload_raw", "--yes")

    def check(self, here: Stage, point: str) -> None:
        assert here.state()["upload_raw discarded operator"] == 6
        assert here.state()["upload_result parked raw_discarded"] == 6


class BeginHarvest(Scenario):
    """A layer is asked what it is, and its first page's row is stored; the same again finds it begun."""

    def act(self, here: Stage, **order: object) -> int:
        return here.cli(*self._command(here), **order)

    def again(self, here: Stage) -> None:
        begun = here.sql("SELECT count(*) FROM sqlite_master WHERE name = 'harvests'") != [(0,)] and here.sql(
            "SELECT count(*) FROM harvests"
        ) == [(1,)]
        assert here.cli(*self._command(here)) == (2 if begun else 0), here.said.read_text()[-2000:]

    def check(self, here: Stage, point: str) -> None:
        assert here.statuses() == {"pending": 1}
        assert here.sql("SELECT topic, state, task_id FROM outbox") == [("fetch", "waiting", "harvest-1-page-1")]
        assert here.sql("SELECT pages, open_pages, read FROM harvests") == [(1, 1, 0)]

    def _command(self, here: Stage) -> tuple[str, ...]:
        return ("harvest", here.layer.layer, "--state", "FL", "--county", "Dixie")


def _begin_harvest(here: Stage, hands: Desk) -> None:
    """Begins a harvest; its first page is fetched and left to the scrape lane."""
    settings = hands.runtime.settings
    wish = Wish(here.layer.layer, "FL", "Dixie")
    prospect, _ = look_at(settings, wish, dry_run=False)
    begin(settings, prospect, wish)
    with patch("lienworker.steps.fetch._SOURCE_PAGES", 0), hands.runtime.holder.lease() as token:
        FetchLoop(hands.runtime.fetch, hands.runtime.lane(token)).run()


class Harvest(Scenario):
    """Two pages of a layer, several transactions each, one with an error inside a 200; then all of it delivered."""

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway) as hands:
            _begin_harvest(here, hands)
        close()

    def enter(self, here: Stage) -> None:
        here.layer.errors = 1

    def act(self, here: Stage, **order: object) -> int:
        return here.work(lambda: self._is_over(here), **order)

    def again(self, here: Stage) -> None:
        here.change(
            "UPDATE breakers SET retry_at = 0",
            "UPDATE outbox SET due_at = 1 WHERE state = 'waiting' AND due_at < 9e14",
        )
        assert here.work(lambda: self._is_over(here)) == 0

    def _is_over(self, here: Stage) -> bool:
        over = here.sql("SELECT 1 FROM harvests WHERE finished_at IS NOT NULL")
        return bool(over) and here.is_quiet() and len(here.gateway.state.results) == 700

    def check(self, here: Stage, point: str) -> None:
        """No parcel is lost, none is counted or stored twice, and each page went to the Gateway as one file."""
        counted_ones = here.sql("SELECT read, added, refreshed, unchanged, rejected, open_pages FROM harvests")
        assert counted_ones == [(700, 700, 0, 0, 0, 0)]
        assert {key[0] for key in here.gateway.state.results} == here.layer.parcel_ids()
        assert here.sql("SELECT count(*), max(generation) FROM results WHERE source_task IS NOT NULL") == [(700, 1)]
        assert here.sql("SELECT count(*) FROM outbox WHERE topic = 'upload_raw'") == [(2,)]


class HarvestTable(Scenario):
    """The pages of a roll into a new folder: what a kill left out, the same command adds."""

    def act(self, here: Stage, **order: object) -> int:
        return here.cli(*self._command(here), **order)

    def again(self, here: Stage) -> None:
        is_all_in = here.sql("SELECT count(*) FROM sqlite_master WHERE name = 'harvests'") != [(0,)] and here.sql(
            "SELECT count(*) FROM harvests WHERE announced IS NOT NULL"
        ) == [(1,)]
        assert here.cli(*self._command(here)) == (2 if is_all_in else 0), here.said.read_text()[-2000:]

    def check(self, here: Stage, point: str) -> None:
        assert here.sql("SELECT pages, open_pages, announced, finished_at FROM harvests") == [(25, 25, 50, None)]
        assert here.sql("SELECT topic, state, count(*) FROM outbox GROUP BY 1, 2") == [("scrape", "waiting", 25)]
        assert here.sql("SELECT count(*), count(DISTINCT path) FROM pages") == [(25, 25)]

    def _command(self, here: Stage) -> tuple[str, ...]:
        file = here.root / "roll.csv"
        file.write_text("PIN,Owner\n" + "".join(f"00-{n},OTTER {n}\n" for n in range(50)))
        return ("harvest", str(file), "--state", "FL", "--county", "Dixie", "--page-size", "2")


class HarvestAgain(Scenario):
    """The stored pages of a layer are read again with another mapping: each parcel changes once."""

    command = ("reparse",)

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway, STANDALONE="true") as hands:
            _begin_harvest(here, hands)
            for _ in range(3):
                hands.fetch_and_scrape()
            with write("test"):
                execute("UPDATE harvests SET plan = json_set(plan, '$.chosen.tax_status', 'NBRHD')")
        close()

    def enter(self, here: Stage) -> None:
        here.settings["STANDALONE"] = "true"

    def check(self, here: Stage, point: str) -> None:
        of_parcels = "FROM results WHERE source_task IS NOT NULL"
        assert here.sql(f"SELECT count(*), count(json_extract(data, '$.tax_status')) {of_parcels}") == [(700, 700)]
        assert here.sql(f"SELECT DISTINCT generation {of_parcels}") == [(2,)]
        assert here.state()["upload_result held standalone"] == 700
        assert here.state()["upload_result superseded newer_result"] == 700


class Follow(Scenario):
    """A list by hand, and its parcels as tasks."""

    def act(self, here: Stage, **order: object) -> int:
        here.county.lists["/parcel/list"] = _LIST
        return here.cli(*self._command(here), **order)

    def again(self, here: Stage) -> None:
        assert here.cli(*self._command(here)) == 0

    def check(self, here: Stage, point: str) -> None:
        assert here.statuses() == {"completed": 1, "pending": 2}

    def _command(self, here: Stage) -> tuple[str, ...]:
        url = f"{here.county.url}/parcel/list"
        return ("scrape", url, "--platform", "generic", "--follow", "--state", "XX", "--county", "Marsh")


class Queue(Follow):
    """The same left to the stack."""

    def check(self, here: Stage, point: str) -> None:
        assert here.statuses() == {"pending": 1}
        assert here.sql("SELECT json_extract(target_json, '$.follow.county') FROM tasks") == [("Marsh",)]

    def _command(self, here: Stage) -> tuple[str, ...]:
        return (*super()._command(here), "--queue-only")


class Flows(Scenario):
    """Parcels of several pages, reached by a flow in a session that ends in between, and delivered part by part."""

    definition = staticmethod(lambda here: here.sessions.definition())
    parcels = tuple(f"05-{n}" for n in range(1, 6))

    def prepare(self, here: Stage) -> None:
        (here.root / "platforms" / "sessioned.toml").write_text(self.definition(here))
        with desk(here.data, here.gateway):
            _register(
                *(NewTask("gateway", **here.sessions.row(parcel), task_id=f"flow-{parcel}") for parcel in self.parcels)
            )
        close()

    def enter(self, here: Stage) -> None:
        here.sessions.lasts = 2

    def act(self, here: Stage, **order: object) -> int:
        return here.work(here.is_quiet, **order)

    def again(self, here: Stage) -> None:
        here.change(
            "UPDATE breakers SET retry_at = 0",
            "UPDATE outbox SET due_at = 1 WHERE state = 'waiting' AND due_at < 9e14",
        )
        assert here.work(here.is_quiet) == 0

    def check(self, here: Stage, point: str) -> None:
        """Each parcel has both its pages, here and at the Gateway; what was committed was not asked for again."""
        assert here.statuses() == {"completed": 5}, here.said.read_text()[-3000:]
        pages = here.sql("SELECT task_id, part, position FROM pages ORDER BY 1, 3")
        assert pages == [(f"flow-{one}", *part) for one in self.parcels for part in (("profile", 0), ("values", 1))]
        assert {key[0] for key in here.gateway.state.results} == set(self.parcels)
        sent = counted([(json.loads(raw.metadata)["raw_html_hash"],) for raw in here.gateway.state.raw_uploads])
        assert max(sent.values()) <= 2, "once, and once more if it was in the air"
        # Each session does two searches, and the third finds that it is over: it is repeated in the next one.
        repeated = sum(here.sessions.searched.values()) - len(self.parcels)
        assert repeated <= 3 + _BATCH, here.sessions.searched


class UnsafeFlow(Flows):
    """The same with a POST that must not be sent twice: a kill around it fails the parcel, and says so."""

    definition = staticmethod(
        lambda here: (
            "safe = true".join(here.sessions.definition().split("safe = true")[:2])
            + "safe = false"
            + here.sessions.definition().split("safe = true")[2]
        )
    )

    def enter(self, here: Stage) -> None:
        """Sessions that last."""

    def check(self, here: Stage, point: str) -> None:
        assert max(here.sessions.searched.values()) == 1, here.sessions.searched
        failed = here.sql("SELECT reason FROM tasks WHERE status = 'failed'")
        assert len(failed) <= 1
        assert {reason for (reason,) in failed} <= {"unsafe_repeat"}
        assert here.statuses().get("completed", 0) == 5 - len(failed)


class ScrapeInSession(Scenario):
    """One address by hand, behind a session."""

    def prepare(self, here: Stage) -> None:
        (here.root / "platforms" / "cards.toml").write_text(CARDS.format(url=here.sessions.url))

    def act(self, here: Stage, **order: object) -> int:
        return here.cli("scrape", f"{here.sessions.url}/card?id=07-1", "--platform", "cards", **order)

    def again(self, here: Stage) -> None:
        assert self.act(here) == 0, here.said.read_text()[-3000:]

    def check(self, here: Stage, point: str) -> None:
        assert here.statuses() == {"completed": 1}
        assert here.sql("SELECT parcel_id FROM results") == [("07-1",)]


class Send(Scenario):
    """`scrape_url.send`: in SQLite before it is in Redis."""

    def act(self, here: Stage, **order: object) -> int:
        return here.start("send", url=_row(here, 1)["url"], **order).wait()

    def again(self, here: Stage) -> None:
        assert self.act(here) == 0

    def check(self, here: Stage, point: str) -> None:
        assert here.sql("SELECT count(*) FROM tasks") == here.sql("SELECT count(*) FROM outbox") == [(1,)]


class Tick(Scenario):
    """The schedule sends, and notes that it lives."""

    def act(self, here: Stage, **order: object) -> int:
        return here.start("tick", **order).wait()

    def again(self, here: Stage) -> None:
        assert self.act(here) == 0

    def check(self, here: Stage, point: str) -> None:
        assert here.sql("SELECT count(*) FROM facts WHERE name = 'schedule_at'") == [(1,)]


class Scrape(Tick):
    """Somebody asks for the metrics, and the names of their labels are kept."""

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway) as hands:
            hands.add(2)
        close()

    def act(self, here: Stage, **order: object) -> int:
        return here.start("metrics", **order).wait()

    def check(self, here: Stage, point: str) -> None:
        (kept,) = here.sql("SELECT value FROM facts WHERE name = 'metric_names_platform'")
        assert kept == ('["demo"]',)


class Retry(Scenario):
    """Failed tasks go round again, by hand."""

    command = ("tasks", "retry", "--all")

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway):
            _register(*(NewTask("cli", **_row(here, n)) for n in range(1, 6)))
            with write("test"):
                execute("UPDATE outbox SET state = 'delivered', reason = 'http_404', finished_at = 1")
                execute("UPDATE tasks SET status = 'failed', reason = 'http_404'")
        close()

    def again(self, here: Stage) -> None:
        """Killed after its commit it has left nothing to retry, and says so by its exit code."""
        is_done = here.statuses() == {"pending": 5}
        assert here.cli(*self.command) == (1 if is_done else 0), here.said.read_text()[-3000:]

    def check(self, here: Stage, point: str) -> None:
        assert here.statuses() == {"pending": 5}
        assert here.state() == {"fetch delivered http_404": 5, "fetch waiting ": 5}


class Pause(Scenario):
    command = ("pause", "--upload")

    def prepare(self, here: Stage) -> None:
        open_store(here.data)
        close()

    def check(self, here: Stage, point: str) -> None:
        assert here.sql("SELECT lane, cause FROM pauses") == [("upload", "operator")]


class PauseHost(Pause):
    command = ("hosts", "pause", "county.example")

    def check(self, here: Stage, point: str) -> None:
        assert here.sql("SELECT host FROM hosts WHERE paused_at IS NOT NULL") == [("county.example",)]


class PauseCounty(Scenario):
    """A county whose fetches are held by hand: killed in between, the same command holds the rest."""

    command = ("pause", "--county", "XX/Juniper")

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway):
            _register(*(NewTask("cli", **_row(here, n)) for n in range(1, 6)))
        close()

    def check(self, here: Stage, point: str) -> None:
        assert here.state() == {"fetch held paused": 5}


class Archive(Scenario):
    """Every result is in an archive or among the pending files, never nowhere."""

    command = ("results", "archive", "--compress")

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway, STANDALONE="true") as hands:
            hands.add(5)
        close()

    def again(self, here: Stage) -> None:
        assert self._places(here) == {f"p{n}" for n in range(1, 6)}
        super().again(here)

    def check(self, here: Stage, point: str) -> None:
        assert self._places(here) == {f"p{n}" for n in range(1, 6)}
        assert list((here.data / "pending").glob("*.json")) == []

    def _places(self, here: Stage) -> set[str]:
        import tarfile

        names = [path.stem for path in (here.data / "pending").glob("*.json")]
        for archive in (here.data / "archive").glob("*.tar.gz"):
            with tarfile.open(archive) as packed:
                names += [Path(name).stem for name in packed.getnames()]
        return {name.partition("~")[0] for name in names}


class Export(Archive):
    """A file appears whole or not at all."""

    def act(self, here: Stage, **order: object) -> int:
        return here.cli(*self._command(here), **order)

    def again(self, here: Stage) -> None:
        for aside in here.root.glob(".results.json.*.part"):
            import os

            os.utime(aside, (0, 0))
        if (here.root / "results.json").exists():
            assert len(json.loads((here.root / "results.json").read_text())) == 5
        assert here.cli(*self._command(here)) == 0

    def check(self, here: Stage, point: str) -> None:
        assert len(json.loads((here.root / "results.json").read_text())) == 5

    def _command(self, here: Stage) -> tuple[str, ...]:
        return ("results", "export", "--format", "json", "--output", str(here.root / "results.json"))


class ExportOfOldResults(Scenario):
    """The first table after an upgrade: what is there is looked through for its columns."""

    command = ("results", "export", "--format", "csv")
    unknown: tuple[str, ...] = (
        "INSERT INTO facts (name, value, at) VALUES ('columns_unknown', '', '2020-01-01T00:00:00.000Z')",
    )

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway, STANDALONE="true") as hands:
            hands.add(2)
        close()
        here.change("DELETE FROM result_columns", *self.unknown)

    def check(self, here: Stage, point: str) -> None:
        assert "owner_name" in here.said.read_text().rpartition("task_id,parcel_id")[2].partition("\n")[0]


class ExportOfMore(ExportOfOldResults):
    """A column that nobody noted ends a table; the next one has it."""

    unknown = ()
    exit_code = 3

    def again(self, here: Stage) -> None:
        here.cli(*self.command)  # the kill may have come before it was written that something is unknown
        assert here.cli(*self.command) == 0


class Reparse(Scenario):
    """Stored pages through a mended parser: what changed goes out again, once; the paused county goes on."""

    command = ("reparse",)
    pages, paused = 60, 10

    def prepare(self, here: Stage) -> None:
        with shelf_in(here.root) as shelf:
            shelf.add("Marsh", {str(n): page(n) for n in range(30)})
            shelf.work()
            shelf.add("Marsh", {str(n): page(n, "holder") for n in range(30, self.pages)})
            shelf.work()
            shelf.add("Marsh", {str(n): page(n, "holder") for n in range(100, 100 + self.paused)})
            shelf.work(0)
            with write("test"):  # as the next page's commit does
                execute("UPDATE outbox SET state = 'held', reason = 'drift' WHERE state = 'waiting'")
        close()
        (here.root / "platforms" / "quarry.toml").write_text(DEFINITION.format(owner="#owner, #holder", version="2"))

    def enter(self, here: Stage) -> None:
        here.settings["STANDALONE"] = "true"

    def check(self, here: Stage, point: str) -> None:
        assert here.statuses() == {"completed": self.pages, "pending": self.paused}
        assert here.sql("SELECT count(*) FROM results WHERE json_extract(data, '$.owner_name') IS NULL") == [(0,)]
        assert here.sql("SELECT count(*) FROM outbox WHERE reason = 'drift'") == [(0,)], here.state()
        assert here.sql("SELECT count(*) FROM outbox WHERE topic = 'fetch' AND state = 'waiting'") == [(self.paused,)]
        # A result that changed goes out once more: one row for each of its generations, and no other.
        sent = "SELECT count(*) FROM outbox WHERE topic = 'upload_result' GROUP BY task_id, generation"
        assert set(here.sql(sent)) == {(1,)}
        newest = "SELECT count(*) FROM outbox WHERE topic = 'upload_result' AND generation > 1"
        assert here.sql(newest) == [(30,)]


class Accept(Reparse):
    """A person takes the changed pages as they are."""

    command = ("platforms", "accept", "--all")

    def check(self, here: Stage, point: str) -> None:
        assert here.sql("SELECT count(*) FROM outbox WHERE reason = 'drift'") == [(0,)], here.state()
        assert here.sql("SELECT count(*) FROM outbox WHERE topic = 'fetch' AND state = 'waiting'") == [(self.paused,)]


class Purge(Scenario):
    """What is archived is let go of by hand: rows, raw pages, history, and the space that they took."""

    command = ("purge", "--older-than", "0", "--archived", "--yes")

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway, STANDALONE="true") as hands:
            hands.add(5)
            archive_pending(hands.runtime.folder, compress=False)
            with write("test"):
                execute("INSERT INTO audit (at, who, action, what, n) VALUES ('2001', 'x', 'y', 'z', 1)")
                execute("INSERT INTO rollups VALUES ('county', 'a|b|c|completed', 1440, 1, 0)")
                execute("CREATE TABLE ballast (x)")
                execute("INSERT INTO ballast VALUES (zeroblob(12000000))")
            with write("test"):
                execute("DROP TABLE ballast")
        close()

    def enter(self, here: Stage) -> None:
        here.settings["STANDALONE"] = "true"
        for path in (here.data / "raw").rglob("*.gz"):
            os.utime(path, (1, 1))

    def check(self, here: Stage, point: str) -> None:
        assert here.statuses() == {}
        assert [path for path in (here.data / "raw").rglob("*") if path.is_file()] == []
        assert here.sql("SELECT count(*) FROM doomed_files") == [(0,)]
        assert here.sql("SELECT sum(n) FROM counters WHERE name = 'purged'") == [(5 * 4,)]


class Backup(Scenario):
    """There is a whole one, or none."""

    def prepare(self, here: Stage) -> None:
        with desk(here.data, here.gateway) as hands:
            hands.add(5)
        close()

    def act(self, here: Stage, **order: object) -> int:
        return here.cli("backup", str(here.root / "b.tar"), **order)

    def again(self, here: Stage) -> None:
        for aside in here.root.glob(".b.tar.*.part"):
            os.utime(aside, (0, 0))
        if (here.root / "b.tar").exists():
            verify(here.root / "b.tar")
            (here.root / "b.tar").unlink()
        assert self.act(here) == 0, here.said.read_text()[-3000:]

    def check(self, here: Stage, point: str) -> None:
        assert verify(here.root / "b.tar") >= 2 + 5


class Restore(Backup):
    """Over a folder with something in it, which is moved aside."""

    def prepare(self, here: Stage) -> None:
        super().prepare(here)
        assert super().act(here) == 0
        here.change("INSERT INTO workers VALUES ('gone', 'worker', 1, 4, 9, '2026', '2026')")

    def act(self, here: Stage, **order: object) -> int:
        return here.cli("restore", str(here.root / "b.tar"), "--force", **order)

    def again(self, here: Stage) -> None:
        assert self.act(here) == 0, here.said.read_text()[-3000:]

    def check(self, here: Stage, point: str) -> None:
        assert here.statuses() == {"completed": 5}
        assert here.state()["upload_result held restored"] == 5
        assert here.sql("SELECT count(*) FROM workers") == [(0,)]
        assert len(list((here.data / "pending").glob("*.json"))) == 5


class AskTheGateway(Scenario):
    """A look at the Gateway leaves nothing behind."""

    command = ("gateway", "check")

    def prepare(self, here: Stage) -> None:
        open_store(here.data)
        close()

    def check(self, here: Stage, point: str) -> None:
        assert here.gateway.state.calls("work") == []


class Repair(Archive):
    """A damaged database is salvaged; counts and files are put right; a kill in the middle is finished by the next."""

    command = ("doctor", "--repair", "--yes")
    exit_code = 1  # figures are lost, and that is said

    def prepare(self, here: Stage) -> None:
        super().prepare(here)
        file = here.data / "lienworker.db"
        with closing(sqlite3.connect(file)) as rude:
            rude.execute("UPDATE tally SET n = n + 1")
            rude.commit()
            (page,) = rude.execute("SELECT pageno FROM dbstat WHERE name = 'rollups' AND pagetype = 'leaf'").fetchone()
        with file.open("r+b") as out:
            out.seek((page - 1) * 4096)
            out.write(bytes(4096))
        min((here.data / "pending").glob("*.json")).write_text("{")
        nobodys = here.data / "raw" / "nobodys.html.gz"
        nobodys.write_bytes(b"x")
        os.utime(nobodys, (1, 1))

    def again(self, here: Stage) -> None:
        """Whoever finishes the repair says what was lost; after that there is nothing more to say."""
        is_to_do = (
            not list((here.data / "quarantine").rglob("lienworker.db"))
            or (here.data / "lienworker.db.salvaged").exists()
        )
        assert here.cli(*self.command) == (1 if is_to_do else 0), here.said.read_text()[-3000:]

    def check(self, here: Stage, point: str) -> None:
        assert self._places(here) == {f"p{n}" for n in range(1, 6)}
        assert here.cli("doctor") == 0
        assert len(list((here.data / "quarantine").rglob("lienworker.db"))) == 1


class Reindex(Archive):
    """An index that does not fit its table is made again in place."""

    command = ("doctor", "--repair", "--yes")

    def prepare(self, here: Stage) -> None:
        super().prepare(here)
        with closing(sqlite3.connect(here.data / "lienworker.db")) as rude:
            rude.execute("UPDATE tally SET n = n + 1")
            rude.execute("PRAGMA writable_schema = ON")
            rude.execute(
                "UPDATE sqlite_master SET sql = 'CREATE INDEX results_of_parcel ON results (platform, parcel_id)'"
                " WHERE name = 'results_of_parcel'"
            )
            rude.commit()

    def again(self, here: Stage) -> None:
        Scenario.again(self, here)

    def check(self, here: Stage, point: str) -> None:
        assert here.cli("doctor") == 0
        assert not (here.data / "quarantine").exists()


def _row(here: Stage, number: int, *, host: str = "127.0.0.1", **changes: str) -> dict[str, str]:
    row = here.county.parcels(1, number)[0] | changes
    return {**row, "url": row["url"].replace("127.0.0.1", host)}


def _register(*tasks: NewTask) -> None:
    from lienworker.outbox.registration import register_in_transaction

    with write("test"):
        register_in_transaction(tasks)


def _set_the_clock_back_an_hour() -> None:
    from lienworker.db.database import set_fact
    from lienworker.outbox.clock_jumps import CLOCK, _boot

    set_fact(CLOCK, f"{_boot()} {now_ms() - int(1000 * time.monotonic()) + 3_600_000}")


def _let_things_go_wrong(here: Stage) -> None:
    """What the chores are for: a dead host, a task that came too late, a clock that was wrong, a disk that was full."""
    now = now_ms()
    jumped = f"host = 'localhost:{here.county.url.rpartition(':')[2]}'"
    with write("test"):
        execute(
            "UPDATE hosts SET failing_since = 1, failures_in_a_row = 9, cooling_until = ? WHERE host = 'dead.example'",
            (now + 3_600_000 + 600_000,),  # by the clock that is set back an hour below
        )
        execute("UPDATE tasks SET expires_at = '2020-01-01T00:00:00.000Z' WHERE task_id = 'late1'")
        # A retry with a deadline, whose backoff is over; no claim takes it first, since its site cools.
        execute("UPDATE outbox SET due_by = ?, attempts = 1 WHERE task_id = 'dead1'", (now + _A_MONTH,))
        execute("UPDATE outbox SET due_at = ? WHERE task_id = 'jumped1'", (now + _A_MONTH,))
        execute(f"UPDATE backlog SET not_before = ? WHERE {jumped}", (now + _A_MONTH,))
        execute(f"UPDATE hosts SET next_allowed_at = ? WHERE {jumped}", (now + _A_MONTH,))
        _set_the_clock_back_an_hour()
        execute("INSERT INTO breakers (endpoint, is_open, retry_at) VALUES ('tasks', 1, ?)", (now + _A_MONTH,))
        execute("INSERT INTO pauses VALUES ('intake', 'disk', '2020-01-01T00:00:00.000Z', 'only 1 MB is free')")
        # So that the newer one of the same parcel is there first.
        execute("UPDATE outbox SET due_at = due_at + 150 WHERE task_id = 'older1' AND topic = 'upload_raw'")


#: In the order in which they are preferred: the first that reaches a point is the one in which it is killed.
SCENARIOS: list[Scenario] = [
    Day(), Stop(), Accident(), Unshown(), Full(), Heavy(), Hanging(), OddHosts(), Import(), SavedPages(), Replay(),
    Discard(), BeginHarvest(), Harvest(), HarvestTable(), HarvestAgain(), Follow(), Queue(), Flows(), UnsafeFlow(),
    ScrapeInSession(), Send(), Tick(),
    Scrape(), Retry(), Pause(), PauseHost(), PauseCounty(), Archive(), Export(), ExportOfOldResults(), ExportOfMore(),
    Reparse(), Accept(), AskTheGateway(), Purge(), Backup(), Restore(), Repair(), Reindex(),
]  # fmt: skip

__all__ = ["KILLED", "SCENARIOS", "Day", "Discard", "Flows", "LookedAt", "Scenario", "UnsafeFlow"]
