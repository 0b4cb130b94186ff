"""Pages that a person saved, from the door to the result: nothing is fetched, and archives go out and in unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from warcio.cli import main as warcio

from lienworker.testing.county.site import demo_site
from tests.harness.node import Node, write_list

pytestmark = pytest.mark.slow

_OF_RESULT = ("task_id", "platform", "state", "county", "parcel_id", "data")


def results(node: Node) -> list[dict[str, Any]]:
    found = node.json("results", "list", "--limit", "10000")
    return sorted(({name: row[name] for name in _OF_RESULT} for row in found), key=lambda row: str(row["task_id"]))


@pytest.fixture
def scraped(tmp_path: Path) -> Node:
    """A node with sixty results, with columns of the operator's own."""
    node = Node(tmp_path / "data", STANDALONE="true")
    with demo_site() as site:
        rows = [row | {"case_no": f"C-{n}"} for n, row in enumerate(site.parcels(60))]
        assert node.cli("run", write_list(tmp_path / "list.jsonl", rows)).returncode == 0
    return node


def test_pages_go_out_as_warc_and_come_back_as_the_same_results(scraped: Node, tmp_path: Path) -> None:
    archive = tmp_path / "pages.warc.gz"
    assert "60 pages written" in scraped.cli("results", "archive", "--warc", str(archive)).stdout
    with pytest.raises(SystemExit) as checked:
        warcio(["check", str(archive)])
    assert checked.value.code in (0, None)

    other = Node(tmp_path / "other", STANDALONE="true")  # the county is gone: nothing can be fetched
    done = other.cli("run", str(archive))
    assert (done.returncode, done.stderr.splitlines()[0][:8]) == (0, "60 pages"), done.stderr

    assert results(other) == results(scraped)
    assert other.sql("SELECT count(*) FROM outbox WHERE topic = 'fetch'") == [(0,)]
    assert "60 already known" in other.cli("import", str(archive)).stderr


def test_a_task_that_the_site_refused_is_done_by_its_saved_page(scraped: Node, tmp_path: Path) -> None:
    """Closed to robots, open to people: the list came first, the pages later."""
    archive = tmp_path / "pages.warc.gz"
    assert scraped.cli("results", "archive", "--warc", str(archive)).returncode == 0
    other = Node(tmp_path / "other", STANDALONE="true", LIENWORKER_FETCH_ATTEMPTS="1")
    assert other.cli("import", str(tmp_path / "list.jsonl")).returncode == 0
    assert other.cli("tasks", "cancel", "--all", "--yes").returncode == 0
    assert other.statuses() == {"failed": 60}

    assert "60 to be refreshed" in other.cli("run", str(archive)).stderr

    assert other.statuses() == {"completed": 60}


def test_files_without_an_address_are_pages_too_and_are_never_fetched(scraped: Node, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    archive = tmp_path / "pages.warc"
    assert scraped.cli("results", "archive", "--warc", str(archive)).returncode == 0
    from warcio.archiveiterator import ArchiveIterator

    with open(archive, "rb") as stream:
        bodies = [record.content_stream().read() for record in ArchiveIterator(stream) if record.rec_type == "response"]
    for number, body in enumerate(bodies[:5]):
        (folder / f"Parcel {number}.html").write_bytes(body)
    (folder / "empty.html").write_bytes(b"")

    other = Node(tmp_path / "other", STANDALONE="true")
    done = other.cli("run", str(folder), "--state", "FL", "--county", "Dixie")
    assert "1 rejected" in done.stderr
    assert other.statuses() == {"completed": 5}
    assert json.loads(other.cli("results", "list", "--json", "--limit", "1").stdout)[0]["county"] == "Dixie"
