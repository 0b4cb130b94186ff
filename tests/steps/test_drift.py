"""The drift guard: a county whose pages change is kept back, and no other."""

from __future__ import annotations

import pytest

from lienworker.db.database import all_rows, execute, write
from lienworker.operator.rows import RowFilter, find_ids, release_rows
from lienworker.queries.overview import overview
from lienworker.steps import drift
from lienworker.steps.drift import ENOUGH, WINDOW, lost_fields, mask_of, take_in
from lienworker.store.history import History, paused_places
from tests.harness.shelf import Shelf, page

GOOD = mask_of({"parcel_id": 1, "owner_name": 1, "acres": 1})
NO_OWNER = mask_of({"parcel_id": 1, "acres": 1})


def fill(shelf: Shelf, county: str | None, n: int = ENOUGH + WINDOW, first: int = 0, owner: str = "owner") -> None:
    shelf.add(county, {str(k): page(k, owner) for k in range(first, first + n)})


@pytest.mark.parametrize(
    ("masks", "lost"),
    [
        ([GOOD] * 100, []),
        ([GOOD] * 40 + [NO_OWNER] * 9, []),
        ([GOOD] * 40 + [NO_OWNER] * 10, ["owner_name"]),
        ([GOOD] * 40 + [0] * 10, ["parcel_id", "owner_name", "acres"]),
        # Missing now and then, as the year of a house that is not there: half of twenty may be chance, few are not.
        ([GOOD] * 23 + [NO_OWNER] + [GOOD, NO_OWNER] * 10, []),
        ([GOOD] * 39 + [NO_OWNER] + [GOOD] * 5 + [NO_OWNER] * 15, ["owner_name"]),
        ([GOOD] * 10 + [NO_OWNER] * 10, []),  # too few to know what is usual
        ([GOOD] * 19 + [NO_OWNER] * 20, []),
        ([GOOD, GOOD, GOOD, NO_OWNER] * 20 + [NO_OWNER] * 30, []),  # never was in nearly every page
        ([NO_OWNER] * 60, []),
    ],
)
def test_a_usual_field_that_collapses_is_noticed_and_nothing_else(masks: list[int], lost: list[str]) -> None:
    history = History()
    for mask in masks:
        take_in(history, [mask])
    assert lost_fields(history) == lost


def test_a_county_whose_field_collapses_is_paused_and_no_other(ondemand_shelf: Shelf) -> None:
    shelf = ondemand_shelf
    for county in ("Marsh", "Dune"):
        fill(shelf, county)
    shelf.work()
    fill(shelf, "Marsh", 10, first=100, owner="holder")
    shelf.work()
    fill(shelf, "Marsh", 30, first=200, owner="holder")
    fill(shelf, "Dune", 30, first=200)
    drifting = [place["county"] for place in paused_places()]

    shelf.work()  # the first that comes for a paused county closes the door behind it

    assert drifting == ["Marsh"]
    assert shelf.rows("upload_result", "Marsh").keys() == {"held drift"}
    assert shelf.rows("upload_raw", "Marsh").keys() == {"held drift"}
    assert shelf.rows("upload_result", "Dune") == {"waiting": 70}
    assert shelf.rows("fetch", "Dune") == {"delivered": 70}


def test_what_waits_to_be_fetched_there_is_held(shelf: Shelf) -> None:
    fill(shelf, "Marsh")
    shelf.work()
    fill(shelf, "Marsh", 60, first=100, owner="holder")
    fill(shelf, "Dune", 5)

    assert shelf.work(30) == 30

    assert shelf.rows("fetch", "Marsh")["held drift"] >= 30
    assert shelf.rows("fetch", "Dune").keys() <= {"waiting", "delivered"}
    shelf.work()
    assert shelf.rows("fetch", "Dune") == {"delivered": 5}
    assert shelf.rows("upload_result", "Marsh").keys() == {"held drift"}


def test_results_that_turn_empty_pause_it_too(shelf: Shelf) -> None:
    fill(shelf, "Marsh")
    shelf.work()
    shelf.add("Marsh", {f"x{n}": "<p>parcel viewer</p>" for n in range(12)})
    shelf.work()
    assert "gave nothing" in paused_places()[0]["words"]


def test_a_county_without_a_name_goes_by_its_host(shelf: Shelf) -> None:
    fill(shelf, None)
    shelf.work()
    fill(shelf, None, 12, first=100, owner="holder")
    shelf.pages["https://elsewhere.quarry.example/1"] = page(1)
    from lienworker.outbox.registration import register_task
    from lienworker.store.tasks import NewTask

    register_task(NewTask("cli", "https://elsewhere.quarry.example/1", platform="quarry", state="XX"))
    shelf.work()
    assert [place["county"] for place in paused_places()] == ["(somewhere.quarry.example)"]
    held = all_rows(
        "SELECT DISTINCT t.url FROM outbox o JOIN tasks t ON t.task_id = o.task_id"
        " WHERE o.reason = 'drift' AND t.url LIKE '%elsewhere%'"
    )
    assert held == []


def pause_marsh(shelf: Shelf) -> None:
    fill(shelf, "Marsh")
    shelf.work()
    fill(shelf, "Marsh", 40, first=100, owner="holder")
    shelf.work(WINDOW)
    assert shelf.rows("fetch", "Marsh")["held drift"] == 20


def test_the_operator_is_told_in_words_and_shown_a_page(shelf: Shelf) -> None:
    pause_marsh(shelf)
    facts = overview(shelf.runtime.settings, shelf.runtime.folder)
    words = facts["drift"][0]["words"]
    assert "quarry, Marsh XX is paused: owner_name came with nearly every page before" in words
    assert (shelf.runtime.folder.root / facts["drift"][0]["sample_path"]).is_file()


def test_a_reparse_without_a_fix_heals_nothing(shelf: Shelf) -> None:
    pause_marsh(shelf)
    assert shelf.reparse().healed == []
    assert paused_places()


def test_a_reparse_after_the_fix_heals_it(shelf: Shelf) -> None:
    pause_marsh(shelf)
    shelf.teach(owner="#owner, #holder", version="2")

    tally = shelf.reparse()

    assert (tally.changed, tally.healed) == (20, ["quarry, Marsh XX"])
    assert paused_places() == []
    assert shelf.rows("fetch", "Marsh") == {"delivered": 60, "waiting": 20}
    assert shelf.rows("upload_result", "Marsh") == {"held standalone": 60, "superseded newer_result": 20}
    assert shelf.work() == 20
    assert paused_places() == []


def test_a_reparse_that_heals_sends_only_the_mended_results(ondemand_shelf: Shelf) -> None:
    pause_marsh(ondemand_shelf)
    ondemand_shelf.teach(owner="#owner, #holder", version="2")
    ondemand_shelf.reparse()
    assert ondemand_shelf.rows("upload_raw") == {"waiting": 60, "superseded newer_result": 20}


def test_a_person_may_accept_the_pages_as_they_are(shelf: Shelf) -> None:
    pause_marsh(shelf)
    assert drift.accept_places(None, "marsh") == ["quarry, Marsh XX"]
    assert shelf.work() == 20
    assert paused_places() == []


def test_a_person_may_release_the_uploads_alone(shelf: Shelf) -> None:
    pause_marsh(shelf)
    ids = find_ids(RowFilter(reason="drift"), ("held",))
    assert release_rows(ids, "reason=drift") == 120
    assert shelf.rows("fetch", "Marsh")["held drift"] == 20


def test_a_page_that_a_person_asks_for_is_fetched_all_the_same(shelf: Shelf) -> None:
    pause_marsh(shelf)
    (task_id,) = all_rows("SELECT task_id FROM outbox WHERE topic = 'fetch' AND state = 'held' LIMIT 1")[0]
    drift.release_page(task_id)
    assert shelf.work() == 1


def test_what_comes_for_a_paused_county_is_held_before_a_single_page_is_fetched(shelf: Shelf) -> None:
    pause_marsh(shelf)
    before = shelf.rows("fetch", "Marsh")["held drift"]
    fill(shelf, "Marsh", 30, first=500)
    fill(shelf, "Dune", 3)
    assert shelf.rows("fetch", "Marsh")["held drift"] == before + 30
    assert shelf.work() == 3
    assert shelf.rows("fetch", "Dune") == {"delivered": 3}


def test_what_waited_when_its_county_was_paused_is_not_begun_any_more(shelf: Shelf) -> None:
    """A claim that comes between the pause and the holding of a million rows."""
    fill(shelf, "Marsh")
    shelf.work()
    fill(shelf, "Marsh", 30, first=500)
    fill(shelf, "Dune", 3)
    with write("test"):
        execute("UPDATE field_history SET paused_at = '2026-01-01T00:00:00Z' WHERE county = 'Marsh'")
    assert shelf.work() == 3
    assert shelf.rows("fetch", "Marsh") == {"delivered": 40, "held drift": 30}


def test_a_page_that_a_person_asks_for_is_not_held_again_before_it_is_fetched(shelf: Shelf) -> None:
    pause_marsh(shelf)
    (task_id,) = all_rows("SELECT task_id FROM outbox WHERE topic = 'fetch' AND state = 'held' LIMIT 1")[0]
    drift.release_page(task_id)
    drift.hold_fetches([drift.place_of(place) for place in paused_places()])
    assert shelf.work() == 1
    assert all_rows("SELECT status FROM tasks WHERE task_id = ?", (task_id,)) == [("completed",)]


def test_what_a_kill_in_the_middle_of_a_release_left_is_released_by_the_next_reparse(shelf: Shelf) -> None:
    pause_marsh(shelf)
    with write("test"):  # the pause is over, but its rows are still held
        execute("UPDATE field_history SET paused_at = NULL")
    shelf.reparse()
    assert shelf.rows("fetch", "Marsh") == {"delivered": 60, "waiting": 20}
    assert shelf.rows("upload_raw", "Marsh") == {"held standalone": 60}
