"""`/metrics` in Prometheus's text format, from tallies and rollups. Every label has a bounded set of values.

`prometheus-client` would write the text, too: in as many lines, since every figure is read from the database and none
is kept in memory, and it takes 40 ms more to import.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from lienworker.outbox.breaker import breakers
from lienworker.outbox.uploads import ENDPOINTS
from lienworker.queries.counties import served_by_host
from lienworker.queries.forecast.facts import facts_now
from lienworker.queries.forecast.model import forecast, forecast_of, urgent_part
from lienworker.queries.outbox import lanes
from lienworker.queries.snapshot import facts_of
from lienworker.queries.waiting import oldest_by_topic
from lienworker.store.counts import sums, this_minute
from lienworker.web.names import OTHER, Names
from lienworker.web.pages import Place

_MB = 1_000_000
_TASK_BOUNDS = ("1", "5", "15", "60", "300", "900", "3600", "14400", "86400", "+Inf")
_FETCH_BOUNDS = ("50", "100", "250", "500", "1000", "2500", "5000", "10000", "30000", "+Inf")

#: The value of each series by those of its labels, in their order; by a plain string where there is one label.
_Values = Mapping[str, float] | Mapping[tuple[()], float] | Mapping[tuple[str, str], float]


def metrics(place: Place, names: Names) -> str:
    return "".join(f"{line}\n" for line in _lines(place, names))


def _lines(place: Place, names: Names) -> Iterator[str]:
    facts = facts_of(place.settings, place.folder)
    yield from _gauge("tasks", "Tasks by status.", facts["tasks"], "status")
    yield from _gauge("outbox_rows", "Outbox rows by topic and state.", _outbox(), "topic", "state")
    ages = {topic: minutes * 60 for topic, minutes in oldest_by_topic(this_minute()).items()}
    yield from _gauge("oldest_waiting_seconds", "Age of the oldest waiting row.", ages, "topic")
    yield from _counter("tasks_ended", "Tasks that ended.", _counts("task"), "status")
    pages = names.bounded("platform", _counts("fetch"))
    yield from _counter("pages_fetched", "Pages fetched, by platform.", pages, "platform")
    tries = _tries(names, _counts("try"))
    yield from _counter("tries_failed", "Tries that failed, by topic and reason.", tries, "topic", "reason")
    fetches = _fetches(names)
    yield from _counter("fetches", "Fetches by class of host and outcome.", fetches, "host_class", "outcome")
    yield from _gateway()
    yield from _histogram("task_seconds", "From arrival to end.", "task_seconds", _TASK_BOUNDS, 1)
    yield from _histogram("fetch_seconds", "Fetching a page.", "fetch_ms", _FETCH_BOUNDS, 1000)
    yield from _forecast(place)
    yield from _gauge("workers", "Living worker processes.", {(): len(facts["workers"])})
    yield from _gauge("stack_up", "1 while a stack runs.", {(): int(facts["stack_runs"])})
    paused = {pause["lane"] for pause in facts["pauses"]}
    lanes_paused = {lane: int(lane in paused) for lane in ("intake", "fetch", "upload")}
    yield from _gauge("paused", "1 while a lane is paused.", lanes_paused, "lane")
    yield from _gauge("counties_paused", "Counties that the drift guard holds.", {(): len(facts["drift"])})
    yield from _gauge("disk_free_bytes", "Free bytes on the data folder's disk.", {(): facts["disk_free_mb"] * _MB})
    if facts["data_mb"] is not None:
        size = {(): facts["data_mb"] * _MB}
        yield from _gauge("data_bytes", "What the data folder takes, as last measured.", size)
    # Without a limit there is no series: a share of nothing is not a number.
    if most := place.settings.data_max_mb:
        yield from _gauge("data_max_bytes", "What the data folder may take.", {(): most * _MB})


def _outbox() -> dict[tuple[str, str], int]:
    return {(lane["topic"], state): n for lane in lanes() for state, n in lane["states"].items()}


def _gateway() -> Iterator[str]:
    rows = breakers()
    taken = {row["endpoint"]: row["successes"] for row in rows}
    yield from _counter("gateway_accepted", "What the Gateway took.", taken, "endpoint")
    calls = {_pair(key): n for key, n in _counts("gateway").items()}
    yield from _counter("gateway_calls", "Calls by endpoint and what they came to.", calls, "endpoint", "outcome")
    is_open = {row["endpoint"]: row["is_open"] for row in rows}
    yield from _gauge("breaker_open", "1 while an endpoint's breaker is open.", is_open, "endpoint")


def _forecast(place: Place) -> Iterator[str]:
    """Yield when each queue ends, as Unix time; a queue without a time (empty, paused) has no series."""
    facts = facts_now(place.settings)
    found = {"all": forecast(facts), "urgent": forecast_of(facts, urgent_part(facts))}
    ends = {queue: each.ends.likely / 1000 for queue, each in found.items() if each.ends}
    yield from _gauge("forecast_end_timestamp_seconds", "When the last task ends, by queue.", ends, "queue")
    hindered: Counter[str] = Counter({"held": sum(facts.held.values())})
    for site in found["all"].hindered:
        hindered[str(site.hindrance)] += site.facts.waiting
    yield from _gauge("forecast_stuck_tasks", "Tasks that do not move, by cause.", hindered, "cause")


def _fetches(names: Names) -> Counter[tuple[str, str]]:
    """Count fetches by class of host: hosts of one owner are one class (a platform's counties are its subdomains)."""
    served: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for host, good, bad in served_by_host():
        served[host_class(host)] += good
        failed[host_class(host)] += bad
    named = names.chosen("host_class", served + failed)
    found: Counter[tuple[str, str]] = Counter()
    for outcome, counts in (("served", served), ("failed", failed)):
        for name, n in counts.items():
            found[name if name in named else OTHER, outcome] += n
    return found


def host_class(host: str) -> str:
    """Return `schneidercorp.com` for `beacon.schneidercorp.com`, `polk.ia.us` for `www.assess.co.polk.ia.us`."""
    name = host.partition(":")[0] if not host.startswith("[") else ""
    parts = name.split(".")
    if not name or parts[-1].isdigit():
        return "ip"
    return ".".join(parts[-3:] if parts[-1] == "us" else parts[-2:])


def _tries(names: Names, tries: Mapping[str, int]) -> Counter[tuple[str, str]]:
    """Count failed tries; reasons of uploads always have their own name: they are ours, and few."""
    uploads = {key: n for key, n in tries.items() if key.partition("|")[0] in ENDPOINTS}
    steps = {key: n for key, n in tries.items() if key not in uploads}
    found: Counter[tuple[str, str]] = Counter()
    for key, n in (names.bounded("reason", steps) | uploads).items():
        topic, reason = _pair(key)
        found[topic, reason or OTHER] += n
    return found


def _counts(rollup: str) -> dict[str, int]:
    return {key: n for key, (n, _) in sums(rollup).items()}


def _pair(key: str) -> tuple[str, str]:
    first, _, second = key.partition("|")
    return first, second


def _gauge(name: str, words: str, values: _Values, *labels: str) -> Iterator[str]:
    return _metric(name, "gauge", words, values, labels)


def _counter(name: str, words: str, values: _Values, *labels: str) -> Iterator[str]:
    return _metric(f"{name}_total", "counter", words, values, labels)


def _metric(name: str, kind: str, words: str, values: _Values, labels: tuple[str, ...]) -> Iterator[str]:
    yield from _head(name, kind, words)
    for key, value in values.items():
        texts = map(_escaped, (key,) if isinstance(key, str) else key)
        pairs = ",".join(f'{label}="{text}"' for label, text in zip(labels, texts, strict=True))
        yield f"lienworker_{name}{{{pairs}}} {value}" if pairs else f"lienworker_{name} {value}"


def _histogram(name: str, words: str, rollup: str, bounds: tuple[str, ...], unit: int) -> Iterator[str]:
    found = sums(rollup)
    yield from _head(name, "histogram", words)
    seen = 0
    for bound in bounds:
        seen += found.get(bound, (0, 0))[0]
        shown = bound if bound == "+Inf" else f"{int(bound) / unit:g}"
        yield f'lienworker_{name}_bucket{{le="{shown}"}} {seen}'
    yield f"lienworker_{name}_sum {sum(total for _, total in found.values()) / unit:g}"
    yield f"lienworker_{name}_count {seen}"


def _head(name: str, kind: str, words: str) -> tuple[str, str]:
    return f"# HELP lienworker_{name} {words}", f"# TYPE lienworker_{name} {kind}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
