"""Failpoints: named points where a test can kill the process, to prove that no moment of a crash loses work.

Every commit, rename, message and request has a failpoint (a *kill point* in the tests) right before and right after it.
The tests in tests/killpoints read the names from the source, so that none is forgotten, find a scenario that reaches
each point, kill the process there with SIGKILL, start it again and check that every promise still holds. A crash
anywhere else looks like one at a point, since nothing durable happens in between.

In production the points are off and cost one comparison with None. `LIENWORKER_CRASH_AT=point` arms one, and
`LIENWORKER_CRASH_MARK=file` makes it strike once: the process that creates the file dies. Mocking the calls that fail
was rejected: a mock cannot leave a half-written file, a held lock or an open transaction behind, and a kill does.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

Hook = Callable[[str], None]

_hook: Hook | None = None


def failpoint(point: str, moment: str = "") -> None:
    """Announce that the process has reached a point, or a moment of one (`before_commit`)."""
    if _hook is not None:
        _hook(f"{point}.{moment}" if moment else point)


def watch(hook: Hook | None) -> None:
    """Call `hook` at every point from now on, in whichever thread reaches it."""
    global _hook
    _hook = hook


def strike_at(armed: str, mark: str | None = None) -> Hook:
    """Return a hook that kills the process at a point, as if the power had failed."""

    def strike(point: str) -> None:
        if point == armed and (mark is None or _is_first(mark)):
            os.kill(os.getpid(), signal.SIGKILL)

    return strike


def _is_first(mark: str) -> bool:
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


if "LIENWORKER_CRASH_AT" in os.environ:
    watch(strike_at(os.environ["LIENWORKER_CRASH_AT"], os.environ.get("LIENWORKER_CRASH_MARK")))
