"""Lists whose parcels are wanted: what was asked for is kept with the list's own task."""

from __future__ import annotations

import json
from collections.abc import Mapping

from lienworker.db.database import execute


def want_parcels(task_id: str, about: Mapping[str, str | None]) -> None:
    """Part of a larger transaction. `about` is what all parcels of the list share."""
    sql = "UPDATE tasks SET target_json = json_set(target_json, '$.follow', json(?)) WHERE task_id = ?"
    execute(sql, (json.dumps(about), task_id))
