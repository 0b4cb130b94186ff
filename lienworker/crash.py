"""Named points at which the world can stop, for tests that kill the process just there.

Off in production, and free: one comparison with None. `LIENWORKER_CRASH_AT=point` arms a point, and
`LIENWORKER_CRASH_MARK=file` makes it strike once: whoever creates the file dies.
"""

from __future__ import annotations

import os
import signal

_armed = os.environ.get("LIENWORKER_CRASH_AT")
_mark = os.environ.get("LIENWORKER_CRASH_MARK")


def reach(point: str) -> None:
    """The process has come to a point; if that is the armed one, it ends here as if the power had gone."""
    if _armed is not None and point == _armed:
        _strike()


def _strike() -> None:
    if _mark:
        try:
            os.close(os.open(_mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
    os.kill(os.getpid(), signal.SIGKILL)
