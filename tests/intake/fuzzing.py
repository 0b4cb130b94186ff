"""Damaged import files by the hundred thousand: whatever the bytes are, there are rows, rejects or one clear sentence.

    python tests/intake/fuzzing.py [--mutations 100000] [--seed 1]      (make fuzz)

A file that breaks something is kept in tests/intake/cases/, which the tests read again each time.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path

from lienworker.errors import InputError
from lienworker.intake import Layout, ParcelRow, Reject, read_parcels

CASES = Path(__file__).with_name("cases")
FORMATS = [None, "csv", "json", "jsonl", "txt"]
SEEDS = [
    b'url,parcel_id\nhttp://a.example/1,001\n"http://a.example/2","0""0\n"\n',
    b'{"url":"http://a.example/1"}\n{"url":"http://a.example/2","x":[1,{"a":2}]}\n',
    b'[{"url":"http://a.example/1"},\n {"url":"http://a.example/2","x":[1,{"a":2}]}\n]',
    b'{"n":3,"parcels":[{"url":"http://a.example/1"},{"url":"http://a.example/2"}]}',
    b"http://a.example/1\n# c\nhttp://a.example/2\n",
    b"Parcel ID|Certificate|Face Amount|url\n1|2|$3.00|http://a.example/1\n",
    "\ufeffurl;county\nhttp://a.example/1;Doña\n".encode("utf-16"),
    gzip.compress(b"url\nhttp://a.example/1\n"),
]
SCRAPS = [
    b'"', b"\n", b"\r", b"\0", b"\xff", b"{", b"}", b"[", b"]", b",", b";", b"|", b"\t", b"\\u0000", b"\\ud800",
    b"NaN", b"-1e999", b"url", b"http://", b"file:///etc/passwd", b"\xef\xbb\xbf", b"\xff\xfe", b"=cmd()", b"9" * 400,
]  # fmt: skip
#: No small file may take longer than this, s.
LONGEST = 2.0


def damaged(dice: random.Random) -> bytes:
    """A file with bytes put in, taken out, repeated, cut off or taken from another."""
    content = bytearray(dice.choice(SEEDS))
    for _ in range(dice.randint(1, 8)):
        place, length = dice.randint(0, len(content)), dice.randint(0, 6)
        match dice.randrange(5):
            case 0:
                content[place : place + length] = dice.choice(SCRAPS)
            case 1:
                content[place : place + length] = dice.randbytes(length)
            case 2:
                content[place:place] = content[place : place + 40] * dice.randint(1, 20)
            case 3:
                del content[place:]
            case _:
                other = dice.choice(SEEDS)
                content[place:place] = other[dice.randint(0, len(other)) :]
    return bytes(content)


def read(content: bytes, form: str | None) -> str:
    """Reads it as the importer does; raises AssertionError where the reader broke its word."""
    found, refusal, began = [], "", time.thread_time()
    try:
        found.extend(read_parcels(io.BytesIO(content), layout=Layout(format=form)))
    except InputError as error:
        refusal = str(error)
    assert time.thread_time() - began < LONGEST, "it took too long"
    assert len(refusal.splitlines()) <= 1, "an error is one sentence"
    lines = [item.line for item in found]
    assert lines == sorted(lines), "rows out of order"
    for item in found:
        assert isinstance(item, ParcelRow | Reject)
        text = item.raw + item.detail if isinstance(item, Reject) else f"{item} {json.dumps(item.extra)}"
        text.encode()  # nothing that a file or a database would refuse
    return "refused" if refusal else "rows" if any(isinstance(item, ParcelRow) for item in found) else "rejects"


def campaign(mutations: int, seed: int) -> Counter[str]:
    """Tries that many files; one that breaks something is kept."""
    dice, outcomes = random.Random(seed), Counter[str]()
    for _ in range(mutations):
        content, form = damaged(dice), dice.choice(FORMATS)
        try:
            outcomes[read(content, form)] += 1
        except Exception as problem:
            outcomes["broken"] += 1
            name = hashlib.sha256(content).hexdigest()[:12]
            CASES.mkdir(exist_ok=True)
            (CASES / f"{name}.{form or 'any'}").write_bytes(content)
            print(f"{name} as {form}: {type(problem).__name__}: {problem}", file=sys.stderr)
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    began = time.monotonic()
    outcomes = campaign(chosen.mutations, chosen.seed)
    told = ", ".join(f"{n:,} {outcome}" for outcome, n in sorted(outcomes.items()))
    print(f"{chosen.mutations:,} files in {time.monotonic() - began:.0f} s: {told}")
    sys.exit(1 if outcomes["broken"] else 0)


if __name__ == "__main__":
    main()
