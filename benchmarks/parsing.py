"""Our parsers against a bare parsel script that reads the same fields from the same page.

The bare script is what somebody would write for one page and throw away: `Selector(text=…)`, then one
`selector.xpath(…)` a value, with the path that a browser's "copy XPath" gives (from the nearest id down), and a loop
over rows and cells for the tables that histories come from, the spaces of each text folded. A value that is a part of
a longer text (`Parcel ID: 12-3 Tax Year: 2020`) is read as that text, once, and the cutting is a present to the bare
script; the head of a table is read only where it holds a value (years) that is nowhere else. The paths are found
beforehand, outside the measurement. It knows no money and no dates, has no names for anything and works on that one
page only. What we do beyond it is cleaning, histories by year, and every label under `fields`. Both know whose page it
is, as a task with its platform does, and its encoding, as the HTTP header says it; what it costs to find out from the
page alone whose it is, is said apart.

Times are the CPU's, the quickest of many rounds, both sides by turns, so that a busy machine does not decide. A page
that is over the bar is measured again, longer; the quickest of all rounds counts, on both sides. Each page decides:
the exit status is 1 where one is over the bar, however quick the others are.

`--generic` compares the reader for pages of unknown sites with the named platforms instead, on the pages that these
know.

    python -m benchmarks.parsing [--rounds 30] [--generic] [--file page.html …]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from parsel import Selector

from lienworker.errors import PageError
from lienworker.platforms import Page, Target, default_registry
from lienworker.platforms.core import clean

BAR, GENERIC_BAR = 1.15, 1.6
_LONGER = 5  # times as many rounds for a page that is over
_TELLING = 4  # characters; a shorter text is found anywhere
_LONGEST_DATE = 40
_LONGEST_AROUND = 500
_ROOT = Path(__file__).resolve().parents[1]
_OWN = _ROOT / "tests" / "fixtures" / "pages"
_SHARED = _ROOT / ".." / "shared" / "pages"
_MORE = _ROOT / ".." / "shared" / "pages-more"


@dataclass(frozen=True)
class Measured:
    file: str
    platform: str
    values: int
    kilobytes: float
    bare_ms: float
    ours_ms: float
    detecting_ms: float

    @property
    def ratio(self) -> float:
        return self.ours_ms / self.bare_ms

    @property
    def is_over(self) -> bool:
        return self.ratio > BAR

    def quickest(self, other: Measured) -> Measured:
        """Both sides at their best: what disturbs a measurement only ever adds."""
        bare_ms, ours_ms = min(self.bare_ms, other.bare_ms), min(self.ours_ms, other.ours_ms)
        return replace(self, bare_ms=bare_ms, ours_ms=ours_ms)


def leaves(value: Any) -> Iterator[str]:
    """Every text and number of a record, as text."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield str(value)


@dataclass(frozen=True)
class Script:
    """The bare script of one page: a path a value, and the tables that are read row by row."""

    values: list[str]
    tables: list[str]
    headed: list[str]
    """Tables whose head holds values too: the years of a history, the number of an installment."""

    def read(self, body: bytes) -> Any:
        selector = Selector(text=body.decode("utf-8", "replace"), type="html")
        found: list[Any] = [folded(selector.xpath(path).get()) for path in self.values]
        for path in self.tables:
            for row in selector.xpath(path).xpath("./tr | ./tbody/tr"):
                found.append([folded(cell.xpath("string()").get()) for cell in row.xpath("./td")])
        for path in self.headed:
            for row in selector.xpath(path).xpath(".//tr"):
                found.append([folded(cell.xpath("string()").get()) for cell in row.xpath("./td | ./th")])
        return found

    def unread(self, body: bytes, record: dict[str, Any]) -> list[str]:
        """What the record holds and no text that is read contains, though it is long enough to be told apart."""
        texts = "\n".join(squeezed(text) for text in leaves(self.read(body)))
        wanted = dict.fromkeys(leaf for leaf in leaves(record) if len(squeezed(leaf)) >= _TELLING)
        return [leaf for leaf in wanted if not any(form in texts for form in _written(leaf))]


def squeezed(text: str) -> str:
    """Without spaces: a value of several lines has breaks in the page and spaces in the record."""
    return "".join(text.split())


def _written(leaf: str) -> list[str]:
    """How a page may write a value inside of a longer text."""
    amount = clean.money(leaf)
    return [squeezed(leaf), *([f"{amount:,.0f}", f"{amount:,.2f}"] if amount and "." in leaf else [])]


def _around(root: Any, missing: list[str]) -> Iterator[str]:
    """The paths of the shortest texts around values that are a part of them, each once; never half a page."""
    every = ((element, squeezed("".join(element.itertext()))) for element in root.iter("*") if _is_shown(element))
    texts = {element: text for element, text in every if len(text) <= _LONGEST_AROUND}
    found: dict[Any, None] = {}
    for leaf in missing:
        forms = _written(leaf)
        around = [element for element, text in texts.items() if any(form in text for form in forms)]
        if around:
            found[min(reversed(around), key=lambda element: len(texts[element]))] = None
    yield from (f"string({copied_path(element)})" for element in found)


def _has_in_head(table: Any, missing: list[str]) -> bool:
    heads = "\n".join(squeezed("".join(head.itertext())) for head in table.iter("th"))
    return any(form in heads for leaf in missing for form in _written(leaf))


def _is_shown(element: Any) -> bool:
    return element.tag not in ("script", "style", "head", "title") and not any(
        above.tag in ("script", "style", "head") for above in element.iterancestors()
    )


def folded(text: str | None) -> str:
    return " ".join((text or "").split())


def script_for(body: bytes, record: dict[str, Any]) -> Script:
    """A path for each field of the record where the page shows it, and the tables of the histories."""
    root = Selector(text=body.decode("utf-8", "replace"), type="html").root
    tables = [table for table in root.iter("table") if _is_history(table)] if _has_histories(record) else []
    inside = {element for table in tables for element in table.iter()}
    # A value that is both under `fields` and under a canonical name is one field of the page.
    rest = {name: value for name, value in record.items() if name != "fields"}
    wanted = Counter(leaves(record.get("fields", {}))) | Counter(leaves(rest))
    values: list[str] = []
    for element in root.iter("*"):
        if not isinstance(element.tag, str) or element.tag in ("script", "style") or element in inside:
            continue
        text = folded("".join(element.itertext()))
        if not text or any(folded("".join(child.itertext())) == text for child in element.iterchildren("*")):
            continue
        if form := next((form for form in _forms(text) if wanted[form] > 0), None):
            wanted[form] -= 1
            values.append(f"string({copied_path(element)})")
    missing = Script(values, list(map(copied_path, tables)), []).unread(body, record)
    headed = [table for table in tables if _has_in_head(table, missing)]
    plain = [copied_path(table) for table in tables if table not in headed]
    script = Script(values, plain, list(map(copied_path, headed)))
    return replace(script, values=values + list(_around(root, script.unread(body, record))))


def _forms(text: str) -> Iterator[str]:
    """What a record may hold of a text that a page shows."""
    yield text
    if (amount := clean.money(text)) is not None:
        yield str(amount)
        yield str(int(amount))
    # A named date is found anywhere in a text; in a long one it is not what the text is.
    if len(text) <= _LONGEST_DATE and (date := clean.iso_date(text)):
        yield date


def copied_path(element: Any) -> str:
    """As a browser copies it: from the nearest element with an id, else from the top."""
    steps: list[str] = []
    while element is not None and not element.get("id"):
        parent = element.getparent()
        same = [child for child in parent if child.tag == element.tag] if parent is not None else [element]
        steps.insert(0, f"{element.tag}[{same.index(element) + 1}]" if len(same) > 1 else str(element.tag))
        element = parent
    head = "" if element is None else f"//*[@id={quoted(element.get('id'))}]"
    return "/".join([head, *steps])


def quoted(text: str) -> str:
    return f"'{text}'" if "'" not in text else f'"{text}"'


def _has_histories(record: dict[str, Any]) -> bool:
    return any(isinstance(value, list) and value and isinstance(value[0], dict) for value in record.values())


def _is_history(table: Any) -> bool:
    """Rows of several cells, and no table inside it."""
    rows = [row for row in table.iter("tr") if sum(child.tag == "td" for child in row) > 2]
    return bool(rows) and not any(inner is not table for inner in table.iter("table"))


def bare(body: bytes, script: Script) -> Callable[[], Any]:
    return lambda: script.read(body)


def ours(body: bytes, platform: str | None) -> Callable[[], Any]:
    registry, target = default_registry(), Target(platform=platform)
    return lambda: registry.parse(Page("", body, charset="utf-8"), target)


def best_ms(works: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """The quickest of many of each: what else the machine does only ever adds."""
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for place, work in enumerate(works):
            began = time.process_time()
            work()
            best[place] = min(best[place], time.process_time() - began)
    return [1000 * seconds for seconds in best]


def measure(file: Path, rounds: int) -> Measured | None:
    """None for what no bare parsel script would read: JSON, text, lists, pages without a record."""
    body = file.read_bytes()
    try:
        parsed = default_registry().parse(Page("", body), Target())
    except PageError:
        return None
    if b"<" not in body[:200] or "parcels" in parsed.record:
        return None
    script = script_for(body, parsed.record)
    cells = sum(len(row) for row in script.read(body)[len(script.values) :])
    works = (bare(body, script), ours(body, parsed.platform), ours(body, None))
    times = best_ms(works, rounds)
    times[2] -= times[1]
    return Measured(file.name, parsed.platform, len(script.values) + cells, len(body) / 1024, *times)


def measure_well(file: Path, rounds: int) -> Measured | None:
    """Longer where the page is over the bar."""
    row = measure(file, rounds)
    if row is None or not row.is_over:
        return row
    longer = measure(file, _LONGER * rounds)
    return row.quickest(longer) if longer else row


@dataclass(frozen=True)
class Compared:
    """One page, read by its platform and by the reader for unknown sites."""

    file: str
    platform: str
    named_ms: float
    generic_ms: float

    @property
    def ratio(self) -> float:
        return self.generic_ms / self.named_ms


def compare(file: Path, rounds: int) -> Compared | None:
    """None for what no named platform reads."""
    body, registry = file.read_bytes(), default_registry()
    try:
        platform = registry.parse(Page("", body), Target()).platform
        registry.parse(Page("", body), Target(platform="generic"))
    except PageError:
        return None
    if platform == "generic":
        return None
    return Compared(file.name, platform, *best_ms((ours(body, platform), ours(body, "generic")), rounds))


def compare_all(files: Sequence[Path], rounds: int) -> bool:
    rows = [row for file in files if (row := compare(file, rounds))]
    print(f"{'page':<52} {'platform':<14} {'named ms':>8} {'generic':>8} {'ratio':>6}")
    for row in sorted(rows, key=lambda row: row.ratio):
        print(f"{row.file[:52]:<52} {row.platform:<14} {row.named_ms:>8.2f} {row.generic_ms:>8.2f} {row.ratio:>6.2f}")
    total = sum(row.generic_ms for row in rows) / sum(row.named_ms for row in rows)
    over = [row for row in rows if row.ratio > GENERIC_BAR]
    print(f"\nall pages together   {total:.2f}   (bar: {GENERIC_BAR})")
    print(f"pages over the bar   {len(over)} of {len(rows)}: {', '.join(row.file for row in over) or 'none'}")
    return not over


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--file", type=Path, nargs="*", default=[])
    parser.add_argument("--generic", action="store_true")
    chosen = parser.parse_args()
    files = chosen.file or [*sorted(_OWN.glob("*.html")), *sorted(_SHARED.glob("*/*.html"))]
    if chosen.generic:
        real = chosen.file or [*sorted(_SHARED.glob("*/*.html")), *sorted(_MORE.rglob("*.html"))]
        sys.exit(0 if compare_all(real, chosen.rounds) else 1)
    rows = [row for file in files if (row := measure_well(file, chosen.rounds))]
    print(f"{'page':<52} {'platform':<12} {'values':>6} {'KB':>6} {'bare ms':>8} {'ours ms':>8} {'ratio':>6}")
    for row in sorted(rows, key=lambda row: row.ratio):
        times = f"{row.bare_ms:>8.2f} {row.ours_ms:>8.2f} {row.ratio:>6.2f}{' over' if row.is_over else ''}"
        print(f"{row.file[:52]:<52} {row.platform:<12} {row.values:>6} {row.kilobytes:>6.0f} {times}")
    total = sum(row.ours_ms for row in rows) / sum(row.bare_ms for row in rows)
    print(f"\nall pages together   {total:.2f}   (bar: {BAR})")
    over = [row for row in rows if row.is_over]
    print(f"pages over the bar   {len(over)} of {len(rows)}: {', '.join(row.file for row in over) or 'none'}")
    print(f"a page on average    {geometric_mean(row.ratio for row in rows):.2f}")
    print(
        f"finding out whose    {sum(row.detecting_ms for row in rows) / len(rows):.2f} ms a page, where nothing says it"
    )
    print(
        "verdict              " + ("every page is within the bar" if not over else "not every page is within the bar")
    )
    sys.exit(1 if over else 0)


if __name__ == "__main__":
    main()
