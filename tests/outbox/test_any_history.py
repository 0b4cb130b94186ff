"""Several holders, one outbox, any history: what a simple model says is what the tables say."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from lienworker.db import clock as store_clock
from lienworker.db.database import all_rows, close, open_store, write
from lienworker.operator.tasks import Done, cancel_tasks, retry_tasks
from lienworker.outbox import transitions
from lienworker.outbox.leases import free
from lienworker.outbox.outcomes import fail, give_back, try_again
from lienworker.outbox.rows import Claimed, Entry
from lienworker.outbox.states import Topic
from lienworker.store import tasks
from tests.harness.outbox_rows import add, in_transaction, take, the_books_are_right

_HOLDERS = ["h0", "h1", "h2"]
_HOSTS = ["a.example", "b.example"]


@dataclass
class Row:
    """What the model knows of a row."""

    task_id: str
    topic: str
    rank: int
    due_at: int
    state: str = "waiting"
    token: str | None = None
    attempts: int = 0
    is_suspect: bool = False


@dataclass
class Model:
    rows: dict[int, Row] = field(default_factory=dict)
    status: dict[str, str] = field(default_factory=dict)


class AnyHistory(RuleBasedStateMachine):
    hands = Bundle("hands")  # every row that was ever claimed, by whoever, stale or not

    @initialize()
    def open(self) -> None:
        self.now = 1_800_000_000_000
        self._time = store_clock.time
        store_clock.time = SimpleNamespace(time_ns=lambda: self.now * 1_000_000)  # type: ignore[assignment]
        self.root = Path(tempfile.mkdtemp())
        open_store(self.root)
        self.model = Model()
        self.serial = 0

    def teardown(self) -> None:
        store_clock.time = self._time
        close()
        shutil.rmtree(self.root)

    # What happens

    @rule(
        n=st.integers(1, 4),
        host=st.sampled_from(_HOSTS),
        queue=st.sampled_from(["urgent", "default"]),
        priority=st.integers(1, 2),
    )
    def add(self, n: int, host: str, queue: str, priority: int) -> None:
        self.serial += 1
        for task_id in add(n, host, name=f"{self.serial}-", queue=queue, priority=priority):
            self.model.status[task_id] = "pending"
        self._learn_new_rows()

    @rule(data=st.data())
    def add_what_is_known(self, data: st.DataObject) -> None:
        if self.serial:
            add(1, data.draw(st.sampled_from(_HOSTS)), name="0-")  # new the first time, known from then on
            for task_id in {f"{host}/0-0" for host in _HOSTS} & {
                row[0] for row in all_rows("SELECT task_id FROM tasks")
            }:
                self.model.status.setdefault(task_id, "pending")
            self._learn_new_rows()

    @rule(target=hands, holder=st.sampled_from(_HOLDERS), limit=st.integers(1, 6), quarantined=st.booleans(),
          topic=st.sampled_from(["fetch", "fetch", "scrape"]))  # fmt: skip
    def claim(self, holder: str, limit: int, quarantined: bool, topic: str) -> Any:
        able = [
            row
            for row in self.model.rows.values()
            if row.topic == topic and row.state == "waiting" and row.due_at <= self.now
            and (quarantined or not row.is_suspect)
        ]  # fmt: skip
        self.serial += 1
        token = f"{holder}.{self.serial}"

        taken = take(limit, token=token, topic=topic, quarantined=quarantined)

        known = [self.model.rows[row.id] for row in taken]
        assert len({row.id for row in taken}) == len(taken) <= limit
        assert all(row in able for row in known), "only what is due, waits, and is in nobody's hands"
        assert bool(taken) == bool(able), "where something can be had, something is got"
        assert [row.rank for row in known] == sorted(row.rank for row in known)
        assert not taken or known[0].rank == min(row.rank for row in able)
        assert len(taken) == 1 or not any(row.is_suspect for row in known)
        for row in known:
            row.state, row.token = "leased", token
            if topic == "fetch":
                self.model.status[row.task_id] = "processing"
        return multiple(*taken)

    @rule(row=hands)
    def end(self, row: Claimed) -> None:
        with write("test"):
            mine = transitions.end(row)
            if mine:
                tasks.mark_completed(row.task_id)
        if self._expect(mine, row):
            self._close(row, "delivered", "completed")

    @rule(row=hands)
    def take_the_next_step(self, row: Claimed) -> None:
        if row.topic != "fetch":
            return
        with write("test"):
            mine = transitions.end(row)
            if mine:
                transitions.add([Entry(Topic.SCRAPE, row.task_id, row.generation, row.queue, row.priority)])
        if self._expect(mine, row):
            self._close(row, "delivered", "processing")
            self._learn_new_rows()

    @rule(row=hands, after_ms=st.sampled_from([0, 1, 5000]))
    def try_again(self, row: Claimed, after_ms: int) -> None:
        mine = in_transaction(try_again, row, after_ms, "http_500", "oh")
        if self._expect(mine, row):
            self._close(row, "waiting", "pending" if row.topic == "fetch" else "processing")
            known = self.model.rows[row.id]
            known.attempts += 1
            known.due_at = self.now + after_ms

    @rule(row=hands)
    def fail(self, row: Claimed) -> None:
        mine = in_transaction(fail, row, "captcha", "a puzzle")
        if self._expect(mine, row):
            self._close(row, "delivered", "failed")

    @rule(rows=st.lists(hands, max_size=3))
    def give_back(self, rows: list[Claimed]) -> None:
        give_back(rows)
        for row in rows:
            if self._holds(row):
                self._close(row, "waiting", "pending" if row.topic == "fetch" else "processing")

    @rule(row=consumes(hands))
    def forget(self, row: Claimed) -> None:
        """Somebody loses track of a row: it stays leased until its holder ends."""

    @rule(holder=st.sampled_from(_HOLDERS))
    def leave(self, holder: str) -> None:
        held = self._held_by(holder)
        assert free(holder, blame=False) == len(held)
        for row in held:
            row.state, row.token = "waiting", None
            if row.topic == "fetch":
                self.model.status[row.task_id] = "pending"

    @rule(holder=st.sampled_from(_HOLDERS))
    def die(self, holder: str) -> None:
        held = {row_id for row_id, row in self.model.rows.items() if row in self._held_by(holder)}
        assert free(holder, blame=True) == len(held)
        told = {row[0]: row[1:] for row in all_rows("SELECT id, state, attempts, alone FROM outbox")}
        for row_id in held:
            row = self.model.rows[row_id]
            state, attempts, alone = told[row_id]
            # Who is to blame is told elsewhere; here: it waits again, or it is over with its task failed.
            assert state == "waiting" or (state == "delivered" and attempts > 0)
            assert attempts in {row.attempts, row.attempts + 1}
            row.state, row.token, row.attempts, row.is_suspect = state, None, attempts, bool(alone)
            if state == "delivered":
                self.model.status[row.task_id] = "failed"
            elif row.topic == "fetch":
                self.model.status[row.task_id] = "pending"

    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        chosen = self._some_tasks(data)
        failed = [task_id for task_id in chosen if self.model.status[task_id] == "failed"]
        assert retry_tasks(chosen, "test") == Done(len(failed), len(chosen) - len(failed))
        for task_id in failed:
            self.model.status[task_id] = "pending"
        self._learn_new_rows()

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        chosen = self._some_tasks(data)
        waiting = [row for row in self.model.rows.values() if row.task_id in chosen and row.state == "waiting"]
        assert cancel_tasks(chosen, "test") == Done(len(waiting), len(chosen) - len(waiting))
        for row in waiting:
            row.state = "discarded"
            self.model.status[row.task_id] = "failed"

    @rule(ms=st.sampled_from([1, 4999, 60_000]))
    def time_goes_by(self, ms: int) -> None:
        self.now += ms

    # What must be so

    @invariant()
    def rows_and_tasks_are_as_the_model_says(self) -> None:
        if not hasattr(self, "model"):
            return
        told = {
            row_id: (state, token, attempts)
            for row_id, state, token, attempts in all_rows("SELECT id, state, lease_token, attempts FROM outbox")
        }
        assert told == {row_id: (row.state, row.token, row.attempts) for row_id, row in self.model.rows.items()}
        assert dict(all_rows("SELECT task_id, status FROM tasks")) == self.model.status

    @invariant()
    def nothing_is_dropped_and_the_counts_are_right(self) -> None:
        if hasattr(self, "model"):
            the_books_are_right()

    # The model's own business

    def _holds(self, row: Claimed) -> bool:
        known = self.model.rows[row.id]
        return known.state == "leased" and known.token == row.token

    def _expect(self, mine: bool, row: Claimed) -> bool:
        assert mine == self._holds(row), "only who holds a row closes it"
        return mine

    def _close(self, row: Claimed, state: str, status: str) -> None:
        known = self.model.rows[row.id]
        known.state, known.token = state, None
        self.model.status[row.task_id] = status

    def _held_by(self, holder: str) -> list[Row]:
        return [row for row in self.model.rows.values() if (row.token or "").startswith(f"{holder}.")]

    def _some_tasks(self, data: st.DataObject) -> list[str]:
        known = sorted(self.model.status)
        return data.draw(st.lists(st.sampled_from(known), max_size=3, unique=True)) if known else []

    def _learn_new_rows(self) -> None:
        for row_id, *told in all_rows("SELECT id, task_id, topic, rank, due_at FROM outbox"):
            self.model.rows.setdefault(row_id, Row(*told))


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
