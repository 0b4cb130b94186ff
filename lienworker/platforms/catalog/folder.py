"""Platforms from a folder: Python files with a PLATFORM, and definitions in TOML or YAML.

A file that cannot be used is left out, with one sentence that names it; the others are not touched by it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from importlib.util import cache_from_source, module_from_spec, spec_from_file_location
from pathlib import Path

from lienworker.platforms.catalog.definitions import SUFFIXES, load_definition
from lienworker.platforms.catalog.registry import Registry, default_registry
from lienworker.platforms.core.base import Platform
from lienworker.trust import distrust

logger = logging.getLogger(__name__)


def registry_with(folder: Path | None) -> Registry:
    """The platforms of this installation and of a folder, the folder's first: who wrote them meant them."""
    registry = default_registry()
    if folder is None:
        return registry
    registry = registry.copy()
    registry.folder = folder
    if not folder.is_dir():
        _leave_out(registry, folder, "it is not a folder; make it, or unset LIENWORKER_PLATFORMS")
        return registry
    if words := distrust(folder):
        _leave_out(registry, folder, words)
        return registry
    for file in sorted(folder.iterdir(), reverse=True):  # what is added last is asked first
        if file.suffix in (".py", *SUFFIXES) and not file.name.startswith((".", "_", "test_", "conftest")):
            _take(registry, file)
    return registry


def _take(registry: Registry, file: Path) -> None:
    try:
        registry.add(load_file(file), str(file))
    except ValueError as problem:
        _leave_out(registry, file, str(problem))
    except (Exception, SystemExit) as problem:
        _leave_out(registry, file, f"{type(problem).__name__}: {problem}")


def _leave_out(registry: Registry, place: Path, why: str) -> None:
    words = f"{place} is left out: {' '.join(why.split())}"
    registry.broken.append(words)
    logger.warning("%s", words)


def load_file(file: Path) -> Platform:
    """The platform of a file. Raises whatever is wrong with it; one that others can write is not even read."""
    for place in (file, *_compiled(file)):
        if words := distrust(place):
            raise ValueError(words)
    return _load_python(file) if file.suffix == ".py" else load_definition(file, default_registry().get)


def _compiled(file: Path) -> Iterator[Path]:
    """Where Python looks for the module's code before it reads the file itself."""
    if file.suffix == ".py":
        cached = Path(cache_from_source(file))
        yield from (cached.parent, cached)


def _load_python(file: Path) -> Platform:
    name = f"lienworker_platforms_{file.stem}"
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ValueError("it is not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    platform = getattr(module, "PLATFORM", None)
    if not isinstance(platform, Platform):
        raise ValueError("it has no PLATFORM that is a lienworker.platforms.Platform")
    return platform
