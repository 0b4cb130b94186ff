"""Following a list: its parcels become tasks; the list itself is not delivered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lienworker.data_folder import DataFolder
from lienworker.db.database import write
from lienworker.errors import LienworkerError
from lienworker.hostnames import host_of
from lienworker.outbox.pacing import Politeness
from lienworker.outbox.registration import Registered, register_in_transaction
from lienworker.platforms import Page, Registry, Target
from lienworker.platforms.catalog.lists import ListedParcel, is_list, listed_parcels
from lienworker.store.pages import PageRecord, page_behind_result
from lienworker.store.raw_files import raw_place, read_page
from lienworker.store.results import result
from lienworker.store.tasks import NewTask, want_parcels

About = Mapping[str, str | None]


def ask_to_follow(task_id: str, about: About) -> None:
    """Record that the parcels of this list are wanted as soon as it is scraped, by any worker."""
    with write("want_parcels"):
        want_parcels(task_id, about)


def follow_stored(folder: DataFolder, registry: Registry, task_id: str, about: About) -> tuple[int, Registered] | None:
    """Follow a list that is already scraped; return how many items it has and what became of them; None for no list."""
    found, page = result(task_id), page_behind_result(task_id)
    if found is None or page is None or not is_list(found["data"]):
        return None
    tasks = tasks_of_list(folder, registry, found["data"], page, about)
    with write("follow"):
        done = register_in_transaction(tasks, politeness=_politeness(registry, tasks))
    return len(found["data"]["parcels"]), done


def tasks_of_list(
    folder: DataFolder, registry: Registry, record: dict[str, Any], page: PageRecord, about: About
) -> list[NewTask]:
    """Return a task for each item that has an address."""
    body = read_page(raw_place(folder.root, page.path), page.sha256)
    read = Page(page.url, body, page.content_type, page.charset, page.status)
    target = Target(about.get("platform"), about.get("state"), about.get("county"))
    return [
        NewTask(
            source="cli",
            url=item.url,
            platform=item.target.platform,
            state=item.target.state,
            county=item.target.county,
            parcel_id=item.target.parcel_id,
            target=_told(item, page, about),
        )
        for item in listed_parcels(record, read, target, registry)
    ]


def _told(item: ListedParcel, page: PageRecord, about: About) -> dict[str, Any]:
    """Return what a task is told besides its parcel: what the list says of it; a list is followed in its turn."""
    told: dict[str, Any] = {"found_in": page.url, **item.target.extra, **item.facts}
    return told | {"follow": dict(about)} if item.is_list else told


def _politeness(registry: Registry, tasks: list[NewTask]) -> dict[str, Politeness]:
    hosts: dict[str, Politeness] = {}
    for task in tasks:
        host = host_of(task.url)
        if host not in hosts:
            platform = registry.get(task.platform) if task.platform else registry.for_url(task.url)
            hosts[host] = Politeness(platform.delay, platform.concurrency) if platform else Politeness()
    return hosts


def parcels_wanted(
    folder: DataFolder, registry: Registry, target: Mapping[str, Any], record: dict[str, Any], page: PageRecord
) -> list[NewTask]:
    """Return the tasks of a list's items, where its own task asks for them; an error in them never fails the list."""
    about = target.get("follow")
    if not isinstance(about, Mapping) or not is_list(record):
        return []
    try:
        return tasks_of_list(folder, registry, record, page, about)
    except LienworkerError:
        return []


def add_parcels(registry: Registry, tasks: list[NewTask]) -> None:
    """Register the parcels of a list. Part of the transaction that stores the list."""
    if tasks:
        register_in_transaction(tasks, politeness=_politeness(registry, tasks))
