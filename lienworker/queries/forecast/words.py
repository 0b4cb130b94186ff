"""The forecast in words: the same in `run`, `status`, the monitor and the API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lienworker.db.clock import rfc3339
from lienworker.queries.forecast.model import Forecast, Hindrance, SiteForecast, Span
from lienworker.queries.formatting import number, seconds
from lienworker.text_safety import plural

_HELD = {"drift": "their pages have changed", "paused": "their county is paused", "operator": "held by hand"}


def clock(ms: int, now: int) -> str:
    """Return a clock time, UTC; with its day where that is not today's."""
    text = rfc3339(ms)
    day = "" if text[:10] == rfc3339(now)[:10] else f"{text[:10]} "
    return f"{day}{text[11:16]} UTC"


def when(span: Span, now: int) -> str:
    """Return a time with its range, and how long it is until then."""
    left = max(0, span.likely - now) / 1000
    early, late = clock(span.early, now), clock(span.late, now)
    between = f", between {early.removesuffix(' UTC')} and {late.removesuffix(' UTC')}" if early != late else ""
    return f"about {clock(span.likely, now)} (in {seconds(left)}{between})"


def in_short(found: Forecast) -> str | None:
    """Return when all is done that moves, for a line of text; None where nothing moves."""
    if found.lane_paused is not None or found.ends is None:
        return None
    return f"done at {when(found.ends, found.now)}"


def stuck_in_words(found: Forecast) -> Iterator[str]:
    """Yield what does not move, each cause once."""
    if found.lane_paused is not None:
        yield f"fetch is paused ({found.lane_paused}); nothing ends until it is resumed"
        return
    for site in found.hindered:
        yield _hindered(site, found.now)
    for reason, n in found.held.items():
        verb = "is" if n == 1 else "are"
        yield f"{plural(n, 'task')} {verb} held ({_HELD.get(reason, reason)})"


def _hindered(site: SiteForecast, now: int) -> str:
    n, facts = site.facts.waiting + site.facts.in_hand, site.facts
    waits = f"{plural(n, 'task')} {'waits' if n == 1 else 'wait'} for {facts.site}"
    if site.hindrance is Hindrance.DEAD and facts.dead_since is not None and site.ends is not None:
        since, given_up = clock(facts.dead_since, now), clock(site.ends.likely, now)
        return f"{waits}, which has not answered since {since}; they fail at {given_up} if it does not"
    return f"{waits}, which is paused"


def before_start(found: Forecast, n: int) -> str:
    """Return how long work takes that has not begun."""
    hosts = f"{plural(n, 'parcel')} on {plural(len(found.sites), 'host')}"
    if found.ends is None or found.lane_paused is not None:
        return f"{hosts}: nothing of it moves while fetching or these hosts are paused."
    left = seconds((found.ends.likely - found.now) / 1000)
    between = f"{seconds((found.ends.early - found.now) / 1000)} to {seconds((found.ends.late - found.now) / 1000)}"
    longest = f"; {words}" if (words := longest_in_words(found)) else ""
    return f"{hosts}: about {left} ({between}) at the present delays{longest}."


def for_progress(found: Forecast) -> str:
    """Return when a run ends, and whom it waits for, as short as a line of progress needs it."""
    if found.lane_paused is not None:
        return f"fetch is paused ({found.lane_paused})"
    dead = [site for site in found.hindered if site.hindrance is Hindrance.DEAD]
    paused = [site.facts.site for site in found.hindered if site.hindrance is Hindrance.PAUSED]
    parts = [f"done at {clock(found.ends.likely, found.now)}"] if found.ends else []
    parts += [_silent(site, found.now) for site in dead[:1]]
    parts += [f"{len(dead) - 1} more hosts are silent"] if len(dead) > 1 else []
    parts += [f"{paused[0]} is paused"] if paused else []
    return "; ".join(parts)


def _silent(site: SiteForecast, now: int) -> str:
    since = clock(site.facts.dead_since or now, now)
    given_up = clock(site.ends.likely if site.ends else now, now)
    return f"{site.facts.site} silent since {since}, given up at {given_up}"


def longest_in_words(found: Forecast) -> str | None:
    """Return the site that ends last, and why; None where none moves."""
    site = next((one for one in found.sites if one.hindrance is None and one.ends is not None), None)
    if site is None:
        return None
    facts = site.facts
    return f"the longest is {facts.site}: {number(facts.waiting)} to go at {facts.delay:g} s ({facts.delay_from})"


def as_facts(found: Forecast) -> dict[str, Any]:
    """Return the forecast for machines; times are RFC 3339."""
    return {
        "ends": span_as_facts(found.ends),
        "words": in_short(found),
        "longest": longest_in_words(found),
        "stuck": list(stuck_in_words(found)),
        "moving": found.moving,
        "hosts": [_site_as_facts(site) for site in found.sites],
    }


def span_as_facts(span: Span | None) -> dict[str, str] | None:
    if span is None:
        return None
    return {"at": rfc3339(span.likely), "early": rfc3339(span.early), "late": rfc3339(span.late)}


def _site_as_facts(site: SiteForecast) -> dict[str, Any]:
    return {
        "host": site.facts.site,
        "waiting": site.facts.waiting,
        "ends": span_as_facts(site.ends),
        "hindrance": site.hindrance,
    }
