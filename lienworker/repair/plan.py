"""`doctor --repair`: what would be put right, as sentences first, then done. Doing it twice does nothing more.

The database comes first, since everything else is judged by it. What cannot be rebuilt is never deleted: it goes to
`quarantine/`, and the audit keeps what was done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lienworker.errors import BusyError, StoreError
from lienworker.maintenance.stale_files import old_leftovers, remove_leftovers
from lienworker.outbox.balance import TALLY_TABLES, balances, book_losses, count_again, wrong_tallies
from lienworker.outbox.deliveries import configure
from lienworker.repair import atomic_replace, requeue, salvage
from lienworker.repair.doctor import READ_BY_DEFAULT
from lienworker.repair.orphans import mend_rows
from lienworker.repair.report import account
from lienworker.settings import Settings
from lienworker.store import damage, pending
from lienworker.store.audit import actions, note_action
from lienworker.store.clock import rfc3339
from lienworker.store.database import begin_file, close, connect, open_store, write
from lienworker.store.folder import DataFolder, try_lock
from lienworker.store.usage import owning
from lienworker.trust import trust_data_folder

#: Whoever looks whether a stack runs has the lock for as long as it looks.
_LOCK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Repair:
    """One thing to put right: what is wrong, what will be done about it, and doing it."""

    check: str
    words: str
    n: int
    act: Callable[[], object]


@contextmanager
def alone_on(settings: Settings) -> Iterator[DataFolder]:
    """Nobody else uses the folder while it is repaired."""
    trust_data_folder(settings.data_dir)
    folder = DataFolder(settings.data_dir).create()
    configure(settings.mode)
    deadline = time.monotonic() + _LOCK_SECONDS
    while (lock := try_lock(folder.lock)) is None and time.monotonic() < deadline:
        time.sleep(0.05)
    if lock is None:
        raise BusyError(f"A stack runs on {folder.root}: stop it first, then repair.")
    try:
        with owning(folder):
            try:
                yield folder
            finally:
                close()  # before another process may open it
    finally:
        lock.close()


def database_repair(folder: DataFolder) -> Repair | None:
    """What has to be done before the database can be believed; None where it is sound."""
    stamp = _stamp()
    if folder.salvaged.exists():
        words = "a repair was interrupted: the salvaged database takes its place"
        return Repair("database", words, 1, lambda: atomic_replace.finish_swap(folder, stamp))
    begin_file(folder.database)
    connect(folder.database)
    problems = salvage.integrity_problems()
    if not problems:
        return None
    words = (
        f"{folder.database} is damaged ({problems[0]}): its indexes are made again; if that is not enough, what can be"
        f" read is saved into a new file, and the broken one goes to {folder.quarantine / stamp}"
    )
    return Repair("database", words, 1, lambda: _mend_database(folder, stamp))


def _mend_database(folder: DataFolder, stamp: str) -> None:
    if salvage.rebuild_indexes():
        with write("repair"):
            note_action("repair", "database: its indexes were made again", 1)
        return
    saved = salvage.salvage_into(folder.database, atomic_replace.part_of(folder), TALLY_TABLES)
    if not any(saved.rows.values()):
        close()
        atomic_replace.part_of(folder).unlink(missing_ok=True)
        raise StoreError(
            f"Nothing of {folder.database} can be read. Restore a backup; or move the file away and import your lists"
            " again: the raw pages are still there."
        )
    with write("salvage_books"):
        words = account(saved)
        count_again()
        requeue.report_again()
        note_action("repair", words[:500], book_losses())
    if salvage.integrity_problems():
        raise StoreError("The salvaged database is not whole either; nothing was changed. Restore a backup.")
    salvage.close_for_good()
    atomic_replace.declare_whole(folder)
    atomic_replace.finish_swap(folder, stamp)


def other_repairs(folder: DataFolder, *, deep: bool, refetch: bool) -> list[Repair]:
    """Everything else that is not as it should be, in the order in which it is put right."""
    open_store(folder.root)
    stamp = _stamp()
    found = [
        *_rows(),
        *_steps(folder),
        *_counts(),
        *_raw_files(folder, stamp, deep=deep, refetch=refetch),
        *_other_files(folder, stamp),
        *_pending(folder, stamp),
    ]
    if folder.damage_note.exists():
        found.append(Repair("damage note", "the stack may start again", 1, folder.damage_note.unlink))
    return found


def carry_out(folder: DataFolder, repair: Repair) -> str:
    """Does it and keeps it in the audit; gives what there is to say about it.

    The database's own repair writes its own line, into what it has made: so whoever finishes it for one who was killed
    knows as well what was saved and what was lost.
    """
    repair.act()
    if repair.check == "database":
        open_store(folder.root)
        return next((row["what"] for row in actions(1) if row["action"] == "repair"), repair.check)
    with write("repair"):
        note_action("repair", f"{repair.check}: {repair.words}"[:500], repair.n)
    return repair.check


def _rows() -> Iterator[Repair]:
    n = salvage.unusable_rows()
    if n:
        words = (
            f"{n:,} rows without their task, or unreadable: tasks are made again from pages, results and steps;"
            " unreadable results go, and are made again"
        )
        yield Repair("references", words, n, _in_transaction(mend_rows))


def _steps(folder: DataFolder) -> Iterator[Repair]:
    stranded = requeue.stranded_tasks()
    if stranded:
        words = (
            f"{len(stranded):,} tasks lack their next step or their result: they go on from the stored page where that"
            " is whole, and are fetched where it is not"
        )
        act = _in_transaction(lambda: requeue.do_again(folder.root, requeue.stranded_tasks()))
        yield Repair("tasks", words, len(stranded), act)
    unsent = requeue.undelivered_results()
    if unsent:
        words = f"{len(unsent):,} results that no row would deliver: they get their rows again"
        act = _in_transaction(lambda: requeue.deliver_again(requeue.undelivered_results()))
        yield Repair("deliveries", words, len(unsent), act)


def _counts() -> Iterator[Repair]:
    off = [side for side in balances() if not side.holds]
    if off:
        n = sum(abs(side.added - side.purged - side.there) for side in off)
        words = f"{n:,} outbox rows were lost or never counted: they are booked, so that the balance holds again"
        yield Repair("outbox balance", words, n, _in_transaction(book_losses))
    wrong = wrong_tallies()
    if wrong:
        words = f"{len(wrong):,} counts differ from the rows ({wrong[0]}): they are counted again"
        yield Repair("tallies", words, len(wrong), _in_transaction(count_again))


def _in_transaction(act: Callable[[], object]) -> Callable[[], object]:
    def done() -> None:
        with write("mend"):
            act()

    return done


def _raw_files(folder: DataFolder, stamp: str, *, deep: bool, refetch: bool) -> Iterator[Repair]:
    lost = list(damage.lost_pages(folder, None if deep else READ_BY_DEFAULT))
    broken = sorted({folder.root / page.path for page in lost if not page.is_missing})
    if broken:
        words = f"{len(broken):,} raw pages are damaged, such as {broken[0]}: they go to quarantine"
        yield Repair("raw pages", words, len(broken), lambda: _put_away(folder, broken, stamp))
    ids = sorted({page.task_id for page in lost if page.has_ended})
    if ids and refetch:
        words = f"{len(ids):,} tasks whose raw page is missing or damaged: their pages are fetched again"
        act = _in_transaction(lambda: requeue.send_round_again(ids))
        yield Repair("raw pages", words, len(ids), act)
    nobodys = damage.unnamed_raw_files(folder)
    if nobodys:
        words = f"{len(nobodys):,} raw files that no row names, such as {nobodys[0]}: they go to quarantine"
        yield Repair("raw files", words, len(nobodys), lambda: _put_away(folder, nobodys, stamp))


def _other_files(folder: DataFolder, stamp: str) -> Iterator[Repair]:
    archives = damage.damaged_archives(folder)
    for path, trouble in archives:
        words = f"{path} is damaged ({trouble}): it goes to quarantine; its results are in the database"
        yield Repair("archives", words, 1, partial(_put_away, folder, [path], stamp))
    parts = old_leftovers(folder)
    if parts:
        words = f"{len(parts):,} half-written files of processes that died, such as {parts[0]}: they are removed"
        yield Repair("leftovers", words, len(parts), lambda: remove_leftovers(folder))


def _pending(folder: DataFolder, stamp: str) -> Iterator[Repair]:
    n = len(pending.differences(folder))
    if n:
        words = (
            f"{n:,} files in {folder.pending} differ from the database: they are made again from it; those that no row"
            " names go to quarantine"
        )
        put_away = partial(damage.put_into_quarantine, folder, stamp=stamp)
        yield Repair("pending files", words, n, lambda: pending.rebuild(folder, put_away))


def _put_away(folder: DataFolder, paths: list[Path], stamp: str) -> None:
    for path in paths:
        if path.exists():
            damage.put_into_quarantine(folder, path, stamp)


def _stamp() -> str:
    return rfc3339().replace(":", "").replace("-", "").replace(".", "")
