"""The checks of a data folder that can be repaired: what is wrong, what is done about it, and doing it.

`doctor` shows what they find; `doctor --repair` carries out their fixes in this order, since rows are judged before the
files that they name. A fix is part of a larger transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lienworker.data_folder import DataFolder, is_stack_running
from lienworker.db.database import all_rows, one_row
from lienworker.outbox.balance import balances, book_losses, count_again, wrong_tallies
from lienworker.repair.quarantine import (
    damaged_archives,
    lost_pages,
    put_into_quarantine,
    time_stamp,
    unnamed_raw_files,
)
from lienworker.repair.rebuild import rebuild_tasks, unknown_words
from lienworker.repair.report import Finding
from lienworker.repair.requeue import redeliver, requeue, stranded_tasks, undelivered_results
from lienworker.store.pending import differences, files_of_delivered, rebuild
from lienworker.store.stale_files import find_stale_files, remove_stale_files

#: Raw pages and pending files that are read without `--deep`; reading a million takes many minutes.
_READ_BY_DEFAULT = 2_000


@dataclass(frozen=True, slots=True)
class Scope:
    """What is checked: with `deep` all files are read, with `refetch` lost pages are to be fetched again.

    `is_alone` says that nobody else uses the folder, so nothing in it is being written.
    """

    folder: DataFolder
    deep: bool = False
    refetch: bool = False
    is_alone: bool = False
    stamp: str = field(default_factory=time_stamp)

    def put_away(self, *paths: Path) -> None:
        """Put files into quarantine, unless they are gone."""
        for path in paths:
            if path.exists():
                put_into_quarantine(self.folder, path, self.stamp)


def row_checks(folder: DataFolder) -> Iterator[Finding]:
    """Check the rows against each other, and what is counted against the rows."""
    n = unusable_rows()
    words = f"{n:,} rows without their task, or unreadable"
    remedy = "tasks are rebuilt from pages, results and steps; unreadable results are deleted and made again"
    yield _finding("references", n, words, remedy, rebuild_tasks)
    n = len(stranded_tasks())
    words = f"{n:,} tasks lack their next step or their result"
    remedy = "they continue from the stored page where that is intact, and are fetched where it is not"
    yield _finding("tasks", n, words, remedy, lambda: requeue(folder.root, stranded_tasks()))
    n = len(undelivered_results())
    words = f"{n:,} results that no row would deliver"
    yield _finding("deliveries", n, words, "their rows are added again", lambda: redeliver(undelivered_results()))
    for side in balances():
        n = abs(side.added - side.purged - side.there)
        words = f"{side.topic}: added {side.added:,} IS NOT {side.there:,} there + {side.purged:,} purged"
        remedy = f"{n:,} rows that were lost or never counted are booked, so that the balance holds again"
        yield _finding("outbox balance", n, words, remedy, book_losses, ok=words.replace("IS NOT", "="))
    wrong = wrong_tallies()
    yield _finding("tallies", len(wrong), "; ".join(wrong[:3]), "all of them are counted again", count_again)


def raw_page_check(scope: Scope) -> Finding:
    """Check that every page has its file, and read the newest, or all."""
    lost = list(lost_pages(scope.folder, None if scope.deep else _READ_BY_DEFAULT))
    if not lost:
        read = "all" if scope.deep else f"the newest {_READ_BY_DEFAULT:,}"
        return Finding("raw pages", True, f"every page has its file; {read} were read")
    kind = "missing" if lost[0].is_missing else "damaged"
    words = f"{len(lost):,} raw pages are missing or damaged, such as {lost[0].path} ({kind})"
    broken = {scope.folder.root / page.path for page in lost if not page.is_missing}
    ended = sorted({page.task_id for page in lost if page.has_ended}) if scope.refetch else []
    remedy = f"{len(broken):,} files go to quarantine, {len(ended):,} tasks are fetched again"

    def fix() -> None:
        scope.put_away(*broken)
        requeue(scope.folder.root, ended, refetch=True)

    return Finding("raw pages", False, words, remedy, len(lost), fix if broken or ended else None)


def file_checks(scope: Scope) -> Iterator[Finding]:
    """Check the files that no row names, the archives, and the files for people."""
    unnamed, parts = unnamed_raw_files(scope.folder), find_stale_files(scope.folder)
    words = f"{len(unnamed):,} that no row names, {len(parts):,} half-written ones"

    def fix() -> None:
        scope.put_away(*unnamed)
        remove_stale_files(scope.folder)

    remedy = "the former go to quarantine, the latter are removed"
    yield _finding("raw files", len(unnamed) + len(parts), words, remedy, fix, ok="none that no row names")
    damaged = damaged_archives(scope.folder)
    words = f"{len(damaged):,} damaged, such as " + "".join(f"{path} ({why})" for path, why in damaged[:1])
    remedy = "they go to quarantine; their results are in the database"
    yield _finding("archives", len(damaged), words, remedy, lambda: scope.put_away(*(path for path, _ in damaged)))
    yield _pending_check(scope)


def _pending_check(scope: Scope) -> Finding:
    """Check the files for people. They are written a moment before their rows: only what differs twice is wrong."""
    most_read = None if scope.deep or scope.is_alone else _READ_BY_DEFAULT
    wrong = differences(scope.folder, most_read)
    if wrong and not scope.is_alone:
        time.sleep(0.5)
        wrong &= differences(scope.folder, most_read)
        left = wrong & files_of_delivered(scope.folder) if wrong and is_stack_running(scope.folder) else set()
        wrong -= left
        if left and not wrong:
            return Finding("pending files", True, f"ok; {len(left)} of delivered results are removed within minutes")
    words = f"{len(wrong):,} differ from the database"
    remedy = "they are made again from it; those that no row names go to quarantine"
    return _finding("pending files", len(wrong), words, remedy, lambda: rebuild(scope.folder, scope.put_away))


def _finding(check: str, n: int, words: str, remedy: str, fix: Callable[[], object], ok: str = "ok") -> Finding:
    return Finding(check, False, words, remedy, n, fix) if n else Finding(check, True, ok)


def unusable_rows() -> int:
    """Count rows whose task is missing, and rows whose JSON is invalid: SQLite itself does not notice these."""
    (results,) = one_row("SELECT count(*) FROM results WHERE NOT json_valid(data)")
    (targets,) = one_row("SELECT count(*) FROM tasks WHERE NOT json_valid(target_json)")
    return len(all_rows("PRAGMA foreign_key_check")) + int(results) + int(targets) + unknown_words()
