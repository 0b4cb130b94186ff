"""The reports as a page to look at: one HTML file, offline, with charts."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from lienworker.db.clock import rfc3339
from lienworker.queries import charts
from lienworker.queries.figures import Figures, failed_tasks_of, page_times, slowest_hosts, stored_records
from lienworker.store.counts import failures, task_counts
from lienworker.store.history import paused_places
from lienworker.text_safety import redacted

_COUNTIES = 20
_FIELDS = 40
_REASONS = 15
_BAD = frozenset({"failed", "expired"})


def analysis_page() -> str:
    """Return what was collected, and how well."""
    figures = Figures(stored_records())
    body = [
        charts.quiet(f"as of {rfc3339()}"),
        charts.section("Outcome", charts.bars(task_counts(), bad=_BAD)),
        *_drift(),
        charts.section("Fill rates by field and county", _fill_rates(figures)),
        charts.section("Amounts", *_amounts(figures)),
        charts.section("Years", *_years(figures)),
        charts.section("Outliers", _outliers(figures)),
        charts.section("Slowest hosts", _hosts()),
        charts.section("Failures by reason", *_failures()),
    ]
    return charts.page("What lienworker collected", body)


def _drift() -> Iterator[str]:
    if places := paused_places():
        rows = [(place["words"], place["paused_at"], place["sample_path"]) for place in places]
        yield charts.section("Paused counties", charts.table(("why", "since", "a page that shows it"), rows))


def _fill_rates(figures: Figures) -> str:
    places = [place for place, _ in figures.results.most_common(_COUNTIES)]
    total = sum((figures.there[place] for place in places), start=type(figures.there[("", "")])())
    names = [name for name, _ in total.most_common(_FIELDS)]
    head = [f"{county} ({platform})" for platform, county in places]
    return charts.heatmap(
        head, [(name, [figures.there[place][name] / figures.results[place] for place in places]) for name in names]
    )


def _amounts(figures: Figures) -> Iterator[str]:
    for name, amount in figures.amounts.items():
        if amount.values:
            yield f"<h3>{escape(name)}</h3>"
            yield charts.columns(amount.by_size())
            if amount.zero_or_less:
                yield charts.quiet(f"{amount.zero_or_less:,} are zero or less")


def _years(figures: Figures) -> Iterator[str]:
    for name, years in figures.years.items():
        if years:
            yield f"<h3>{escape(name)}</h3>"
            yield charts.columns({str(year): years[year] for year in range(min(years), max(years) + 1)})


def _outliers(figures: Figures) -> str:
    rows = [
        (name, value, parcel, task_id)
        for name, amount in figures.amounts.items()
        for value, parcel, task_id in amount.outliers()
    ]
    return charts.table(("amount", "value", "parcel", "task"), rows)


def _hosts() -> str:
    hosts = slowest_hosts(page_times())
    return charts.bars({row["host"]: row["median_ms"] for row in hosts}, unit=" ms") + charts.table(
        ("host", "pages", "median ms", "p90 ms"), [tuple(row.values()) for row in hosts]
    )


def _failures() -> Iterator[str]:
    found = failures()
    yield charts.bars({reason: n for reason, n, _ in found}, bad=frozenset(reason for reason, _, _ in found))
    for reason, n, _ in found[:_REASONS]:
        yield f"<h3>{escape(reason)}: {n:,}</h3>"
        rows = [(task["task_id"], task["url"], task["last_error"]) for task in failed_tasks_of(reason, 3)]
        yield charts.table(("task", "address", "what was wrong"), redacted(rows))


def comparison_page(found: dict[str, Any]) -> str:
    """Return the page that compares two runs."""
    a, b = found["a"], found["b"]
    head = ("run", "what", "started", "parser versions", "pages", "without a record")
    runs = [
        (str(run["id"]), run["what"], run["started_at"], _versions(run), run["pages"], run["failed"]) for run in (a, b)
    ]
    counts = {name: found[key] for name, key in (("same in both", "same"), ("pages in both", "pages"))}
    counts |= {f"only in run {a['id']}": found["only_a"], f"only in run {b['id']}": found["only_b"]}
    body = [charts.table(head, runs), charts.section("Pages", charts.bars(counts))]
    body.append(charts.section("Records gained and lost", *_changes(found["records"])))
    rows = [
        (item["platform"], item["field"], item["gained"], item["lost"], item["changed"]) for item in found["fields"]
    ]
    body.append(charts.section("Fields", charts.table(("platform", "field", "gained", "lost", "changed"), rows)))
    for item in found["fields"]:
        body.append(charts.section(f"{item['platform']}: {item['field']}", *_changes(item)))
    return charts.page(f"Run {a['id']} against run {b['id']}", body)


def _versions(run: dict[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in run["versions"].items())


def _changes(item: dict[str, Any]) -> Iterator[str]:
    yield charts.bars({kind: item[kind] for kind in ("gained", "lost", "changed")}, bad=frozenset({"lost"}))
    rows = [
        (sample["kind"], sample["parcel_id"], sample["before"], sample["after"], sample["task_id"])
        for sample in item["samples"]
    ]
    yield charts.table(("what", "parcel", "before", "after", "task"), rows)
