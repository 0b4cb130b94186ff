"""Definitions as people write them down, in TOML or YAML, and the line of what is wrong in one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lienworker.platforms.catalog.definitions import Definition, DefinitionError
from lienworker.platforms.core.base import Platform

if TYPE_CHECKING:
    from yaml import Node

SUFFIXES = (".toml", ".yaml", ".yml")


def load_definition(file: Path, find: Callable[[str], Platform]) -> Platform:
    """The platform of a file. Raises ValueError in words, with the line where that can be told."""
    written = file.read_text(encoding="utf-8-sig")
    said = _toml(written) if file.suffix == ".toml" else _yaml(written)
    if not isinstance(said, dict):
        raise ValueError("it is not a definition: there are no names with values in it")
    try:
        return Definition(said, file.stem, find)
    except DefinitionError as wrong:
        line = line_of(written, wrong.where)
        raise ValueError(f"line {line}: {wrong}" if line else str(wrong)) from None


def line_of(written: str, where: tuple[str, ...]) -> int | None:
    """The line on which these names follow each other, the outer ones first; None where one is not there."""
    place = line = 0
    lines = written.splitlines()
    for name in where:
        names_it = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
        for line in range(place, len(lines)):
            if not lines[line].lstrip().startswith("#") and names_it.search(lines[line]):
                break
        else:
            return None
        place = line  # not the next one: TOML has many names on a line
    return line + 1 if where else None


def _toml(written: str) -> Any:
    try:
        return tomllib.loads(written)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"it is no TOML: {error}") from None


def _yaml(written: str) -> Any:
    import yaml  # here, since few write YAML and every command pays for an import

    try:
        loader = yaml.SafeLoader(written)  # plain data only
        node = loader.get_single_node()
        if node is not None:
            _check_names(node)
        return loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"{line}it is no YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ValueError(f"it is no YAML: {error}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply, or within itself") from None


def _check_names(node: Node) -> None:
    """A name that is there twice is refused, as TOML does it; PyYAML would forget the first."""
    seen: set[str] = set()
    for name, value in node.value if node.tag.endswith(":map") else ():
        line = name.start_mark.line + 1
        if name.value in seen:
            raise ValueError(f"line {line}: {name.value!r} is there twice")
        if not name.tag.endswith((":str", ":merge")):
            raise ValueError(f"line {line}: the name {name.value!r} needs quotes, or YAML takes it for something else")
        seen.add(name.value)
        _check_names(value)
