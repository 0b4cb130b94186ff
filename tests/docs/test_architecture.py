"""docs/architecture.md names files and functions; each of them exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "lienworker"
NAMED = re.compile(r"`([a-z_]+(?:/[a-z_]+)*\.py)(?::([A-Za-z_]+))?`")
FOLDERS = re.compile(r"^\| `([a-z]+)/` \|", re.MULTILINE)
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def named() -> list[tuple[str, str]]:
    return sorted(set(NAMED.findall(TEXT)))


def test_it_names_enough_to_be_worth_checking() -> None:
    assert len([name for _, name in named() if name]) > 20


@pytest.mark.parametrize(("path", "name"), named())
def test_what_it_names_exists(path: str, name: str) -> None:
    file = next((file for file in (PROGRAM / path, *PROGRAM.glob(f"*/{path}")) if file.is_file()), None)
    assert file, f"there is no {path}"
    defined = {getattr(node, "name", "") for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))}
    assert not name or name in defined, f"{path} has no {name}"


def test_every_room_is_in_its_table() -> None:
    rooms = {folder.name for folder in PROGRAM.iterdir() if (folder / "__init__.py").is_file()}
    assert set(FOLDERS.findall(TEXT)) == rooms
