"""What kind of file is it? Its name says so, and its first lines must agree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePath

from lienworker.errors import InputError
from lienworker.intake.mapping import propose_mapping
from lienworker.intake.objects import names_a_parcel
from lienworker.intake.tables import looks_like_table

_ENDINGS = {"csv": "csv", "tsv": "csv", "json": "json", "jsonl": "jsonl", "ndjson": "jsonl", "txt": "txt"}
_SPOKEN = {
    "csv": "a CSV table",
    "json": "JSON",
    "jsonl": "JSONL, with one JSON object a line",
    "txt": "a list of URLs, one a line",
}
_SAMPLE = 20


def detect_format(name: str, head: str, asked: str | None, chosen: Mapping[str, str] | None = None) -> str:
    """csv, json, jsonl or txt; an `InputError` where the content is not what the name or the operator says."""
    lines = _telling_lines(head)
    if lines[0].startswith("<"):
        raise InputError(f"{name} is a web page (HTML or XML), not a list of parcels; download the list itself")
    said = _asked(asked) or _by_ending(name)
    if said is None:
        return sniff(head)
    if said == "txt" and not asked and looks_like_table(head, chosen):
        return "csv"  # auction lists come as .txt, with tabs or pipes
    if not _fits(said, lines):
        raise InputError(
            f"{name} is not {_SPOKEN[said]}; its first line begins {lines[0][:40]!r}; {_remedy(said, head)}"
        )
    return said


def sniff(head: str) -> str:
    """What the content looks like by itself."""
    lines = _telling_lines(head)
    first = lines[0]
    if first.startswith("{"):
        return "jsonl" if _is_row(first) or (len(lines) > 1 and lines[1].startswith("{")) else "json"
    if first.startswith("["):
        return "json"
    return "txt" if first.lower().startswith(("http://", "https://", "#")) else "csv"


def _remedy(said: str, head: str) -> str:
    found = sniff(head)
    if found == said or (found == "csv" and not looks_like_table(head)):
        return "check that it is the right file"
    return f"it looks like {_SPOKEN[found]}: rename it, or say which format it is"


def _fits(said: str, lines: list[str]) -> bool:
    """Only what is wrong with the file as a whole; a bad row among good ones is a reject."""
    first = lines[0]
    if said == "json":
        return first[0] in "[{"
    if said == "jsonl":
        return first != "{" and first[0] != "[" and any(line.startswith("{") for line in lines)
    if said == "txt":
        return first[0] not in "[{" and any("://" in line or line.lower().startswith(("www.", "#")) for line in lines)
    return first[0] not in "[{"


def _telling_lines(head: str) -> list[str]:
    """The first lines that say something; never empty, as an empty file does not come this far."""
    lines = [line.strip() for line in head.splitlines()]
    return [line for line in lines if line and not line.startswith("#")][:_SAMPLE] or [head.strip()]


def _is_row(line: str) -> bool:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return names_a_parcel(value, propose_mapping(list(value)))


def _asked(asked: str | None) -> str | None:
    if asked is None:
        return None
    if asked.lower() not in _ENDINGS:
        raise InputError(f"there is no format {asked!r}; use csv, json, jsonl or txt")
    return _ENDINGS[asked.lower()]


def _by_ending(name: str) -> str | None:
    path = PurePath(name.lower())
    ending = PurePath(path.stem).suffix if path.suffix in (".gz", ".gzip") else path.suffix
    return _ENDINGS.get(ending[1:])
