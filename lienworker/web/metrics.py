"""`/metrics` in Prometheus's text format, from tallies and rollups. Every label has a bounded set of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from lienworker.outbox.breaker import breakers
from lienworker.outbox.uploads import ENDPOINTS
from lienworker.reports.health import facts_of
from lienworker.store import rollups
from lienworker.store.monitor_counties import served_by_host
from lienworker.store.monitor_outbox import lanes
from lienworker.store.waiting import oldest_by_topic
from lienworker.web.names import OTHER, Names
from lienworker.web.pages import Place

_MB = 1_000_000
_TASK_BOUNDS = ("1", "5", "15", "60", "300", "900", "3600", "14400", "86400", "+Inf")
_FETCH_BOUNDS = ("50", "100", "250", "500", "1000", "2500", "5000", "10000", "30000", "+Inf")


def metrics(place: Place, names: Names) -> str:
    return "\n".join(_lines(place, names)) + "\n"


def _lines(place: Place, names: Names) -> Iterator[str]:
    facts = facts_of(place.folder)
    yield from _metric("lienworker_tasks", "gauge", "Tasks by status.", _by("status", facts["tasks"]))
    yield from _metric("lienworker_outbox_rows", "gauge", "Outbox rows by topic and state.", _outbox())
    ages = {_labels(topic=topic): minutes * 60 for topic, minutes in oldest_by_topic(rollups.this_minute()).items()}
    yield from _metric("lienworker_oldest_waiting_seconds", "gauge", "Age of the oldest waiting row.", ages)
    ended = {key: n for key, (n, _) in rollups.sums("task").items()}
    yield from _metric("lienworker_tasks_ended_total", "counter", "Tasks that ended.", _by("status", ended))
    pages = names.bounded("platform", {key: n for key, (n, _) in rollups.sums("fetch").items()})
    yield from _metric(
        "lienworker_pages_fetched_total", "counter", "Pages fetched, by platform.", _by("platform", pages)
    )
    tries = {key: n for key, (n, _) in rollups.sums("try").items()}
    yield from _metric(
        "lienworker_tries_failed_total", "counter", "Tries that failed, by topic and reason.", _tries(names, tries)
    )
    yield from _metric("lienworker_fetches_total", "counter", "Fetches by class of host and outcome.", _fetches(names))
    yield from _gateway()
    yield from _histogram("lienworker_task_seconds", "From arrival to end.", "task_seconds", _TASK_BOUNDS, 1)
    yield from _histogram("lienworker_fetch_seconds", "Fetching a page.", "fetch_ms", _FETCH_BOUNDS, 1000)
    yield from _metric("lienworker_workers", "gauge", "Living worker processes.", {"": len(facts["workers"])})
    yield from _metric("lienworker_stack_up", "gauge", "1 while a stack runs.", {"": int(facts["stack_runs"])})
    lanes_paused = {_labels(lane=name): _is_paused(facts, name) for name in ("intake", "fetch", "upload")}
    yield from _metric("lienworker_paused", "gauge", "1 while a lane is paused.", lanes_paused)
    drifting = {"": len(facts["drift"])}
    yield from _metric("lienworker_counties_paused", "gauge", "Counties that the drift guard keeps back.", drifting)
    yield from _space(place, facts)


def _space(place: Place, facts: Mapping[str, Any]) -> Iterator[str]:
    free = facts["disk_free_mb"] * _MB
    yield from _metric("lienworker_disk_free_bytes", "gauge", "Free bytes on the data folder's disk.", {"": free})
    if facts["data_mb"] is not None:
        size = {"": facts["data_mb"] * _MB}
        yield from _metric("lienworker_data_bytes", "gauge", "What the data folder takes, as last measured.", size)
    # Without a limit there is no series: a share of nothing would be no number.
    if place.settings.data_max_mb:
        most = {"": place.settings.data_max_mb * _MB}
        yield from _metric("lienworker_data_max_bytes", "gauge", "What the data folder may take.", most)


def _outbox() -> dict[str, int]:
    return {_labels(topic=lane["topic"], state=state): n for lane in lanes() for state, n in lane["states"].items()}


def _gateway() -> Iterator[str]:
    rows = breakers()
    taken = {_labels(endpoint=row["endpoint"]): row["successes"] for row in rows}
    yield from _metric("lienworker_gateway_accepted_total", "counter", "What the Gateway took.", taken)
    calls = {_labels(**_call(key)): n for key, (n, _) in rollups.sums("gateway").items()}
    yield from _metric("lienworker_gateway_calls_total", "counter", "Calls by endpoint and what they came to.", calls)
    is_open = {_labels(endpoint=row["endpoint"]): row["is_open"] for row in rows}
    yield from _metric("lienworker_breaker_open", "gauge", "1 while an endpoint's breaker is open.", is_open)


def _call(key: str) -> dict[str, str]:
    endpoint, _, outcome = key.partition("|")
    return {"endpoint": endpoint, "outcome": outcome}


def _fetches(names: Names) -> dict[str, int]:
    """Hosts of one owner are one class: a platform's counties are its subdomains."""
    served: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for host, good, bad in served_by_host():
        served[host_class(host)] += good
        failed[host_class(host)] += bad
    named = names.chosen("host_class", served + failed)
    found: Counter[str] = Counter()
    for outcome, counts in (("served", served), ("failed", failed)):
        for name, n in counts.items():
            found[_labels(host_class=name if name in named else OTHER, outcome=outcome)] += n
    return dict(found)


def host_class(host: str) -> str:
    """`beacon.schneidercorp.com` is `schneidercorp.com`, `www.assess.co.polk.ia.us` is `polk.ia.us`."""
    name = host.partition(":")[0] if not host.startswith("[") else ""
    parts = name.split(".")
    if not name or parts[-1].isdigit():
        return "ip"
    return ".".join(parts[-3:] if parts[-1] == "us" else parts[-2:])


def _is_paused(facts: dict[str, list[dict[str, str]]], lane: str) -> int:
    return int(any(pause["lane"] == lane for pause in facts["pauses"]))


def _tries(names: Names, tries: Mapping[str, int]) -> dict[str, int]:
    """Why an upload failed always has its name: those reasons are this program's own words, and few."""
    uploads = {key: n for key, n in tries.items() if key.partition("|")[0] in ENDPOINTS}
    steps = {key: n for key, n in tries.items() if key not in uploads}
    found: Counter[str] = Counter()
    for key, n in (names.bounded("reason", steps) | uploads).items():
        found[_labels(**_try(key))] += n
    return dict(found)


def _try(key: str) -> dict[str, str]:
    topic, _, reason = key.partition("|")
    return {"topic": topic, "reason": reason or OTHER}


def _by(label: str, counts: Mapping[str, int]) -> dict[str, int]:
    return {_labels(**{label: name}): n for name, n in counts.items()}


def _histogram(name: str, words: str, rollup: str, bounds: tuple[str, ...], unit: int) -> Iterator[str]:
    found = rollups.sums(rollup)
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} histogram"
    seen = 0
    for bound in bounds:
        seen += found.get(bound, (0, 0))[0]
        shown = bound if bound == "+Inf" else f"{int(bound) / unit:g}"
        yield f'{name}_bucket{{le="{shown}"}} {seen}'
    yield f"{name}_sum {sum(total for _, total in found.values()) / unit:g}"
    yield f"{name}_count {seen}"


def _metric(name: str, kind: str, words: str, values: Mapping[str, float]) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values.items():
        yield f"{name}{labels} {value}"


def _labels(**labels: str) -> str:
    def escaped(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}"
