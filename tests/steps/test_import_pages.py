"""Saved pages become rows and raw files, and no file is left without its row."""

from __future__ import annotations

import json
from pathlib import Path

from lienworker.db.database import all_rows, open_store
from lienworker.intake.rows import RejectsFile
from lienworker.platforms import default_registry
from lienworker.steps.import_file import How, Tally
from lienworker.steps.import_pages import PageImporter

URL = "https://county.example/parcel/1"


def har(path: Path, *pages: tuple[str, str]) -> Path:
    entries = [
        {"request": {"url": url}, "response": {"status": 200, "content": {"mimeType": "text/html", "text": text}}}
        for url, text in pages
    ]
    path.write_text(json.dumps({"log": {"entries": entries}}))
    return path


def import_pages(tmp_path: Path, *pages: tuple[str, str]) -> Tally:
    folder = open_store(tmp_path / "data")
    importer = PageImporter(folder, default_registry(), har(tmp_path / "a.har", *pages), How(), 1_000_000)
    return importer.run(RejectsFile(tmp_path / "rejects.csv"))


def raw_files(tmp_path: Path) -> set[str]:
    data = tmp_path / "data"
    return {str(file.relative_to(data)) for file in (data / "raw").rglob("*.gz")}


def test_the_same_address_twice_is_two_rounds_of_its_task(tmp_path: Path) -> None:
    tally = import_pages(tmp_path, (URL, "<p>first</p>"), (f"{URL}2", "<p>other</p>"), (URL, "<p>second</p>"))

    named = [path for (path,) in all_rows("SELECT path FROM pages")]
    assert len(named) == 3
    assert raw_files(tmp_path) == set(named)
    assert (tally.added, tally.refreshed) == (2, 1)
    assert all_rows("SELECT generation FROM tasks WHERE url = ?", (URL,)) == [(2,)]


def test_the_same_page_twice_is_one(tmp_path: Path) -> None:
    tally = import_pages(tmp_path, (URL, "<p>first</p>"), (URL, "<p>first</p>"))

    assert len(raw_files(tmp_path)) == len(all_rows("SELECT path FROM pages")) == 1
    assert (tally.added, tally.known) == (1, 1)
