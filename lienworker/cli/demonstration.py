"""`lienworker demo`: the main job on the bundled county, in a folder of its own."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from lienworker.data_folder import DataFolder
from lienworker.queries.filters import TaskFilter
from lienworker.queries.lists import each_result
from lienworker.settings import Settings
from lienworker.store.counts import failures, task_counts
from lienworker.testing.county.site import DemoSite, demo_site

#: The parcels that fail on purpose, by reason.
_ON_PURPOSE = {"captcha": 1, "http_404": 1}


class RunFile(Protocol):
    """`lienworker run`, as a function."""

    def __call__(self, settings: Settings, file: str, options: dict[str, Any], *, is_kept: bool) -> int: ...


def demonstrate(
    settings: Settings, parcels: int, keep: Path | None, run_file: RunFile, say: Callable[[str], None]
) -> int:
    """Scrapes the demo county; 0 if everything came out as it should, the broken parcels included."""
    with ExitStack() as stack:
        site = stack.enter_context(demo_site(slow_seconds=1.0))
        root = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lienworker-demo-")))
        what_happens = "stays" if keep else "is removed at the end (--keep FOLDER leaves it)"
        say(f"Juniper County (invented) is on {site.url}; the data folder {root} {what_happens}")
        file = root / "parcels.jsonl"
        DataFolder(root).create()
        file.write_text(_list_of(site, parcels), encoding="utf-8")
        run_file(_demo_settings(settings, root), str(file), _OPTIONS, is_kept=keep is not None)
        _show_one(say)
        return _judge(parcels, say)


_OPTIONS: dict[str, Any] = {
    "platform": None, "state": None, "county": None, "queue": None, "priority": None, "format": None,
    "encoding": None, "sheet": None, "header_row": None,
    "batch_size": 100, "refresh": False, "strict": False, "maps": (), "due_by": None, "auction": None,
    "drop_after": False,
}  # fmt: skip


def _list_of(site: DemoSite, parcels: int) -> str:
    rows = site.parcels(parcels) + site.odd_parcels()
    return "".join(json.dumps(row) + "\n" for row in rows)


def _demo_settings(settings: Settings, root: Path) -> Settings:
    """Standalone, allowed to fetch from this machine, and without the patience that real counties need."""
    return replace(
        settings,
        data_dir=root.absolute(),
        redis_url=None,
        standalone=True,
        allow_private_hosts=("127.0.0.1",),
        retry_delay=0.2,
        fetch_attempts=3,
    )


def _show_one(say: Callable[[str], None]) -> None:
    """One result, so that a newcomer sees what all this is for."""
    for row in islice(each_result(TaskFilter()), 1):
        data = row["data"]
        liens, sales = len(data.get("liens", [])), len(data.get("sales", []))
        say(f"For example {row['parcel_id']}: {data.get('owner_name')}, {data.get('property_address')},")
        say(f"  total due {data.get('total_due')}, {liens} liens, {sales} sales")


def _judge(parcels: int, say: Callable[[str], None]) -> int:
    wanted = parcels + 2  # the slow parcel and the busy one complete too
    is_well = task_counts()["completed"] == wanted and {reason: n for reason, n, _ in failures()} == _ON_PURPOSE
    say(
        "As it should be: the two failures are parcels that are broken on purpose."
        if is_well
        else f"This is not as it should be: {wanted} completed and the failures {_ON_PURPOSE} were expected."
    )
    return 0 if is_well else 1
