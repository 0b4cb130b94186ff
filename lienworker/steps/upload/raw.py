"""Raw files to the Gateway, as many at a time as it has shown to take."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from isal import isal_zlib

from lienworker.data_folder import DataFolder
from lienworker.db.database import write
from lienworker.hubs.gateway.outcomes import Accepted, Outcome, Unavailable
from lienworker.hubs.gateway.sanitize import Unfit, unfit_key
from lienworker.hubs.gateway.transport import raw_form
from lienworker.hubs.gateway.wire import RawReply
from lienworker.outbox import breaker, uploads
from lienworker.outbox.rows import Claimed
from lienworker.outbox.states import State
from lienworker.outbox.transitions import end
from lienworker.outbox.uploads import Claim, Parked, claim_uploads, is_open, take_back
from lienworker.steps.in_flight import InFlight
from lienworker.steps.upload.apply import settle_calls
from lienworker.steps.upload.context import UploadContext, guarded
from lienworker.steps.upload.verdict import AfterCalls
from lienworker.store.damage import failure_of
from lienworker.store.raw_files import is_raw_path

#: Raw files are claimed ahead, so many times what may be under way: none must be missing during a commit.
_AHEAD = 24
#: So many that have landed are stored at once, while fewer wait a moment for others.
_GROUP = 100
#: After a claim that brought all there was, the next comes so much later, s: what is scraped meanwhile goes together.
_PAUSE_SECONDS = 0.1
#: A file that is under way for longer than this is slow, s.
_SLOW_SECONDS = 1.0
#: How long a failure waits for a neighbor that gets through, s.
_DOUBT_SECONDS = 1.0
#: Up to so many bytes a raw file waits in memory for its turn; there may be more than a hundred of them.
_LARGE = 64 * 1024
#: What such a file may unpack to at once, bytes; a larger one is looked at piece by piece.
_LARGEST = 64 << 20
_DAMAGED = "raw_page_damaged"
_GZIP = 31  # how zlib calls it
_UNREADABLE = cast("tuple[type[Exception], ...]", (OSError, isal_zlib.error))  # its stubs take it for an instance


@dataclass(frozen=True, slots=True)
class RawFile:
    """A raw file on its way: its bytes (or where a large one lies), its name at the Gateway, what is said about it."""

    source: bytes | str
    name: str
    metadata: dict[str, Any]
    #: Which of the parcel's pages it is, and whether no other follows.
    position: int = 0
    is_last: bool = True


def prepare_raws(folder: DataFolder, rows: Sequence[Claimed]) -> list[tuple[Claimed, RawFile]]:
    """The files of rows; a row whose file is gone, or whose result was replaced or can never be sent, ends here."""
    pages = uploads.raw_pages([row.id for row in rows])
    files = {row.id: _raw_file(folder, row, pages[row.id]) for row in rows if row.id in pages}
    ready = [(row, file) for row in rows if isinstance(file := files.get(row.id), RawFile)]
    if len(ready) < len(rows):
        replaced = [row for row in rows if row.id not in pages]
        unfit = [(row, trouble) for row in rows if isinstance(trouble := files.get(row.id), Unfit)]
        _end_without_file(replaced, unfit)
    return ready


def _raw_file(folder: DataFolder, row: Claimed, page: dict[str, Any]) -> RawFile | Unfit:
    """The file; or what is wrong with it, for the Gateway must not get another page than the one behind the result.

    Nor one whose result can never be stored: nobody there would ask for it.
    """
    if unfit := unfit_key(page):
        return unfit
    if not page["path"]:
        return Unfit(_DAMAGED, "The page is not in the store any more.")
    path = f"{folder.root}/{page['path']}"
    source = _checked(path, page["sha256"]) if is_raw_path(page["path"]) else None
    if source is None and (trouble := failure_of(folder.root, page["path"], page["sha256"])):
        return Unfit(_DAMAGED, trouble)
    return RawFile(source or path, *raw_form(row.task_id, page), page["position"], page["is_last"])


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


def _end_without_file(replaced: Sequence[Claimed], unfit: Sequence[tuple[Claimed, Unfit]]) -> None:
    with write("upload_raw_ended"):
        for row in replaced:
            end(row, State.SUPERSEDED, "newer_result")
            uploads.release_result(row)
        for row, trouble in unfit:
            if trouble.reason == _DAMAGED:
                uploads.park(row, trouble.reason, trouble.detail, tries=0)
            else:
                uploads.park_unsendable(row, trouble.reason, trouble.detail)
        uploads.say_parked([Parked(row, trouble.reason, trouble.detail) for row, trouble in unfit])
        breaker.call_off_probe("raw")


def store_raws(
    context: UploadContext,
    outcomes: Sequence[tuple[Claimed, Outcome[RawReply]]],
    unfinished: Mapping[int, RawFile] | None = None,
) -> list[Claimed]:
    """Store what became of files whose calls ended together; return the rows that have another file to send.

    `unfinished` has the file of each row that is not its last. A file that the Gateway has is never sent again.
    """
    if not outcomes:
        return []
    parts = unfinished or {}
    taken = [(row, outcome.reply.name) for row, outcome in outcomes if isinstance(outcome, Accepted)]
    with write("upload_raw"):
        uploads.raws_delivered([(row, name) for row, name in taken if row.id not in parts])
        for row, name in taken:
            if row.id in parts:
                uploads.raw_part_delivered(row, parts[row.id].position, name)
        verdict = settle_calls("raw", outcomes, context.first_delay)
    context.bounds.raw.adjust(len(outcomes), verdict.batch)
    return [row for row, _ in taken if row.id in parts]


class RawLane:
    """Raw files, as many at a time as the Gateway has shown to take."""

    def __init__(self, context: UploadContext, claim: Claim, landed: threading.Event) -> None:
        self._context = context
        self._client = context.gateway.open()
        self._claim = claim
        self._in_flight: InFlight[RawFile, Outcome[RawReply]] = InFlight(
            context.gateway.loop, self._upload, AfterCalls(), landed
        )
        self._doubtful: list[tuple[Claimed, Outcome[RawReply]]] = []
        self._doubtful_since = 0.0
        #: Files in flight that are not their parcel's last, by row; and rows whose next file is to go.
        self._unfinished: dict[int, RawFile] = {}
        self._to_go_on: list[Claimed] = []
        self._next_claim = 0.0
        self._is_probing = False

    def __len__(self) -> int:
        return len(self._in_flight) + len(self._doubtful) + len(self._to_go_on)

    def set_out(self) -> int:
        """Fills up the queue; gives how many rows that were."""
        if self._doubtful:
            return 0
        if self._in_flight.waiting and not self._is_probing and is_open("upload_raw"):
            self.call_back()  # another process has learned what these must not go against
        rows, self._to_go_on = self._to_go_on + self._claimed(), []
        files = prepare_raws(self._context.folder, rows) if rows else []
        self._unfinished |= {row.id: file for row, file in files if not file.is_last}
        if files or self._in_flight.waiting:
            self._in_flight.load(files, self._width())
        return len(rows)

    def _claimed(self) -> list[Claimed]:
        ahead = _AHEAD * self._context.bounds.raw.now
        most = ahead - self._in_flight.waiting
        if self.pause() or most < ahead // 4:
            return []
        rows = claim_uploads("upload_raw", most, self._claim)
        self._is_probing = bool(rows) and is_open("upload_raw")
        is_all = 1 < len(rows) < most  # a single one may be a probe, and is no trickle
        self._next_claim = time.monotonic() + _PAUSE_SECONDS if is_all else 0.0
        return rows

    def pause(self) -> float:
        """How long to wait for more, s; none where the last look found nothing, or not all of it."""
        return max(0.0, self._next_claim - time.monotonic())

    def _width(self) -> int:
        """What may be in the air: files that take long do not count, or some that hang would hold up all the others."""
        if is_open("upload_raw"):  # a probe
            return self._in_flight.under_way + 1
        most = max(self._context.concurrency, self._context.bounds.raw.now)
        return min(most, self._context.bounds.raw.now + self._in_flight.slow(_SLOW_SECONDS))

    def wait_for_group(self, seconds: float) -> None:
        self._in_flight.wait_for_group(_GROUP, seconds)

    def land(self) -> int:
        """Stores what came back; gives how many files the Gateway has taken.

        A failure waits for its neighbours: if one of them gets through, it says little about the destination.
        """
        arrived = self._in_flight.landed()
        judged = [pair for pair in arrived if not _is_doubtful(pair[1])]
        if not self._doubtful:
            self._doubtful_since = time.monotonic()
        self._doubtful += [pair for pair in arrived if _is_doubtful(pair[1])]
        is_old = time.monotonic() - self._doubtful_since > _DOUBT_SECONDS
        if self._doubtful and (judged or is_old or not self._in_flight.under_way):
            judged, self._doubtful = judged + self._doubtful, []
        parts = {row.id: file for row, _ in judged if (file := self._unfinished.pop(row.id, None))}
        self._to_go_on += store_raws(self._context, judged, parts)
        if any(isinstance(outcome, Unavailable) for _, outcome in judged):
            self._next_claim = 0.0
            self._go_on_if_allowed()
        return sum(isinstance(outcome, Accepted) for _, outcome in judged)

    def _go_on_if_allowed(self) -> None:
        if is_open("upload_raw"):
            self.call_back()
        else:
            self._in_flight.load([], self._width())

    def call_back(self) -> None:
        """What has not left yet waits for another time."""
        take_back(self._in_flight.unload() + self._to_go_on)
        self._to_go_on = []

    def abandon(self) -> list[Claimed]:
        return [row for row, _ in self._doubtful] + self._to_go_on + self._in_flight.abandon()

    async def _upload(self, file: RawFile) -> Outcome[RawReply]:
        return await guarded(self._client.upload_raw(file.source, file.name, file.metadata))


def _is_doubtful(outcome: Outcome[RawReply]) -> bool:
    return isinstance(outcome, Unavailable) and outcome.perhaps_the_row
