"""Saved pages at full size: out to a WARC and into an empty data folder, and a large WARC in flat memory.

    python -m benchmarks.saved_pages [--pages 2000] [--gigabytes 5]

The first compares every record byte for byte and has `warcio check` look at the archive. The second writes a WARC of
pages of 4 MB, imports it, and prints the peak of the importing process beside that of a WARC a tenth its size. Exit 1
where a bar is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lienworker.testing.county.site import demo_site
from tests.harness.node import Node, write_list

_PAGE_MB = 4
#: By how much the peak may grow from a tenth of the pages to all of them.
_FLAT = 1.2
_RECORDS = "SELECT task_id, platform, state, county, parcel_id, data FROM results ORDER BY task_id"


def round_trip(pages: int, where: Path) -> bool:
    node, other = Node(where / "data", STANDALONE="true"), Node(where / "other", STANDALONE="true")
    with demo_site() as site:
        done = node.cli("run", write_list(where / "list.jsonl", site.parcels(pages)), timeout=1_800)
    archive = where / "pages.warc.gz"
    out = node.cli("results", "archive", "--warc", str(archive), timeout=600)
    checked = subprocess.run(
        [sys.executable, "-m", "warcio.cli", "check", str(archive)], capture_output=True, text=True
    )
    back = other.cli("run", str(archive), timeout=1_800)
    before, after = node.sql(_RECORDS), other.sql(_RECORDS)
    is_same = before == after and len(before) == pages
    print(f"{len(before):,} results; {out.stdout.strip()}")
    print(f"warcio check: exit {checked.returncode}; back in an empty folder: {len(after):,} results,", end=" ")
    print("the same byte for byte" if is_same else "NOT the same")
    return is_same and not (done.returncode or checked.returncode or back.returncode)


def write_large(path: Path, pages: int) -> None:
    """Write pages with their own address and hardly any content: a large file of little."""
    filler = b"<!-- " + b"juniper county " * (_PAGE_MB * 1_000_000 // 15) + b" -->"
    with path.open("wb") as out:
        for n in range(pages):
            body = f"<html><p>Parcel {n:06d}</p>".encode() + filler
            http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
            head = (
                "WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http; msgtype=response\r\n"
                f"WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{n:012d}>\r\nWARC-Date: 2026-11-18T00:00:00Z\r\n"
                f"WARC-Target-URI: https://county.example/parcel/{n}\r\nContent-Length: {len(http)}\r\n\r\n"
            )
            out.write(head.encode() + http + b"\r\n\r\n")


def peak_of_import(path: Path, data: Path) -> tuple[float, float, str]:
    """Return the peak of the importing process in MB, its seconds, and what it said."""
    node, began = Node(data, STANDALONE="true"), time.monotonic()
    process = node.start("import", str(path))
    said = process.stdout.read() if process.stdout else ""
    _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_maxrss / 1024, time.monotonic() - began, said.strip().splitlines()[0]


def large(gigabytes: float, where: Path) -> bool:
    pages = int(gigabytes * 1000 / _PAGE_MB)
    peaks = []
    for n, count in enumerate((max(pages // 10, 2), pages)):
        path = where / f"large-{n}.warc"
        write_large(path, count)
        size = path.stat().st_size
        peak, seconds, said = peak_of_import(path, where / f"large-{n}")
        path.unlink()
        peaks.append(peak)
        print(f"WARC of {size / 1e9:.2f} GB, {count:,} pages: peak {peak:.0f} MB, {seconds:.0f} s; {said}", flush=True)
    return peaks[1] <= _FLAT * peaks[0]


def main() -> int:
    asked = argparse.ArgumentParser()
    asked.add_argument("--pages", type=int, default=2_000)
    asked.add_argument("--gigabytes", type=float, default=5.0)
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as base:
        is_same = not options.pages or round_trip(options.pages, Path(base))
        is_flat = not options.gigabytes or large(options.gigabytes, Path(base))
    return 0 if is_same and is_flat else 1


if __name__ == "__main__":
    sys.exit(main())
