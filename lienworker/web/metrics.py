"""`/metrics` in Prometheus's text format, from tallies and rollups. Every label has a bounded set of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from lienworker.outbox.breaker import breakers
from lienworker.reports.health import facts_of
from lienworker.store import rollups
from lienworker.store.monitor_counties import served_by_host
from lienworker.store.monitor_outbox import lanes
from lienworker.store.waiting import oldest_by_topic
from lienworker.web.pages import Place

#: Reasons and platforms that are named; the rest are `other`.
_MOST_LABELS = 30
_TASK_BOUNDS = ("1", "5", "15", "60", "300", "900", "3600", "14400", "86400", "+Inf")
_FETCH_BOUNDS = ("50", "100", "250", "500", "1000", "2500", "5000", "10000", "30000", "+Inf")


def metrics(place: Place) -> str:
    return "\n".join(_lines(place)) + "\n"


def _lines(place: Place) -> Iterator[str]:
    facts = facts_of(place.folder)
    yield from _metric("lienworker_tasks", "gauge", "Tasks by status.", _by("status", facts["tasks"]))
    yield from _metric("lienworker_outbox_rows", "gauge", "Outbox rows by topic and state.", _outbox())
    ages = {_labels(topic=topic): minutes * 60 for topic, minutes in oldest_by_topic(rollups.this_minute()).items()}
    yield from _metric("lienworker_oldest_waiting_seconds", "gauge", "Age of the oldest waiting row.", ages)
    ended = {key: n for key, (n, _) in rollups.sums("task").items()}
    yield from _metric("lienworker_tasks_ended_total", "counter", "Tasks that ended.", _by("status", ended))
    pages = {key: n for key, (n, _) in rollups.sums("fetch").items()}
    yield from _metric(
        "lienworker_pages_fetched_total", "counter", "Pages fetched, by platform.", _by("platform", _bounded(pages))
    )
    tries = {key: n for key, (n, _) in rollups.sums("try").items()}
    yield from _metric(
        "lienworker_tries_failed_total", "counter", "Tries that failed, by topic and reason.", _tries(tries)
    )
    yield from _metric("lienworker_fetches_total", "counter", "Fetches by class of host and outcome.", _fetches())
    yield from _gateway()
    yield from _histogram("lienworker_task_seconds", "From arrival to end.", "task_seconds", _TASK_BOUNDS, 1)
    yield from _histogram("lienworker_fetch_seconds", "Fetching a page.", "fetch_ms", _FETCH_BOUNDS, 1000)
    yield from _metric("lienworker_workers", "gauge", "Living worker processes.", {"": len(facts["workers"])})
    yield from _metric("lienworker_stack_up", "gauge", "1 while a stack runs.", {"": int(facts["stack_runs"])})
    lanes_paused = {_labels(lane=name): _is_paused(facts, name) for name in ("intake", "fetch", "upload")}
    yield from _metric("lienworker_paused", "gauge", "1 while a lane is paused.", lanes_paused)
    drifting = {"": len(facts["drift"])}
    yield from _metric("lienworker_counties_paused", "gauge", "Counties that the drift guard keeps back.", drifting)
    free = facts["disk_free_mb"] * 1_000_000
    yield from _metric("lienworker_disk_free_bytes", "gauge", "Free bytes on the data folder's disk.", {"": free})
    if facts["data_mb"] is not None:
        size = facts["data_mb"] * 1_000_000
        yield from _metric(
            "lienworker_data_bytes", "gauge", "What the data folder takes, as last measured.", {"": size}
        )


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


def _fetches() -> dict[str, int]:
    """Hosts of one owner are one class: a platform's counties are its subdomains."""
    served: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for host, good, bad in served_by_host():
        served[host_class(host)] += good
        failed[host_class(host)] += bad
    busiest = _bounded(served + failed)
    found: Counter[str] = Counter()
    for outcome, counts in (("served", served), ("failed", failed)):
        for name, n in counts.items():
            found[_labels(host_class=name if name in busiest else "other", outcome=outcome)] += n
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


def _tries(tries: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for key, n in _bounded(tries).items():
        topic, _, reason = key.partition("|")
        label = _labels(topic=topic, reason=reason or "other")
        found[label] = found.get(label, 0) + n
    return found


def _bounded(counts: Mapping[str, int]) -> dict[str, int]:
    """The most frequent keep their names."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    named = dict(ranked[:_MOST_LABELS])
    if rest := sum(n for _, n in ranked[_MOST_LABELS:]):
        named["other"] = named.get("other", 0) + rest
    return named


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
