"""Puts the manual pages, made from the program's own help, into the wheel."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManualPages(BuildHookInterface[Any]):
    """Runs before a wheel is built; an editable install has the sources and needs no pages."""

    _folder: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        sys.path.insert(0, self.root)
        try:
            from lienworker.cli.manual import write_pages

            pages = write_pages(Path(self._folder.name))
        finally:
            sys.path.remove(self.root)
        build_data["shared_data"].update({str(page): f"share/man/man1/{page.name}" for page in pages})

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._folder is not None:
            self._folder.cleanup()
