"""Several workers, a person and a Gateway that loses replies: any history of deliveries, against a simple model."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from lienworker.db import clock as store_clock
from lienworker.db.clock import rfc3339
from lienworker.db.database import all_rows, close, open_store, write
from lienworker.operator.rows import discard_rows, hold_rows, ready_for_replay, release_rows
from lienworker.outbox import uploads
from lienworker.outbox.claims import claim_task
from lienworker.outbox.leases import free
from lienworker.outbox.outcomes import configure, deliver_result, expire, parcel_key
from lienworker.outbox.registration import register_in_transaction
from lienworker.outbox.rows import Claimed
from lienworker.outbox.transitions import end
from lienworker.outbox.uploads import Claim, claim_uploads, raws_delivered, result_rows, results_delivered
from lienworker.steps.upload.result import keep_order
from lienworker.store import tasks
from lienworker.store.results import NewResult, save_result
from lienworker.store.tasks import NewTask
from tests.harness.outbox_rows import FREE, in_transaction, the_books_are_right

_HOLDERS = ["h0", "h1", "h2"]
_PARCELS = ["one", "two"]
_PLACE = {"platform": "demo", "state": "XX", "county": "Juniper"}


@dataclass
class Row:
    """What the model knows of a row."""

    task_id: str
    topic: str
    state: str
    token: str | None = None


@dataclass
class Model:
    rows: dict[int, Row] = field(default_factory=dict)
    parcels: dict[str, str] = field(default_factory=dict)  # by task
    fetched: dict[str, str] = field(default_factory=dict)  # by task
    #: What the Gateway has stored of each parcel, in order, acknowledged or not.
    gateway: dict[str, list[str]] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)


class AnyDelivery(RuleBasedStateMachine):
    hands = Bundle("hands")  # every row that was ever claimed and might be ended, by whoever, stale or not

    @initialize()
    def open(self) -> None:
        self.now = 1_800_000_000_000
        self._time = store_clock.time
        store_clock.time = SimpleNamespace(time_ns=lambda: self.now * 1_000_000)  # type: ignore[assignment]
        self.root = Path(tempfile.mkdtemp())
        open_store(self.root)
        configure("ondemand")
        self.model = Model()
        self.serial = 0

    def teardown(self) -> None:
        configure("standalone")
        store_clock.time = self._time
        close()
        shutil.rmtree(self.root)

    # What happens

    @rule(parcel=st.sampled_from(_PARCELS))
    def scrape(self, parcel: str) -> None:
        """A page of a parcel, fetched now, and the rows that deliver its result."""
        row = self._fetch(parcel)
        key = parcel_key(*_PLACE.values(), parcel)
        with write("test"):
            assert end(row)
            save_result(self._result(row.task_id, parcel))
            tasks.mark_completed(row.task_id)
            deliver_result((row, key))
        self.model.parcels[row.task_id], self.model.fetched[row.task_id] = parcel, rfc3339()
        self._learn()

    @rule()
    def expire(self) -> None:
        """A task that came too late: its report goes the same way."""
        row = self._fetch("late")
        assert in_transaction(expire, row)
        self._learn()

    @rule(target=hands, holder=st.sampled_from(_HOLDERS), topic=st.sampled_from(list(uploads.ENDPOINTS)),
          limit=st.integers(1, 4))  # fmt: skip
    def claim(self, holder: str, topic: str, limit: int) -> Any:
        self.serial += 1
        token = f"{holder}.{self.serial}"
        rows = claim_uploads(topic, limit, Claim(token, FREE))
        for row in rows:
            known = self.model.rows[row.id]
            assert known.state == "waiting"
            known.state, known.token = "leased", token
            if topic == "upload_result":
                assert self._row_of(row.task_id, "upload_raw").state == "delivered", "never before its raw file"
        return multiple(*(self._in_order(rows) if topic == "upload_result" else rows))

    @rule(row=hands)
    def acknowledge(self, row: Claimed) -> None:
        """The Gateway stores it, and says so."""
        mine = self._holds(row)
        if row.topic == "upload_result":
            if mine:
                self._store(row)
            in_transaction(results_delivered, [row])
        elif row.topic == "upload_raw":
            in_transaction(raws_delivered, [(row, "name.html.gz")])
        else:
            assert in_transaction(end, row) == mine
        if mine:
            self._close(row, "delivered")

    @rule(row=hands)
    def lose_the_reply(self, row: Claimed) -> None:
        """The Gateway stores it, and nobody hears of it: the row waits, as after any trouble."""
        mine = self._holds(row)
        if mine and row.topic == "upload_result":
            self._store(row)
        in_transaction(uploads.put_off, row, "timeout", "no reply", self.now, blame=0, seen_successes=0)
        if mine:
            self._close(row, "waiting")

    @rule(row=hands)
    def refuse(self, row: Claimed) -> None:
        mine = self._holds(row) and row.task_id not in self.model.sent
        if self._holds(row) and not mine:
            return  # what the Gateway has taken before it does not refuse
        in_transaction(uploads.park, row, "gateway_refused", "no")
        if mine:
            self._close(row, "parked")

    @rule(holder=st.sampled_from(_HOLDERS), blame=st.booleans())
    def end_of_a_holder(self, holder: str, blame: bool) -> None:
        free(holder, blame=blame)
        told = dict(all_rows("SELECT id, state FROM outbox"))
        for row_id, row in self.model.rows.items():
            if (row.token or "").startswith(f"{holder}."):
                assert told[row_id] in {"waiting", "parked"}  # parked: it has outlived too many
                row.state, row.token = told[row_id], None

    @rule(data=st.data(), action=st.sampled_from(["hold", "release", "discard", "replay"]))
    def by_hand(self, data: st.DataObject, action: str) -> None:
        """A person's hands touch nothing that a worker has in its own."""
        ids = [row_id for row_id, row in self.model.rows.items() if row.task_id not in self.model.sent]
        chosen = data.draw(st.lists(st.sampled_from(ids), max_size=3, unique=True)) if ids else []
        before = {"hold": {"waiting"}, "release": {"held"}, "discard": {"waiting", "held", "parked"},
                  "replay": {"waiting", "parked", "held"}}[action]  # fmt: skip
        after = {"hold": "held", "release": "waiting", "discard": "discarded", "replay": "waiting"}[action]
        {"hold": hold_rows, "release": release_rows, "discard": discard_rows, "replay": ready_for_replay}[action](
            chosen, "test"
        )
        for row_id in chosen:
            row = self.model.rows[row_id]
            if row.state in before:
                row.state = after
        for row_id in chosen if action == "discard" else ():
            self._park_result_of(self.model.rows[row_id])
        self._learn()  # the task of a result that will never go is reported

    @rule(ms=st.sampled_from([1, 1500, 600_000]))
    def time_goes_by(self, ms: int) -> None:
        self.now += ms

    # What must be so

    @invariant()
    def rows_are_as_the_model_says(self) -> None:
        if not hasattr(self, "model"):
            return
        sql = "SELECT id, state, lease_token FROM outbox WHERE topic NOT IN ('fetch', 'scrape')"
        told = {row_id: (state, token) for row_id, state, token in all_rows(sql)}
        assert told == {row_id: (row.state, row.token) for row_id, row in self.model.rows.items()}

    @invariant()
    def nothing_is_dropped_and_the_counts_are_right(self) -> None:
        if hasattr(self, "model"):
            the_books_are_right()

    @invariant()
    def what_the_gateway_has_of_a_parcel_never_gets_older(self) -> None:
        if hasattr(self, "model"):
            for stored in self.model.gateway.values():
                assert stored == sorted(stored)

    # The model's own business

    def _fetch(self, parcel: str) -> Claimed:
        self.serial += 1
        self.now += 1
        task = NewTask(
            "gateway", f"http://a.example/{self.serial}", task_id=f"t{self.serial}", parcel_id=parcel, **_PLACE
        )
        with write("test"):
            register_in_transaction([task])
        row = claim_task(task.task_id, "fetch", f"fetcher.{self.serial}", FREE)
        assert row is not None
        return row

    def _result(self, task_id: str, parcel: str) -> NewResult:
        about = {"json_path": None, "html_path": "raw/x", "raw_sha256": "00", "parser_version": "1"}
        return NewResult(
            task_id=task_id, generation=1, parcel_id=parcel, **_PLACE, data={}, **about, fetched_at=rfc3339(),
            scraped_at=rfc3339(), parse_duration_ms=1,
        )  # fmt: skip

    def _in_order(self, rows: list[Claimed]) -> list[Claimed]:
        """What the product does with claimed results before any of them is sent."""
        ordered = keep_order(rows, result_rows(rows))
        for row in ordered.superseded:
            self._close(row, "superseded")
        for row in ordered.stepped_back:
            self._close(row, "waiting")
        self._learn()
        return ordered.sendable

    def _store(self, row: Claimed) -> None:
        self.model.sent.add(row.task_id)
        self.model.gateway.setdefault(self.model.parcels[row.task_id], []).append(self.model.fetched[row.task_id])

    def _holds(self, row: Claimed) -> bool:
        known = self.model.rows[row.id]
        return known.state == "leased" and known.token == row.token

    def _close(self, row: Claimed, state: str) -> None:
        known = self.model.rows[row.id]
        known.state, known.token = state, None

    def _row_of(self, task_id: str, topic: str) -> Row:
        return next(row for row in self.model.rows.values() if (row.task_id, row.topic) == (task_id, topic))

    def _park_result_of(self, row: Row) -> None:
        """A result can never go without its raw file."""
        if row.topic == "upload_raw" and row.state == "discarded":
            result = self._row_of(row.task_id, "upload_result")
            if result.state in {"waiting", "held"}:
                result.state = "parked"

    def _learn(self) -> None:
        sql = "SELECT id, task_id, topic, state FROM outbox WHERE topic NOT IN ('fetch', 'scrape')"
        for row_id, *told in all_rows(sql):
            self.model.rows.setdefault(row_id, Row(*told))


TestAnyDelivery = AnyDelivery.TestCase
TestAnyDelivery.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
