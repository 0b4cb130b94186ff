"""`doctor --repair`: what would be fixed, as sentences first, then done. Doing it twice changes nothing more.

The database comes first, since everything else is judged by it. What cannot be rebuilt is never deleted: it is moved to
`quarantine/`, and the audit records what was done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lienworker.data_folder import DataFolder, lock_within
from lienworker.db.database import DATABASE_TROUBLE, begin_file, close, connect, execute, open_store, write
from lienworker.db.usage import owning
from lienworker.errors import BusyError, StoreError
from lienworker.outbox.balance import TALLY_TABLES, book_losses, count_again
from lienworker.outbox.outcomes import configure
from lienworker.repair.checks import Scope, file_checks, raw_page_check, row_checks
from lienworker.repair.quarantine import time_stamp
from lienworker.repair.report import Finding
from lienworker.repair.requeue import report_again
from lienworker.repair.salvage import declare_whole, finish_swap, part_of, salvage
from lienworker.settings import Settings
from lienworker.store.audit import actions, record_action
from lienworker.store.damage import integrity_problems
from lienworker.trust import trust_data_folder

#: A process that checks whether a stack runs holds the lock while it checks.
_LOCK_SECONDS = 1.0


@contextmanager
def alone_on(settings: Settings) -> Iterator[DataFolder]:
    """Keep everybody else from using the folder while it is repaired."""
    trust_data_folder(settings.data_dir)
    folder = DataFolder(settings.data_dir).create()
    configure(settings.mode)
    lock = lock_within(folder.lock, _LOCK_SECONDS)
    if lock is None:
        raise BusyError(f"A stack runs on {folder.root}: stop it first, then repair.")
    with lock, owning(folder):
        try:
            yield folder
        finally:
            close()  # before another process may open it


def plan(folder: DataFolder, *, deep: bool, refetch: bool) -> list[Finding]:
    """Return what is wrong and can be fixed, in order; only the database, as long as it cannot be trusted."""
    return _database_problem(folder) or other_problems(folder, deep=deep, refetch=refetch)


def other_problems(folder: DataFolder, *, deep: bool, refetch: bool) -> list[Finding]:
    """Return what else is wrong in a folder whose database is intact."""
    open_store(folder.root)
    scope = Scope(folder, deep=deep, refetch=refetch, is_alone=True)
    found = [*row_checks(folder), raw_page_check(scope), *file_checks(scope)]
    if folder.damage_note.exists():
        fix = folder.damage_note.unlink
        found.append(Finding("damage note", False, "the database is whole", "the stack may start again", 1, fix))
    return [finding for finding in found if finding.fix]


def _database_problem(folder: DataFolder) -> list[Finding]:
    stamp = time_stamp()
    if folder.salvaged.exists():
        words, remedy = "a repair was interrupted", "the salvaged database takes its place"
        return [Finding("database", False, words, remedy, 1, lambda: finish_swap(folder, stamp))]
    begin_file(folder.database)
    problems = integrity_problems(folder.database)
    if not problems:
        return []
    words = f"{folder.database} is damaged ({problems[0]})"
    remedy = (
        "its indexes are rebuilt; if that is not enough, what can be read is saved into a new file, and the broken"
        f" one goes to {folder.quarantine / stamp}"
    )
    return [Finding("database", False, words, remedy, 1, lambda: _fix_database(folder, stamp))]


def _fix_database(folder: DataFolder, stamp: str) -> None:
    connect(folder.database)
    if _rebuild_indexes(folder):
        return
    saved = salvage(folder, TALLY_TABLES)
    if not any(saved.rows.values()):
        close()
        part_of(folder).unlink(missing_ok=True)
        raise StoreError(
            f"Nothing of {folder.database} can be read. Restore a backup; or move the file elsewhere and import your"
            " lists again: the raw pages are still there."
        )
    with write("salvage_books"):
        words = saved.in_words()
        count_again()
        report_again()
        record_action("repair", words[:500], book_losses())
    if integrity_problems(part_of(folder)):
        raise StoreError("The salvaged database is not whole either; nothing was changed. Restore a backup.")
    declare_whole(folder)
    finish_swap(folder, stamp)


def _rebuild_indexes(folder: DataFolder) -> bool:
    """Rebuild the indexes; return whether that was all: intact tables have what their indexes need."""
    try:
        with write("reindex"):
            execute("REINDEX")
    except DATABASE_TROUBLE:
        return False
    if integrity_problems(folder.database, 1):
        return False
    with write("repair"):
        record_action("repair", "database: its indexes were rebuilt", 1)
    return True


def carry_out(folder: DataFolder, finding: Finding) -> str:
    """Fix a finding and record it in the audit; return a message about it.

    The database's own repair writes its own line, into the file that it made: so a repair that finishes a killed one
    also knows what was saved and what was lost.
    """
    assert finding.fix is not None
    if finding.check == "database":
        finding.fix()
        open_store(folder.root)
        return next((row["what"] for row in actions(1) if row["action"] == "repair"), finding.check)
    with write("repair"):  # nobody waits for it: we own the folder
        finding.fix()
        record_action("repair", finding.in_full[:500], finding.n)
    return finding.check
