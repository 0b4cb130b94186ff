"""Stored pages through a better parser."""

from __future__ import annotations

import json
from dataclasses import replace

from lienworker.db.database import all_rows, write
from lienworker.outbox.registration import register_in_transaction
from lienworker.platforms import default_registry
from lienworker.store.pages import page_behind_result
from lienworker.store.runs import pages_of, runs
from lienworker.store.tasks import NewTask
from tests.harness.node import Node
from tests.harness.shelf import Shelf, page


def owners() -> list[str | None]:
    return [json.loads(data).get("owner_name") for (data,) in all_rows("SELECT data FROM results ORDER BY rowid")]


def test_what_has_not_changed_does_nothing(shelf: Shelf) -> None:
    shelf.add("Marsh", {str(n): page(n) for n in range(5)})
    shelf.work()
    before = all_rows("SELECT * FROM results"), all_rows("SELECT * FROM outbox")

    tally = shelf.reparse()

    assert tally.counts() == {"pages": 5, "changed": 0, "unchanged": 5, "failed": 0}
    assert (all_rows("SELECT * FROM results"), all_rows("SELECT * FROM outbox")) == before


def test_what_has_changed_is_a_new_generation_that_goes_out_again(shelf: Shelf) -> None:
    shelf.add("Marsh", {"1": page(1, owner="holder"), "2": page(2)})
    shelf.work()
    assert owners() == [None, "OTTER NO 2"]
    shelf.teach(owner="#owner, #holder", version="2")

    tally = shelf.reparse()

    assert (tally.changed, tally.unchanged) == (1, 1)
    assert owners() == ["OTTER NO 1", "OTTER NO 2"]
    assert all_rows("SELECT generation, parser_version FROM results ORDER BY rowid") == [(2, "2"), (1, "1")]
    for topic in ("upload_raw", "upload_result"):
        assert shelf.rows(topic) == {"held standalone": 2, "superseded newer_result": 1}
    assert {row[0] for row in all_rows("SELECT status FROM tasks")} == {"completed"}


def test_the_new_result_still_knows_its_page(shelf: Shelf) -> None:
    shelf.add("Marsh", {"1": page(1, owner="holder")})
    shelf.work()
    shelf.teach(owner="#holder")
    shelf.reparse()
    found = page_behind_result(all_rows("SELECT task_id FROM tasks")[0][0])
    assert found is not None
    assert (shelf.runtime.folder.root / found.path).is_file()


def test_in_on_demand_mode_it_waits_to_be_sent_raw_page_first(ondemand_shelf: Shelf) -> None:
    ondemand_shelf.add("Marsh", {"1": page(1, owner="holder")})
    ondemand_shelf.work()
    ondemand_shelf.teach(owner="#holder")
    ondemand_shelf.reparse()
    assert ondemand_shelf.rows("upload_result") == {"waiting": 1, "superseded newer_result": 1}
    due = dict(all_rows("SELECT topic, due_at FROM outbox WHERE state = 'waiting'"))
    assert due["upload_result"] > due["upload_raw"]


def test_the_file_for_people_says_what_the_new_parser_says(shelf: Shelf) -> None:
    shelf.add("Marsh", {"1": page(1, owner="holder")})
    shelf.work()
    shelf.teach(owner="#holder")
    shelf.reparse()
    (file,) = (shelf.runtime.folder.root / "pending").glob("*.json")
    assert json.loads(file.read_text())["data"]["owner_name"] == "OTTER NO 1"


def test_a_dry_run_touches_nothing(shelf: Shelf) -> None:
    shelf.add("Marsh", {"1": page(1, owner="holder")})
    shelf.work()
    shelf.teach(owner="#holder")
    before = all_rows("SELECT * FROM results"), all_rows("SELECT * FROM outbox"), runs()
    assert shelf.reparse(dry_run=True).changed == 1
    assert (all_rows("SELECT * FROM results"), all_rows("SELECT * FROM outbox"), runs()) == before


def test_a_page_that_failed_for_its_parser_gives_a_result_after_the_fix(shelf: Shelf) -> None:
    shelf.add("Marsh", {"1": page(1).replace("'pid'", "'number'")})
    shelf.work()
    assert all_rows("SELECT status, reason FROM tasks") == [("failed", "not_a_parcel")]
    (shelf.definitions / "quarry.toml").write_text("[fields]\nparcel_id = '#number'\nowner_name = '#owner'\n")

    shelf.learn()
    assert shelf.reparse().changed == 1
    assert all_rows("SELECT status FROM tasks") == [("completed",)]
    assert owners() == ["OTTER NO 1"]


def test_a_page_that_gives_nothing_any_more_keeps_its_result(shelf: Shelf) -> None:
    shelf.add("Marsh", {"1": page(1)})
    shelf.work()
    (shelf.definitions / "quarry.toml").write_text("[fields]\nparcel_id = '#nowhere'\n")

    shelf.learn()
    assert shelf.reparse().failed == 1
    assert owners() == ["OTTER NO 1"]
    assert [item.reason for item in pages_of(runs()[0]["id"])] == ["not_a_parcel"]


def test_filters_choose_the_pages(shelf: Shelf) -> None:
    shelf.add("Marsh", {"1": page(1), "2": page(2)})
    shelf.add("Dune", {"3": page(3)})
    shelf.work()
    assert shelf.reparse(county="dune").pages == 1
    assert shelf.reparse(platform="quarry").pages == 3
    assert shelf.reparse(platform="vgsi").pages == 0
    assert shelf.reparse(since="2999-01-01").pages == 0


def test_a_task_that_is_on_its_way_again_is_left_alone(shelf: Shelf) -> None:
    shelf.add("Marsh", {"1": page(1, owner="holder")})
    shelf.work()
    url = all_rows("SELECT url FROM tasks")[0][0]
    with write("test"):
        register_in_transaction([NewTask("local_file", url, platform="quarry")], refresh=True)
    shelf.teach(owner="#holder")
    assert shelf.reparse().pages == 0


def test_each_reparse_is_a_run_that_keeps_what_each_page_gave(shelf: Shelf) -> None:
    shelf.add("Marsh", {"1": page(1, owner="holder")})
    shelf.work()
    first = shelf.passed()
    shelf.teach(owner="#holder", version="2")
    second = shelf.passed()

    assert [(run["id"], run["versions"], run["changed"]) for run in runs()] == [
        (second.run_id, {"quarry": "2"}, 1),
        (first.run_id, {"quarry": "1"}, 0),
    ]
    assert first.run_id is not None
    assert second.run_id is not None
    assert [(item.data or {}).get("owner_name") for item in pages_of(first.run_id)] == [None]
    assert [(item.data or {}).get("owner_name") for item in pages_of(second.run_id)] == ["OTTER NO 1"]


def test_a_reparse_to_which_no_page_fits_is_no_run(shelf: Shelf) -> None:
    shelf.add("Marsh", {"1": page(1)})
    shelf.work()
    before = len(runs())
    assert shelf.reparse(county="Nowhere").pages == 0
    assert len(runs()) == before


def test_an_unknown_platform_is_a_mistake_with_a_hint(node: Node) -> None:
    done = node.cli("reparse", "--platform", "qpulic")
    assert done.returncode == 2
    assert "Did you mean 'qpublic'?" in done.stderr
    node.cli("init")
    known = node.cli("reparse", "--platform", "qpublic", "--since", "2026-11-16T10:47:11.065Z")
    assert known.returncode == 0, known.stderr
    assert "No stored page fits" in known.stdout


def test_a_platform_that_was_only_learned_gives_way_to_a_better_one(shelf: Shelf) -> None:
    """The list named no platform, so it is the page that decides, each time it is read."""
    shelf.runtime = replace(shelf.runtime, registry=default_registry())
    shelf.add(None, {"1": page(1)}, platform=None)
    shelf.work()
    both = "SELECT t.platform, r.platform FROM tasks t JOIN results r USING (task_id)"
    assert all_rows(both) == [("generic", "generic")]
    shelf.teach()
    assert shelf.reparse().changed == 1
    assert all_rows(both) == [("quarry", "quarry")]
