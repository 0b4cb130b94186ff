"""No orphans: a process of the stack ends when the one that started it is gone.

The supervisor passes the reading end of a pipe to its children and keeps the writing end. When it dies, however it
dies, the kernel closes that end and every child reads the end of the file.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable

#: Set by the supervisor for its children; not a setting.
LIFELINE_FD = "LIENWORKER_LIFELINE_FD"


def has_supervisor() -> bool:
    """Return whether this process is a part of a stack."""
    return os.environ.get(LIFELINE_FD, "").isdigit()


def watch_supervisor(when_gone: Callable[[], None]) -> None:
    """Call `when_gone` in a separate thread when the supervisor is gone; do nothing without a supervisor."""
    number = os.environ.get(LIFELINE_FD, "")
    if number.isdigit():
        threading.Thread(target=_wait_for_end, args=(int(number), when_gone), name="lifeline", daemon=True).start()


def watch_parent(when_gone: Callable[[], None], seconds: float = 0.5) -> None:
    """Do the same for the direct parent: otherwise Dramatiq's workers outlive a killed master."""
    parent = os.getppid()
    threading.Thread(target=_wait_for_parent, args=(parent, seconds, when_gone), name="parent", daemon=True).start()


def _wait_for_end(fd: int, when_gone: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):
        os.read(fd, 1)  # nobody ever writes: it returns when the other end is closed
        when_gone()


def _wait_for_parent(parent: int, seconds: float, when_gone: Callable[[], None]) -> None:
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(seconds)
    when_gone()
