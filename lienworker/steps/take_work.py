"""Tasks from the Gateway: all of a reply into the store at once, since it never hands a task out again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlsplit

from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import storable, write
from lienworker.errors import PageError
from lienworker.hostnames import host_of
from lienworker.hubs.gateway.work import WorkTask
from lienworker.intake.rows import BadRowError
from lienworker.intake.urls import UrlChecker
from lienworker.outbox.deliveries import close_again, report_failure
from lienworker.outbox.pacing import Politeness
from lienworker.outbox.registration import register_in_transaction
from lienworker.platforms import Registry, Target
from lienworker.store import tasks
from lienworker.store.tasks import NewTask

#: The kinds of task that a worker can do. An empty one is what early Gateways sent.
_FIRST_YEAR = 2000
_NO_PROXY: tuple[Any, ...] = (None, "", {})
_LONGEST_PROXY = 2048
_PROXY_SCHEMES = {"http", "https", "socks4", "socks5", "socks5h"}
_TYPES = {"", "scrape", "scrape_parcel", "parcel"}


@dataclass(frozen=True, slots=True)
class Taken:
    """What a reply brought."""

    added: int
    known: int
    undoable: int


def take_work(work: Sequence[WorkTask], registry: Registry, expiry_hours: float) -> Taken:
    """One transaction: tasks that can be done with their first step, the others failed with their reason."""
    doable, undoable = [], []
    politeness: dict[str, Politeness] = {}
    for task in work:
        new = _new_task(task, expiry_hours)
        try:
            new.url = _url_of(task, registry)
            new.proxy = _proxy_of(task)
            platform = registry.get(task.platform) if task.platform else registry.for_url(new.url)
            if platform:
                politeness[host_of(new.url)] = Politeness(platform.delay, platform.concurrency)
            doable.append(new)
        except PageError as problem:
            undoable.append((new, problem))
    with write("collect"):
        for task_id in tasks.known_ids([new.task_id for new in (*doable, *(new for new, _ in undoable))]):
            close_again(task_id)
        registered = register_in_transaction(doable, politeness=politeness)
        failed = sum(_fail_at_once(new, problem) for new, problem in undoable)
    return Taken(registered.added, registered.known + len(undoable) - failed, failed)


def _new_task(task: WorkTask, expiry_hours: float) -> NewTask:
    received = now_ms()
    # Counted from when it was created, or from when it came where that is absurd.
    is_absurd = task.created_at is None or task.created_at.year < _FIRST_YEAR
    base = received if is_absurd or task.created_at is None else int(task.created_at.timestamp() * 1000)
    created, base = rfc3339(base), min(base, received)
    return NewTask(
        source="gateway",
        url=task.url or "",
        platform=task.platform or None,
        state=task.state or None,
        county=task.county or None,
        parcel_id=task.parcel_id or None,
        queue="urgent" if task.priority == 1 else "default",
        priority=task.priority,
        target={key: value for key, value in task.target.items() if key != "proxy"},
        task_id=task.task_id or _made_up_id(task),
        created_at=created,
        expires_at=rfc3339(base + int(timedelta(hours=expiry_hours).total_seconds() * 1000)),
        proxy=None,
    )


def _made_up_id(task: WorkTask) -> str:
    """A task without an id is kept under one of its content; the Gateway cannot be told about it."""
    return "nameless-" + hashlib.sha256(task.raw_json.encode()).hexdigest()[:32]


def _url_of(task: WorkTask, registry: Registry) -> str:
    if not task.task_id:
        raise PageError("bad_task", "the task has no id")
    if not task.is_readable:
        raise PageError("bad_task", "; ".join(task.problems))
    if task.type.lower() not in _TYPES:
        raise PageError("unknown_type", f"tasks of type {task.type!r} cannot be done")
    if task.url:
        try:
            checked = UrlChecker()(task.url)
        except BadRowError as problem:
            raise PageError("bad_url", str(problem)) from None
        if checked:
            registry.get(task.platform or "generic")
            return checked
    if not task.platform:
        raise PageError("no_url", "the task has neither a url nor a platform that could build one")
    target = Target(task.platform, task.state, task.county, task.parcel_id, None, task.target)
    url = registry.get(task.platform).build_url(target)
    if not url:
        raise PageError("no_url", f"platform {task.platform!r} cannot build a URL from this target")
    return url


def _proxy_of(task: WorkTask) -> str | None:
    """The proxy that a task brings, beside its target or in it; one that cannot be read is not passed over."""
    proxy = task.proxy if task.proxy not in _NO_PROXY else task.target.get("proxy")
    if proxy in _NO_PROXY:
        return None
    url = proxy_url(proxy)
    if url is None:
        raise PageError("bad_proxy", "the task names a proxy that cannot be read; without it the page is not fetched")
    return url


def _fail_at_once(new: NewTask, problem: PageError) -> bool:
    """Kept, failed and reported; False where it was known already."""
    if tasks.known_ids([new.task_id]):
        return False
    tasks.insert_tasks({new.task_id: new})
    tasks.mark_failed(new.task_id, problem.reason, problem.detail)
    report_failure(new.task_id, problem.reason)
    return True


def proxy_url(proxy: Any) -> str | None:
    """A proxy as one address, from a text or from its parts; None where it cannot be read."""
    try:
        url = proxy.strip() if isinstance(proxy, str) else _proxy_of_parts(proxy)
        parts = urlsplit(url or "")
        is_good = parts.scheme in _PROXY_SCHEMES and parts.hostname and storable(url or "") == url
        is_good = is_good and len(url or "") <= _LONGEST_PROXY
        return url if is_good else None
    except ValueError:  # half a character, a broken port
        return None


def _proxy_of_parts(proxy: Any) -> str | None:
    if not isinstance(proxy, dict):
        return None
    if isinstance(proxy.get("url"), str) and proxy["url"].strip():
        return str(proxy["url"]).strip()
    host, port = proxy.get("host"), proxy.get("port")
    if not isinstance(host, str) or not host:
        return None
    scheme = str(proxy.get("scheme") or proxy.get("protocol") or proxy.get("type") or "http").lower()
    user, password = str(proxy.get("username") or ""), str(proxy.get("password") or "")
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user else ""
    return f"{scheme}://{login}{host}{f':{port}' if port else ''}"
