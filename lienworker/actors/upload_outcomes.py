"""What goes to the Gateway, and storing what it said: each row ends by itself, as its own outcome wants."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from isal import isal_zlib

from lienworker.actors.runtime import Runtime
from lienworker.actors.upload_blame import SURELY_THE_DESTINATION, Ruling, judge_calls, trouble_of_call
from lienworker.gateway.fates import FailedAlone, Fate, RefusedAlone, Stored, Undecided
from lienworker.gateway.fitting import FitResult, fit_stored
from lienworker.gateway.outcomes import Accepted, Kind, Outcome, Refused, Unavailable
from lienworker.gateway.raw_form import raw_form
from lienworker.gateway.wire import ClosedReply, RawReply, ResultsReply
from lienworker.outbox import breaker, uploads
from lienworker.outbox.entries import Claimed
from lienworker.outbox.parcel_order import keep_order, result_rows
from lienworker.outbox.states import State
from lienworker.outbox.transitions import end
from lienworker.store.clock import now_ms
from lienworker.store.damage import trouble_of
from lienworker.store.database import write
from lienworker.store.pending import item as result_item
from lienworker.store.pending import remove_pending
from lienworker.store.stored_paths import is_raw_path

logger = logging.getLogger(__name__)

#: Up to so many bytes a raw file waits in memory for its turn; there may be more than a hundred of them.
_LARGE = 256 * 1024
#: What such a file may unpack to at once, bytes; a larger one is looked at piece by piece.
_LARGEST = 64 << 20
_GZIP = 31  # how zlib calls it
_UNREADABLE = cast("tuple[type[Exception], ...]", (OSError, isal_zlib.error))  # its stubs take it for an instance


@dataclass(frozen=True, slots=True)
class RawFile:
    """A raw file on its way: its bytes (or where a large one lies), its name at the Gateway, what is said about it."""

    source: bytes | str
    name: str
    metadata: dict[str, Any]


def prepare_raws(runtime: Runtime, rows: Sequence[Claimed]) -> list[tuple[Claimed, RawFile]]:
    """The files of rows; a row whose file is gone, or whose result was replaced, ends here."""
    pages = uploads.raw_pages([row.id for row in rows])
    files = {row.id: _raw_file(runtime, row, pages[row.id]) for row in rows if row.id in pages}
    ready = [(row, file) for row in rows if isinstance(file := files.get(row.id), RawFile)]
    if len(ready) < len(rows):
        replaced = [row for row in rows if row.id not in pages]
        lost = [(row, trouble) for row in rows if isinstance(trouble := files.get(row.id), str)]
        _end_without_file(replaced, lost)
    return ready


def _raw_file(runtime: Runtime, row: Claimed, page: dict[str, Any]) -> RawFile | str:
    """The file; or what is wrong with it, for the Gateway must not get another page than the one behind the result."""
    if not page["path"]:
        return "The page is not in the store any more."
    path = f"{runtime.folder.root}/{page['path']}"
    source = _checked(path, page["sha256"]) if is_raw_path(page["path"]) else None
    if source is None and (trouble := trouble_of(runtime.folder.root, page["path"], page["sha256"])):
        return trouble
    return RawFile(source or path, *raw_form(row.task_id, page))


def _checked(path: str, sha256: str) -> bytes | None:
    """The very bytes whose content was checked; None for a file that is large, or that somebody has to look into."""
    unpacking = isal_zlib.decompressobj(_GZIP)
    try:
        with open(path, "rb") as file:
            content = file.read(_LARGE + 1)
        page = unpacking.decompress(content, _LARGEST) if len(content) <= _LARGE else b""
    except _UNREADABLE:
        return None
    is_whole = unpacking.eof and not unpacking.unused_data and hashlib.sha256(page).hexdigest() == sha256
    return content if is_whole else None


def _end_without_file(replaced: Sequence[Claimed], lost: Sequence[tuple[Claimed, str]]) -> None:
    for row, trouble in lost:
        logger.warning("parked %s: %s", row.task_id, trouble, extra={"action": "parked", "task_id": row.task_id})
    with write("upload_raw_ended"):
        for row in replaced:
            end(row, State.SUPERSEDED, "newer_result")
            uploads.release_result(row)
        for row, trouble in lost:
            uploads.park(row, "raw_page_damaged", trouble, tries=0)
        breaker.call_off_probe("raw")


@dataclass(frozen=True, slots=True)
class Batch:
    """Results that may be sent together, and how many rows came to an end or a step further without a call."""

    items: list[tuple[Claimed, dict[str, Any]]]
    settled: int


def prepare_results(runtime: Runtime, rows: Sequence[Claimed]) -> Batch:
    """The items of rows that may be sent now, made fit; what cannot be sent as it is, is parked."""
    stored = result_rows(rows)
    ordered = keep_order(rows, stored)
    prepared, unfit = [], []
    for row in ordered.sendable:
        found = stored[row.task_id]
        fitted = fit_stored(result_item(found), found["data"])
        if isinstance(fitted, FitResult):
            prepared.append((row, fitted.item))
        else:
            unfit.append((row, fitted))
    if unfit or (rows and not prepared):
        with write("upload_unfit"):
            for row, problem in unfit:
                uploads.park(row, problem.reason, problem.detail, tries=0)
            if not prepared:
                breaker.call_off_probe("results")
    for row in ordered.superseded:
        remove_overtaken(runtime, row, stored.get(row.task_id))
    return Batch(prepared, len(unfit) + len(ordered.superseded))


def remove_overtaken(runtime: Runtime, row: Claimed, found: dict[str, Any] | None) -> None:
    """The file for people goes with the result, unless a newer result of the same task has taken its place."""
    if found and found["generation"] == row.generation:
        remove_pending(runtime.folder, row.task_id)


def store_raws(runtime: Runtime, outcomes: Sequence[tuple[Claimed, Outcome[RawReply]]]) -> None:
    if not outcomes:
        return
    with write("upload_raw"):
        uploads.raws_delivered([row for row, outcome in outcomes if isinstance(outcome, Accepted)])
        for row, outcome in outcomes:
            if isinstance(outcome, Refused):
                uploads.park(row, outcome.reason, outcome.words)
        _judge_destination(runtime, "raw", outcomes)
    runtime.raw_bound.note(len(outcomes), is_well=not _any_failed(outcomes))


def _any_failed(outcomes: Sequence[tuple[Claimed, Outcome[Any]]]) -> bool:
    return any(isinstance(outcome, Unavailable) for _, outcome in outcomes)


def store_reports(runtime: Runtime, outcomes: Sequence[tuple[Claimed, Outcome[ClosedReply]]]) -> None:
    """Any 200 closes the row, `success: false` included: there is nothing more to tell."""
    if not outcomes:
        return
    with write("report_failure"):
        for row, outcome in outcomes:
            if isinstance(outcome, Accepted):
                end(row)
            elif isinstance(outcome, Refused):
                uploads.park(row, outcome.reason, outcome.words)
        _judge_destination(runtime, "tasks", outcomes)
    runtime.report_bound.note(len(outcomes), is_well=not _any_failed(outcomes))


def store_results(
    runtime: Runtime, fates: Sequence[tuple[Claimed, Fate]], calls: Sequence[Outcome[ResultsReply]]
) -> None:
    """Store what became of a batch, and what each of the calls came to that were made to find out."""
    with write("upload_result"):
        stored = [row for row, fate in fates if isinstance(fate, Stored)]
        refused = sum(isinstance(fate, RefusedAlone) for _, fate in fates)
        if stored or refused:
            breaker.note_success("results", len(stored), calls=1)
        delivered = uploads.results_delivered(stored)
        for row, fate in fates:
            _store_unsent(runtime, row, fate)
        _judge_undecided(runtime, fates, calls, any_stored=bool(stored))
    _note_batch(runtime, fates, any_stored=bool(stored))
    for task_id in delivered:
        remove_pending(runtime.folder, task_id)
    if delivered:
        logger.info("delivered %d results", len(delivered), extra={"action": "delivered"})


def _note_batch(runtime: Runtime, fates: Sequence[tuple[Claimed, Fate]], *, any_stored: bool) -> None:
    """A 429 says nothing about the size of a batch; smaller ones would only be more calls."""
    causes = [fate.cause.kind for _, fate in fates if isinstance(fate, Undecided)]
    if Kind.RATE_LIMITED not in causes:
        runtime.result_bound.note(len(fates), is_well=any_stored or not causes)


def _store_unsent(runtime: Runtime, row: Claimed, fate: Fate) -> None:
    if isinstance(fate, RefusedAlone):
        uploads.park(row, "gateway_refused", fate.words)
    elif isinstance(fate, FailedAlone):
        due_at = now_ms() + breaker.delay_ms(1, runtime.settings.gateway_retry, None)
        most = breaker.most_blame("results") if fate.by_crash else breaker.LEAST_BLAME
        uploads.blame(row, "gateway_failed", fate.words, due_at, most=most)


def _judge_undecided(
    runtime: Runtime,
    fates: Sequence[tuple[Claimed, Fate]],
    calls: Sequence[Outcome[ResultsReply]],
    *,
    any_stored: bool,
) -> None:
    undecided = [(row, fate) for row, fate in fates if isinstance(fate, Undecided)]
    if len(fates) == 1 and undecided and _blame_for_the_same(runtime, *undecided[0]):
        return
    if undecided and undecided[0][1].cause.perhaps_the_row and len(fates) > 1:
        breaker.note_first_failure("results")
    ruling = _judge_result_calls(runtime, [fate.cause for _, fate in undecided], calls, any_stored=any_stored)
    for row, fate in undecided:
        # In a batch nobody can tell who it was; a row that was alone may be to blame.
        alone = len(fates) == 1 and fate.cause.perhaps_the_row
        uploads.put_off(row, trouble_of_call(fate.cause), ruling.due_at(fate.cause), perhaps_the_row=alone)


def _judge_result_calls(
    runtime: Runtime, causes: Sequence[Unavailable], calls: Sequence[Outcome[ResultsReply]], *, any_stored: bool
) -> Ruling:
    """Each call was answered, and yet nothing was stored: that is a failure of the destination, and a sure one."""
    everything_failed = [cause for cause in causes[:1] if cause.kind is Kind.FAILED and not any_stored]
    sure = SURELY_THE_DESTINATION | {one.kind for one in everything_failed}
    return judge_calls("results", [*calls, *everything_failed], runtime.settings.gateway_retry, sure)


def _blame_for_the_same(runtime: Runtime, row: Claimed, fate: Undecided) -> bool:
    """A row that failed before with these very words, while others were stored, is at it again."""
    words = fate.words or fate.cause.words
    if not uploads.is_the_same_again(row, words):
        return False
    breaker.call_off_probe("results")
    due_at = now_ms() + breaker.delay_ms(1, runtime.settings.gateway_retry, None)
    most = breaker.most_blame("results") if fate.cause.perhaps_the_row else breaker.LEAST_BLAME
    uploads.blame(row, "gateway_failed", words, due_at, most=most)
    return True


def _judge_destination(runtime: Runtime, endpoint: str, outcomes: Sequence[tuple[Claimed, Outcome[Any]]]) -> None:
    """Blame the right one: a row only if it fails again while others go through, else the destination or nobody."""
    successes = sum(isinstance(outcome, Accepted) for _, outcome in outcomes)
    if successes or any(isinstance(outcome, Refused) for _, outcome in outcomes):  # a refusal is an answer, too
        breaker.note_success(endpoint, successes)
    ruling = judge_calls(endpoint, [outcome for _, outcome in outcomes], runtime.settings.gateway_retry)
    for row, outcome in outcomes:
        if isinstance(outcome, Unavailable):
            due_at = ruling.due_at(outcome)
            uploads.put_off(row, trouble_of_call(outcome), due_at, perhaps_the_row=outcome.perhaps_the_row)
