"""Charts as inline SVG, and tables: nothing is loaded from anywhere, and every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

_WIDTH, _ROW, _LABEL = 720, 22, 190
_COLUMNS_HEIGHT = 140

STYLE = """
:root { color-scheme: light dark; --bar: #2f6f9f; --bad: #b5442e; --line: #8886; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2.2rem; border-bottom: 1px solid var(--line) }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem }
svg { max-width: 100%; height: auto; font: 12px system-ui, sans-serif; fill: currentColor }
.bar { fill: var(--bar) } .bad { fill: var(--bad) }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto }
th, td { text-align: left; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums }
td { overflow-wrap: anywhere; min-width: 3rem } .quiet { opacity: .65 }
"""


def page(title: str, body: Iterable[str]) -> str:
    """Return a whole document. Its policy forbids loading or running anything, whatever a scraped text may try."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head>\n<body><h1>{escape(title)}</h1>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def bars(counts: Mapping[str, float], *, bad: frozenset[str] = frozenset(), unit: str = "") -> str:
    """Return one bar per name, the longest across the whole width."""
    if not counts:
        return quiet("nothing to show")
    most = max(counts.values()) or 1
    space = _WIDTH - _LABEL - 90
    parts = []
    for n, (name, value) in enumerate(counts.items()):
        y, width = n * _ROW, max(1.0, space * value / most) if value else 0
        kind = "bad" if name in bad else "bar"
        parts.append(
            f'<text x="{_LABEL - 8}" y="{y + 15}" text-anchor="end">{escape(_short(name, 30))}</text>'
            f'<rect class="{kind}" x="{_LABEL}" y="{y + 3}" width="{width:.1f}" height="16"/>'
            f'<text x="{_LABEL + width + 6:.1f}" y="{y + 15}">{value:,g}{escape(unit)}</text>'
        )
    return _svg(len(counts) * _ROW, "".join(parts))


def columns(counts: Mapping[str, int]) -> str:
    """Return a histogram: one column per name, in the order given."""
    if not counts:
        return quiet("nothing to show")
    most, step = max(counts.values()) or 1, min(48.0, _WIDTH / len(counts))
    every = max(1, round(40 / step))
    parts = []
    for n, (name, value) in enumerate(counts.items()):
        height = _COLUMNS_HEIGHT * value / most
        x, y = n * step, _COLUMNS_HEIGHT - height + 10
        parts.append(
            f'<rect class="bar" x="{x:.1f}" y="{y:.1f}" width="{max(1.0, step - 2):.1f}" height="{height:.1f}">'
            f"<title>{escape(name)}: {value:,}</title></rect>"
        )
        if n % every == 0:
            parts.append(f'<text x="{x:.1f}" y="{_COLUMNS_HEIGHT + 26}">{escape(name)}</text>')
    return _svg(_COLUMNS_HEIGHT + 32, "".join(parts))


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    if not body:
        return quiet("nothing to show")
    return f"<table><tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>{body}</table>"


def heatmap(head: Sequence[str], rows: Iterable[tuple[str, Sequence[float | None]]]) -> str:
    """Return shares as shades, with the number in each cell."""
    lines = []
    for name, shares in rows:
        cells = "".join(
            '<td class="n quiet">–</td>'
            if share is None
            else f'<td class="n" style="background:rgb(47 111 159 / {0.75 * share:.2f})">{share:.0%}</td>'
            for share in shares
        )
        lines.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
    if not lines:
        return quiet("nothing to show")
    top = "".join(f"<th>{escape(_short(name, 24))}</th>" for name in head)
    return f"<table><tr><th></th>{top}</tr>{''.join(lines)}</table>"


def section(title: str, *parts: str) -> str:
    return f"<h2>{escape(title)}</h2>\n" + "\n".join(parts)


def quiet(words: str) -> str:
    return f'<p class="quiet">{escape(words)}</p>'


def _cell(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td class="n">{value:,}</td>'
    return f"<td>{escape(_short('' if value is None else str(value), 400))}</td>"


def _svg(height: int, content: str) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img">{content}</svg>'


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
