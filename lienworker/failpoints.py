"""Named points at which the world can stop, for tests that kill the process just there.

Every commit, rename, send, request and reply has its point; tests read their names from the source
(tests/killpoints), so none is forgotten. Off in production, and free: one comparison with None.
`LIENWORKER_CRASH_AT=point` arms a point, and `LIENWORKER_CRASH_MARK=file` makes it strike once: whoever creates the
file dies.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

Hook = Callable[[str], None]

_hook: Hook | None = None


def failpoint(point: str, moment: str = "") -> None:
    """The process has come to a point, or to a moment of one (`before_commit`); whoever watches is told."""
    if _hook is not None:
        _hook(f"{point}.{moment}" if moment else point)


def watch(hook: Hook | None) -> None:
    """Calls `hook` at every point from now on, in whatever thread gets there."""
    global _hook
    _hook = hook


def strike_at(armed: str, mark: str | None = None) -> Hook:
    """A hook that ends the process at a point as if the power had gone."""

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
