"""A task and its first row, in one transaction, before anything else happens to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lienworker.db.database import all_rows, execute_many, one_row, write
from lienworker.hostnames import host_of, route_of, site_of
from lienworker.outbox import transitions
from lienworker.outbox.keys import Filled, Keys, fill_keys
from lienworker.outbox.pacing import Politeness, know_hosts
from lienworker.outbox.pauses import PlaceHolds
from lienworker.outbox.rows import Entry
from lienworker.outbox.states import State, Topic
from lienworker.store import tasks
from lienworker.store.pages import PageRecord, latest_page, pages_of, save_page
from lienworker.store.tasks import NewTask


@dataclass(frozen=True, slots=True)
class Registered:
    """How many tasks were new, known already, and known but started again; and what known ones learned."""

    added: int = 0
    known: int = 0
    refreshed: int = 0
    #: Known tasks that were not urgent before.
    lifted: int = 0
    #: Known tasks that lacked a state, a county or a parcel id and have it now.
    filled: Filled = field(default_factory=Filled)


def register_task(task: NewTask, *, refresh: bool = False, politeness: Politeness | None = None) -> Registered:
    """Store one task with its first outbox row."""
    hosts = {host_of(task.url): politeness} if politeness else {}
    with write("register"):
        return register_in_transaction([task], refresh=refresh, politeness=hosts)


def register_in_transaction(
    batch: Sequence[NewTask], *, refresh: bool = False, politeness: Mapping[str, Politeness] | None = None
) -> Registered:
    """Register many tasks inside the caller's transaction. A task named twice in a batch counts once as known."""
    by_id = {task.task_id: task for task in batch}
    known = tasks.known_ids(by_id)
    new = {task_id: task for task_id, task in by_id.items() if task_id not in known}
    places = PlaceHolds()
    if new:
        know_hosts({host_of(task.url) for task in by_id.values()}, politeness or {})
        tasks.insert_tasks(new)
        routes = {task_id: route_of(task.url, task.proxy) for task_id, task in new.items()}
        transitions.add([_first_row(task_id, task, routes[task_id], places) for task_id, task in new.items()])
    found_again = tasks.give_addresses({task_id: by_id[task_id] for task_id in known})
    refreshed = _refresh({task_id: by_id[task_id] for task_id in (known if refresh else found_again)}, places)
    lifted = _lift([task_id for task_id in known if by_id[task_id].queue == "urgent"])
    _give_deadlines({task_id: by_id[task_id] for task_id in known if by_id[task_id].due_by is not None})
    _join_import(by_id, known)
    filled = fill_keys({task_id: _keys_of(by_id[task_id]) for task_id in known})
    return Registered(len(new), len(batch) - len(new) - refreshed, refreshed, lifted, filled)


def register_pages(batch: Sequence[tuple[NewTask, Sequence[PageRecord]]]) -> Registered:
    """Register tasks whose pages are on disk already: each begins with its scrape row, and nothing is fetched.

    A known task that has ended, or has not begun, begins another round with this page, unless it is the one that it
    has. Inside the caller's transaction.
    """
    by_id = {task.task_id: (task, pages) for task, pages in batch}
    known = tasks.known_ids(by_id)
    rounds = dict.fromkeys(by_id.keys() - known, 1)
    tasks.insert_tasks({task_id: by_id[task_id][0] for task_id in rounds})
    again = {task_id: number for task_id in known if (number := _begin_with(by_id[task_id][1]))}
    rounds |= again
    save_page(*(replace(page, generation=number) for task_id, number in rounds.items() for page in by_id[task_id][1]))
    transitions.add(
        [
            Entry(Topic.SCRAPE, task_id, number, by_id[task_id][0].queue, by_id[task_id][0].priority)
            for task_id, number in rounds.items()
        ]
    )
    _join_import({task_id: task for task_id, (task, _) in by_id.items()}, known)
    return Registered(len(by_id) - len(known), len(batch) - len(rounds), len(again))


def _begin_with(pages: Sequence[PageRecord]) -> int | None:
    """Begin a round of a known task with these pages and return its number; None where there is nothing to do."""
    task_id = pages[0].task_id
    last = latest_page(task_id)
    before = pages_of(task_id, last.generation) if last else []
    if [page.sha256 for page in before] == [page.sha256 for page in pages]:
        return None
    is_open = one_row("SELECT 1 FROM tasks WHERE task_id = ? AND status IN ('pending', 'processing')", (task_id,))
    if is_open and not transitions.cancel_steps(task_id):
        return None  # a worker has it in hand
    transitions.supersede_reports(task_id)
    return tasks.start_generation(task_id)


def _keys_of(task: NewTask) -> Keys:
    return Keys(task.state, task.county, task.parcel_id)


def _first_row(task_id: str, task: NewTask, host: str, places: PlaceHolds, generation: int = 1) -> Entry:
    """Return the first row of a task, held at once where its county is."""
    row = Entry(Topic.FETCH, task_id, generation, task.queue, task.priority, host=host, due_by=task.due_by)
    reason = places.reason_for(task.platform, task.state, task.county, site_of(host)) if places else None
    return replace(row, state=State.HELD, reason=reason) if reason else row


def _refresh(known: Mapping[str, NewTask], places: PlaceHolds) -> int:
    """Start another round of the known tasks that have ended; those still in progress will be fresh anyway."""
    sql = "SELECT url, proxy FROM tasks WHERE task_id = ? AND status IN ('completed', 'failed', 'expired')"
    rows = []
    for task_id, task in known.items():
        for url, proxy in all_rows(sql, (task_id,)):  # the stored address is the one that is fetched
            route = route_of(url, proxy)
            rows.append(_first_row(task_id, task, route, places, tasks.start_generation(task_id)))
            transitions.supersede_reports(task_id)
    transitions.add(rows)
    return len(rows)


def _lift(task_ids: Sequence[str]) -> int:
    """Let known tasks overtake that are urgent now; return how many were not before."""
    transitions.make_urgent(task_ids)
    sql = "UPDATE tasks SET queue = 'urgent' WHERE task_id = ? AND queue <> 'urgent'"
    return execute_many(sql, ((task_id,) for task_id in task_ids)) if task_ids else 0


def _give_deadlines(known: Mapping[str, NewTask]) -> None:
    """Give known tasks that are still open the deadline with which they are named again, if that is earlier."""
    for task_id, task in known.items():
        assert task.due_by is not None
        tasks.give_deadline([task_id], task.due_by, task.expires_at)
        transitions.give_deadline([task_id], task.due_by)


def _join_import(by_id: Mapping[str, NewTask], known: set[str]) -> None:
    import_ids = {task.import_id for task in by_id.values() if task.import_id is not None}
    for import_id in import_ids:
        tasks.join_import(known, import_id)
