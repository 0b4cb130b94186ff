"""What goes to the Gateway, and storing what it said: each row ends by itself, as its own outcome wants."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lienworker.actors.runtime import Runtime
from lienworker.gateway.fates import FailedAlone, Fate, RefusedAlone, Stored, Undecided
from lienworker.gateway.fitting import FitResult, fit_result
from lienworker.gateway.outcomes import Accepted, Kind, Outcome, Refused, Unavailable
from lienworker.gateway.wire import ClosedReply, RawReply, raw_name
from lienworker.outbox import breaker, uploads
from lienworker.outbox.breaker import Trouble
from lienworker.outbox.closing import end
from lienworker.outbox.entries import Claimed
from lienworker.store.clock import now_ms
from lienworker.store.database import write
from lienworker.store.pages import page_of
from lienworker.store.pending import item as result_item
from lienworker.store.pending import remove_pending
from lienworker.store.results import result

logger = logging.getLogger(__name__)

#: How long a success speaks for the destination, s.
_JUST_NOW = 5.0
#: Troubles that no row can cause: the breaker opens, whatever else went through.
_SURELY_THE_DESTINATION = {Kind.AUTH, Kind.RATE_LIMITED, Kind.DOWN, Kind.MISSING, Kind.REDIRECTED}


@dataclass(frozen=True, slots=True)
class RawFile:
    """A raw file on its way: where it lies, what it is called at the Gateway, what is said about it."""

    path: Path
    name: str
    metadata: dict[str, Any]


def prepare_raw(runtime: Runtime, row: Claimed) -> RawFile | None:
    """The file of a row; a row whose file is gone, or whose result was replaced, ends here."""
    page, found = page_of(row.task_id, row.generation), result(row.task_id)
    if found is None or found["generation"] != row.generation:
        with write("upload_raw_superseded"):
            end(row, "superseded", "newer_result")
            uploads.release_result(row)
        return None
    if page is None or not (runtime.folder.root / page.path).is_file():
        with write("upload_raw_lost"):
            uploads.park(row, "raw_page_damaged", "The raw page is not on disk any more.")
        return None
    keys = [str(found[name] or "") for name in ("platform", "state", "county", "parcel_id")]
    extension = ".".join(page.path.rsplit(".", 2)[1:])
    names = ("platform", "state", "county", "parcel_id")
    metadata = {
        **dict(zip(names, keys, strict=True)),
        "task_id": row.task_id,
        "url": page.url,
        "raw_html_hash": page.sha256,
        "fetched_at": page.fetched_at,
        "content_type": page.content_type,
    }
    return RawFile(runtime.folder.root / page.path, raw_name(*keys, page.sha256, extension), metadata)  # type: ignore[call-arg]


def prepare_results(rows: Sequence[Claimed]) -> list[tuple[Claimed, dict[str, Any]]]:
    """The items of rows that may be sent now, made fit; what cannot be sent as it is, is parked."""
    stored = uploads.result_rows(rows)
    prepared, unfit = [], []
    for row in uploads.keep_order(rows, stored):
        fitted = fit_result(result_item(stored[row.task_id]))
        if isinstance(fitted, FitResult):
            prepared.append((row, dict(fitted.item)))
        else:
            unfit.append((row, fitted))
    if unfit:
        with write("upload_unfit"):
            for row, problem in unfit:
                uploads.park(row, problem.reason, problem.detail)
    return prepared


def store_raws(runtime: Runtime, arrived: Sequence[tuple[Claimed, Future[Outcome[RawReply]]]]) -> None:
    outcomes = [(row, _outcome(flight)) for row, flight in arrived]
    if not outcomes:
        return
    with write("upload_raw"):
        for row, outcome in outcomes:
            if isinstance(outcome, Accepted):
                uploads.raw_delivered(row)
            elif isinstance(outcome, Refused):
                uploads.park(row, outcome.reason, outcome.words)
        _judge_destination(runtime, "raw", outcomes)
    runtime.raw_bound.note(is_well=not any(isinstance(outcome, Unavailable) for _, outcome in outcomes))


def store_reports(runtime: Runtime, arrived: Sequence[tuple[Claimed, Future[Outcome[ClosedReply]]]]) -> None:
    """Any 200 closes the row, `success: false` included: there is nothing more to tell."""
    outcomes = [(row, _outcome(flight)) for row, flight in arrived]
    if not outcomes:
        return
    with write("report_failure"):
        for row, outcome in outcomes:
            if isinstance(outcome, Accepted):
                end(row)
            elif isinstance(outcome, Refused):
                uploads.park(row, outcome.reason, outcome.words)
        _judge_destination(runtime, "tasks", outcomes)


def store_results(runtime: Runtime, fates: Sequence[tuple[Claimed, Fate]]) -> None:
    delivered = []
    with write("upload_result"):
        stored = [row for row, fate in fates if isinstance(fate, Stored)]
        if stored:
            breaker.note_success("results", len(stored))
        for row in stored:
            if uploads.result_delivered(row):
                delivered.append(row.task_id)
        for row, fate in fates:
            _store_unsent(runtime, row, fate)
        _judge_undecided(runtime, fates, any_stored=bool(stored))
    for task_id in delivered:
        remove_pending(runtime.folder, task_id)
    if delivered:
        logger.info("delivered %d results", len(delivered), extra={"action": "delivered"})


def _store_unsent(runtime: Runtime, row: Claimed, fate: Fate) -> None:
    if isinstance(fate, RefusedAlone):
        uploads.park(row, "gateway_refused", fate.words)
    elif isinstance(fate, FailedAlone):
        due_at = now_ms() + breaker.delay_ms(1, runtime.settings.gateway_retry, None)
        uploads.blame(row, "gateway_failed", fate.words, due_at)


def _judge_undecided(runtime: Runtime, fates: Sequence[tuple[Claimed, Fate]], *, any_stored: bool) -> None:
    undecided = [(row, fate.cause) for row, fate in fates if isinstance(fate, Undecided)]
    if not undecided:
        return
    trouble = _trouble(undecided[0][1])
    due_at = _open_breaker(runtime, "results", undecided[0][1], trouble, any_success=any_stored)
    is_single = len(undecided) == 1
    for row, cause in undecided:
        uploads.put_off(row, trouble, due_at, perhaps_the_row=is_single and cause.perhaps_the_row)


def _judge_destination(runtime: Runtime, endpoint: str, outcomes: Sequence[tuple[Claimed, Outcome[Any]]]) -> None:
    """Blame the right one: a row only if it fails again while others go through, else the destination."""
    successes = sum(isinstance(outcome, Accepted) for _, outcome in outcomes)
    if successes:
        breaker.note_success(endpoint, successes)
        runtime.last_success[endpoint] = time.monotonic()
    failed = [(row, outcome) for row, outcome in outcomes if isinstance(outcome, Unavailable)]
    for row, outcome in failed:
        trouble = _trouble(outcome)
        due_at = _open_breaker(runtime, endpoint, outcome, trouble, any_success=_recent_success(runtime, endpoint))
        uploads.put_off(row, trouble, due_at, perhaps_the_row=outcome.perhaps_the_row)


def _recent_success(runtime: Runtime, endpoint: str) -> bool:
    """Whether others went through just now: then a failure says little about the destination."""
    return time.monotonic() - runtime.last_success.get(endpoint, -1e9) < _JUST_NOW


def _open_breaker(runtime: Runtime, endpoint: str, outcome: Unavailable, trouble: Trouble, *, any_success: bool) -> int:
    """Opens the breaker unless others went through just now; gives the time from which a failed row may go again."""
    first_delay = runtime.settings.gateway_retry
    if any_success and outcome.kind not in _SURELY_THE_DESTINATION:
        return now_ms() + breaker.delay_ms(1, first_delay, outcome.retry_after)
    # One millisecond later than the probe, so that another row makes it.
    return breaker.note_trouble(endpoint, trouble, first_delay) + 1


def _trouble(outcome: Unavailable) -> Trouble:
    return Trouble(outcome.kind.value, outcome.words, outcome.retry_after)


def _outcome(flight: Future[Outcome[Any]]) -> Outcome[Any]:
    problem = flight.exception()
    if problem is None:
        return flight.result()
    logger.error("the Gateway client itself failed", exc_info=problem)
    return Unavailable(Kind.LOCAL, f"{type(problem).__name__}: {problem}")
