"""What the monitor wants to remember: how full the disk was, and old minutes as hours."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from lienworker.store import rollups

if TYPE_CHECKING:
    from lienworker.actors.runtime import Runtime

_last_minute = 0


def chronicle(runtime: Runtime) -> None:
    """May be called as often as one likes, by any number of processes: works once a minute, folds once an hour."""
    global _last_minute
    minute = rollups.this_minute()
    if minute == _last_minute:
        return
    free_mb = shutil.disk_usage(runtime.folder.root).free // 1_000_000
    is_first = rollups.note_level("disk_free_mb", "", free_mb)
    _last_minute = minute
    if is_first and minute % 60 == 0:
        rollups.fold_old()
