"""What a reader passes through who follows one parcel: files, functions, and crossings between folders.

One parcel goes the happy way (import, relay, fetch, scrape, upload) in one process, under `sys.setprofile`, with a demo
county and a reference Gateway whose own calls do not count. The worker is started before; with `--start` its start
counts too, the making of a new database included. A crossing is a call from a function of ours to a function of ours in
another folder; between rooms, only the first folder below `lienworker/` is looked at.

    python -m benchmarks.crossings [--start] [--list]
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import lienworker
from lienworker.intake.rows import RejectsFile
from lienworker.outbox.relay import Lane, top_up
from lienworker.outbox.states import Topic
from lienworker.steps.import_file import How, Importer
from lienworker.testing.county.site import demo_site
from lienworker.testing.gateway import reference_gateway
from tests.harness.in_process import Desk, desk

_OURS = str(Path(lienworker.__file__).parent)
_NOT_COUNTED = f"{_OURS}/testing/"


class Trace:
    """What was called, on any thread."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.functions: set[tuple[str, str]] = set()
        self.crossings: Counter[tuple[str, str]] = Counter()
        self.is_on = False

    def __enter__(self) -> Trace:
        threading.setprofile(self._note)  # for the event loop, which starts later
        sys.setprofile(self._note)
        return self

    def __exit__(self, *problem: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not self.is_on or not (path := _ours(frame)):
            return
        self.files[path] += 1
        self.functions.add((path, frame.f_code.co_qualname))
        caller = frame.f_back
        if caller and (before := _ours(caller)) and _folder(before) != _folder(path):
            self.crossings[_folder(before), _folder(path)] += 1


def _ours(frame: FrameType) -> str:
    path = frame.f_code.co_filename
    return path.removeprefix(f"{_OURS}/") if path.startswith(_OURS) and not path.startswith(_NOT_COUNTED) else ""


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def between_rooms(crossings: Counter[tuple[str, str]]) -> int:
    return sum(n for (one, other), n in crossings.items() if one.split("/")[0] != other.split("/")[0])


class Queue:
    """Where the relay's tokens go here: one is enough to see that it sends them."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()

    def queued(self, topic: str) -> int:
        return self.sent[topic]

    def send(self, topic: str, n: int) -> None:
        self.sent[topic] += n


def one_parcel(hands: Desk, row: dict[str, str], rejects: Path) -> None:
    """Import, relay, fetch, scrape and upload it, as the actors do."""
    csv = "\n".join([",".join(row), ",".join(row.values())]).encode()
    Importer(hands.runtime.registry, io.BytesIO(csv), "parcels.csv", How()).run(RejectsFile(rejects))
    top_up([Lane(Topic.FETCH, 16)], Queue(), hands.runtime.rules)
    hands.fetch_and_scrape()
    hands.upload()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", action="store_true", help="count the start of the worker, too")
    parser.add_argument("--list", action="store_true", help="name the files and the crossings")
    asked = parser.parse_args()
    trace = Trace()
    with tempfile.TemporaryDirectory() as folder, demo_site() as site, reference_gateway() as gateway:
        trace.is_on = asked.start
        with trace, desk(Path(folder) / "data", gateway) as hands:
            trace.is_on = True
            one_parcel(hands, site.parcels(1)[0], Path(folder) / "rejects")
            trace.is_on = asked.start
        delivered = len(gateway.state.results)
    print(f"{delivered} parcel delivered: {len(trace.files)} files, {len(trace.functions)} functions,", end=" ")
    print(f"{trace.crossings.total()} crossings between folders, {between_rooms(trace.crossings)} between rooms")
    if asked.list:
        print(*sorted(trace.files), sep="\n")
        print(*(f"{n:5} {' -> '.join(pair)}" for pair, n in trace.crossings.most_common()), sep="\n")


if __name__ == "__main__":
    main()
