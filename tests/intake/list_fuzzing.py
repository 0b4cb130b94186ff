"""Damaged workbooks and PDF documents by the thousand: rows, rejects or one clear sentence, and never a crash.

    python -m tests.intake.list_fuzzing [--mutations 10000] [--seed 1]      (make fuzz-lists)

The jobs are those of an import, in a child with its limits; the child lives on from file to file, which an import's
does not, because starting it takes longer than reading a small list.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator

from lienworker.errors import InputError, PageError
from lienworker.intake import Defaults, ParcelRow, read_parcels
from lienworker.intake.packed import WORKBOOK_LIMITS
from lienworker.intake.pdf import PDF_LIMITS
from lienworker.limited import LimitedProcess, OverLimitError
from tests.harness.pdf_lists import aligned, ruled
from tests.intake.test_workbooks import HEADER, ods, xls, xlsx

_ROWS = [[f"00-{n:03d}", f"OTTER {n}", f"{n * 10}.50", "2026-11-18"] for n in range(12)]
_WIDTHS = [110, 120, 130, 110]
SEEDS = {
    "xlsx": xlsx([HEADER, *_ROWS]),
    "xls": xls([HEADER, *_ROWS]),
    "ods": ods([HEADER, *_ROWS]),
    "ruled pdf": ruled(HEADER, _ROWS, _WIDTHS),
    "aligned pdf": aligned(HEADER, _ROWS, _WIDTHS),
}
_SCRAPS = [
    b"\0",
    b"\xff" * 4,
    b"<",
    b">",
    b"&",
    b"1e9",
    b"-1",
    b"4294967295",
    b"9" * 40,
    b"R",
    b"obj",
    b"<<",
    b"stream",
]
_ABOUT = {"sheet": None, "header_row": None, "columns": []}


def damage(content: bytes, dice: random.Random) -> bytes:
    """Bytes put in, changed, taken out, repeated or cut off."""
    made = bytearray(content)
    for _ in range(dice.randint(1, 6)):
        place, length = dice.randint(0, len(made)), dice.randint(1, 8)
        match dice.randrange(5):
            case 0:
                made[place : place + length] = dice.choice(_SCRAPS)
            case 1:
                made[place : place + length] = dice.randbytes(length)
            case 2:
                made[place:place] = made[place : place + 60] * dice.randint(1, 10)
            case 3:
                del made[place : place + length]
            case _:
                del made[max(place, len(made) // 2) :]
    return bytes(made)


def damaged(kind: str, dice: random.Random) -> bytes:
    """A damaged file; of a zip archive mostly a member, so that more than the archive itself is damaged."""
    content = SEEDS[kind]
    if kind not in ("xlsx", "ods") or dice.random() < 0.2:
        return damage(content, dice)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as seed, zipfile.ZipFile(out, "w") as made:
        chosen = dice.choice(seed.namelist())
        for name in seed.namelist():
            made.writestr(name, damage(seed.read(name), dice) if name == chosen else seed.read(name))
    return out.getvalue()


def outcome(child: LimitedProcess, kind: str, content: bytes) -> str:
    """Read it as an import does. What breaks the reader's word is an AssertionError."""
    job = "pdf_table" if kind.endswith("pdf") else "workbook"
    try:
        packed = child.run(f"lienworker.intake.{job}:convert", _ABOUT, content)
    except PageError as problem:
        return _refusal(problem.detail if problem.reason != "parser_failed" else f"crash\n{problem.detail}")
    except OverLimitError as problem:
        return f"over a limit: {problem}"
    return _pdf(packed) if job == "pdf_table" else _workbook(packed)


def _refusal(words: str) -> str:
    assert "\n" not in words, f"an error is one sentence: {words}"
    return "refused"


def _pdf(packed: bytes) -> str:
    items = [json.loads(line) for line in gzip.decompress(packed).splitlines()]
    assert "header" in items[0]
    assert all("problem" in item or len(item["cells"]) == len(items[0]["header"]) for item in items[1:])
    return "rows" if any("cells" in item for item in items) else "rejects"


def _workbook(packed: bytes) -> str:
    try:
        found = list(read_parcels(io.BytesIO(packed), defaults=Defaults(platform="demo")))
    except InputError as problem:
        return _refusal(str(problem))
    return "rows" if any(isinstance(item, ParcelRow) for item in found) else "rejects"


def outcomes(mutations: int, seed: int) -> Iterator[tuple[str, str]]:
    dice = random.Random(seed)
    workbooks = LimitedProcess(WORKBOOK_LIMITS, quiet=True)
    documents = LimitedProcess(PDF_LIMITS, quiet=True)
    try:
        for n in range(mutations):
            kind = list(SEEDS)[n % len(SEEDS)]
            child = documents if kind.endswith("pdf") else workbooks
            yield kind, outcome(child, kind, damaged(kind, dice))
    finally:
        workbooks.close()
        documents.close()


def main() -> int:
    asked = argparse.ArgumentParser()
    asked.add_argument("--mutations", type=int, default=10_000)
    asked.add_argument("--seed", type=int, default=1)
    options = asked.parse_args()
    counts = Counter(outcomes(options.mutations, options.seed))
    for (kind, what), n in sorted(counts.items()):
        print(f"{kind}: {n:,} {what}")
    print(f"{sum(counts.values()):,} damaged lists (seed {options.seed}), no crash")
    return 0


if __name__ == "__main__":
    sys.exit(main())
