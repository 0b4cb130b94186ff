"""Storage watch: stop fetching when a page cannot be stored, and resume when storage accepts files again.

A full disk, a lack of inodes or a read-only mount must not make us ask a site again and again for pages that we cannot
keep. The step that fails to store a page pauses the fetch lane (`stop_fetching`) and gives its rows back unblamed; the
pause is stored, so all processes and the next start know of it, and at most the requests in flight are repeated. The
relay's housekeeping (`watch_storage`) then tries storage without any site, with a file like the one that was refused,
in the same folder, less often each time, and ends the pause when that works. Watching free megabytes instead was
rejected: they do not show inodes, quotas or permissions (the disk limits in `maintenance` watch them as well).
"""

from __future__ import annotations

import errno
import json
import logging
import os
from dataclasses import asdict, dataclass, replace

from lienworker.data_folder import DataFolder
from lienworker.db.clock import now_ms
from lienworker.db.database import fact, set_fact, write
from lienworker.errors import RefusedError
from lienworker.outbox.pauses import is_paused_for, set_pause_in_transaction
from lienworker.store.damage import try_storage

CAUSE = "storage"
_REFUSAL = "storage_refusal"
_FIRST_WAIT_MS = 5_000
#: A probe asks no site for anything. A wrong one costs the requests of one claim, so minutes are enough, and a disk
#: that failed in short bursts does not keep fetching paused for long once it works.
_LONGEST_WAIT_MS = 2 * 60_000
#: Refused again this soon after a successful probe: the probe was wrong, and the next one waits longer.
_SOON_MS = 10 * 60_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What was refused, how often in a row, when to try next, and when it last seemed to be over."""

    place: str
    size: int
    times: int
    next_try_at: int
    over_at: int = 0

    def once_more(self, now: int) -> Refusal:
        wait = min(_LONGEST_WAIT_MS, _FIRST_WAIT_MS * 2 ** min(self.times, 20))
        return replace(self, times=self.times + 1, next_try_at=now + wait)

    def is_due(self, now: int) -> bool:
        """Return whether a probe is due, also after the clock was set back."""
        return not now < self.next_try_at <= now + _LONGEST_WAIT_MS


def stop_fetching(folder: DataFolder, problem: RefusedError) -> None:
    """Pause fetching in all processes until storage accepts files again: a page could not be stored."""
    now, words = now_ms(), refusal_message(folder, problem)
    with write("storage_refused"):
        if is_paused_for("fetch", CAUSE):
            return
        known = _known()
        is_again = known is not None and now - known.over_at < _SOON_MS
        times = known.times if known and is_again else 0
        _remember(Refusal(problem.place, problem.size, times, 0).once_more(now))
        set_pause_in_transaction("fetch", CAUSE, words)
    logger.warning("fetch is paused: %s", words, extra={"action": "storage"})


def watch_storage(folder: DataFolder) -> None:
    """Try storage when a probe is due, and resume fetching when it works. Called every second."""
    known, now = _known(), now_ms()
    if not is_paused_for("fetch", CAUSE) or (known and not known.is_due(now)):
        return
    known = known or Refusal("raw", 1, 0, 0)
    problem = try_storage(folder, known.place, known.size)
    with write("storage_tried"):
        if problem is None:
            _remember(replace(known, over_at=now))
        else:
            _remember(known.once_more(now))
        set_pause_in_transaction("fetch", CAUSE, refusal_message(folder, problem) if problem else None)
    if problem is None:
        logger.info("fetch resumes: storage accepts pages again", extra={"action": "storage"})


def refusal_message(folder: DataFolder, problem: RefusedError) -> str:
    """Return a message that says why pages cannot be stored."""
    reason = problem.strerror or "the disk refuses them"
    if problem.errno == errno.ENOSPC and _has_no_inodes(folder):
        reason = f"{reason}: no more files can be created, though bytes may be free"
    return f"pages cannot be stored under {folder.root / problem.place}: {reason}; lienworker keeps trying"


def _has_no_inodes(folder: DataFolder) -> bool:
    try:
        about = os.statvfs(folder.raw)
    except OSError:
        return False
    return about.f_files > 0 and about.f_favail == 0


def _known() -> Refusal | None:
    text = fact(_REFUSAL)
    return Refusal(**json.loads(text)) if text else None


def _remember(refusal: Refusal) -> None:
    set_fact(_REFUSAL, json.dumps(asdict(refusal)))
