"""The fenced blocks of README, CONTRIBUTING and docs/: what is in them, and which are not to be run, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^(?:<!-- not run: (?P<why>.+?) -->\n+)?```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    kind: str
    text: str
    why_not: str | None

    @property
    def commands(self) -> list[str]:
        """One command a line; a backslash or a here-document goes on to the next."""
        return list(_joined(self.text))


def documents() -> list[Path]:
    pages = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md")))
    return [path for path in pages if path.exists()]


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(str(page.relative_to(ROOT)), text.count("\n", 0, m.start()) + 1, m["kind"].strip(), m["text"], m["why"])
        for m in _FENCE.finditer(text)
    ]


def _joined(text: str) -> Iterator[str]:
    lines = iter(text.splitlines())
    for line in lines:
        command = line
        while command.endswith("\\"):
            command = command[:-1] + next(lines)
        if here := re.search(r"<<\s*'?(\w+)'?", command):
            for more in lines:
                command += "\n" + more
                if more == here[1]:
                    break
        if command.strip() and not command.lstrip().startswith("#"):
            yield command.strip()
