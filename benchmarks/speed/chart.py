"""Horizontal bars as SVG: readable in light and dark, without any library."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_ROW, _LEFT, _WIDTH = 30, 270, 420


def bars(rows: Sequence[tuple[str, float]], unit: str = "pages/s") -> str:
    most = max(value for _, value in rows)
    lines = []
    for number, (name, value) in enumerate(rows):
        y, width = number * _ROW + 8, _WIDTH * value / most
        ours = "ours" if "lienworker" in name else "other"
        lines.append(
            f'<text class="name" x="{_LEFT - 10}" y="{y + 14}" text-anchor="end">{escape(name)}</text>'
            f'<rect class="{ours}" x="{_LEFT}" y="{y}" width="{width:.0f}" height="20" rx="2"/>'
            f'<text class="value" x="{_LEFT + width + 6:.0f}" y="{y + 14}">{value:.0f} {unit}</text>'
        )
    height = len(rows) * _ROW + 16
    style = (
        "text{font:13px sans-serif;fill:#333}.ours{fill:#2a6f97}.other{fill:#a9b4bd}"
        "@media(prefers-color-scheme:dark){text{fill:#ddd}.other{fill:#5c6770}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 110} {height}" role="img">'
        f"<title>Pages a second</title><style>{style}</style>{''.join(lines)}</svg>\n"
    )
