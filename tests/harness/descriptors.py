"""Who opens a node's database past SQLite, and who has lost its locks on it."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from chaos.locks import LockWatch, can_watch

needs_proc = pytest.mark.skipif(
    not can_watch(), reason="NOT TESTED: this system has no /proc that shows locks and files"
)

#: Put into a file `sitecustomize.py`: writes down every time that Python itself opens a file of a database.
SPY = """
import os, sys, traceback

_log = os.open(os.environ["OPENED_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

def _spy(event, arguments):
    if event == "open":
        try:
            name = os.fsdecode(arguments[0])
        except TypeError:
            return  # a descriptor that is there already
        # A restore writes its copy into a folder of its own, where no SQLite has it open.
        if "/.restore-" not in name and name.endswith(("lienworker.db", "lienworker.db-wal", "lienworker.db-shm")):
            stack = "".join(traceback.format_stack(limit=4))
            os.write(_log, f"{os.getpid()} {' '.join(sys.argv)} opened {name}\\n{stack}\\n".encode())

sys.addaudithook(_spy)
"""


def spied(folder: Path) -> dict[str, str]:
    """Settings under which each process of ours writes to `opened(folder)` what it opens past SQLite."""
    (folder / "spy").mkdir(exist_ok=True)
    (folder / "spy" / "sitecustomize.py").write_text(SPY)
    return {"PYTHONPATH": str(folder / "spy"), "OPENED_LOG": str(folder / "opened.log")}


def opened(folder: Path) -> str:
    log = folder / "opened.log"
    return log.read_text() if log.exists() else "the spy did not run"


def lost_locks(data: Path) -> list[str]:
    """Return the processes that have the database open without its locks, or a deleted file of it open."""
    watch = LockWatch(data / "lienworker.db", psutil.pids)
    watch.look()
    while watch.suspicions:  # until it is gone, or has lasted long enough to be believed
        time.sleep(0.1)
        watch.look()
    return watch.looks.sentences
