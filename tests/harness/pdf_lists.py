"""Writes PDF documents with lists, ruled or aligned, in the plainest way that the format allows."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

Table = Sequence[Sequence[str]]
_SIZE, _PITCH, _TOP, _LEFT = 9, 16, 800, 40
ROWS_A_PAGE = 40


def ruled(header: Sequence[str], rows: Table, widths: Sequence[int], title: str = "Tax sale list") -> bytes:
    """Cells with rules around them, the header on each page."""
    return document([_ruled_page(header, part, widths, title) for part in _parts(rows)])


def aligned(header: Sequence[str], rows: Table, widths: Sequence[int], title: str = "Tax sale list") -> bytes:
    """Columns without rules, the last aligned to the right; a title above, the number of the page below."""
    pages = list(_parts(rows))
    return document([_aligned_page(header, part, widths, title, n, len(pages)) for n, part in enumerate(pages, 1)])


def _parts(rows: Table) -> list[Table]:
    return [rows[at : at + ROWS_A_PAGE] for at in range(0, len(rows), ROWS_A_PAGE)] or [[]]


def text(x: float, y: float, words: str) -> str:
    escaped = words.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return f"BT /F1 {_SIZE} Tf {x} {y} Td ({escaped}) Tj ET"


def _ruled_page(header: Sequence[str], rows: Table, widths: Sequence[int], title: str) -> list[str]:
    drawn = [text(_LEFT, _TOP + 14, title)]
    edges = [_LEFT + sum(widths[:at]) for at in range(len(widths) + 1)]
    table = [header, *rows]
    for at, row in enumerate(table):
        base = _TOP - at * _PITCH
        drawn += [text(edges[column] + 3, base - 11, cell) for column, cell in enumerate(row) if cell]
    bottom = _TOP - len(table) * _PITCH
    drawn += [f"{edge} {_TOP} m {edge} {bottom} l S" for edge in edges]
    heights = (_TOP - at * _PITCH for at in range(len(table) + 1))
    return drawn + [f"{edges[0]} {height} m {edges[-1]} {height} l S" for height in heights]


def _aligned_page(
    header: Sequence[str], rows: Table, widths: Sequence[int], title: str, number: int, pages: int
) -> list[str]:
    drawn = [text(_LEFT, _TOP + 30, title)]
    for at, row in enumerate([header, *rows]):
        height = _TOP - at * _PITCH
        for column, cell in enumerate(row):
            x: float = _LEFT + sum(widths[:column])
            if column == len(row) - 1:  # Courier is 0.6 of its size wide
                x += widths[column] - 0.6 * _SIZE * len(cell)
            drawn += [text(x, height, cell)] if cell else []
    return [*drawn, text(280, 20, f"Page {number} of {pages}")]


def document(pages: Sequence[Sequence[str]]) -> bytes:
    """A document of pages, each a list of drawing commands."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>",
    ]
    for n, commands in enumerate(pages):
        stream = zlib.compress("\n".join(commands).encode("latin-1"))
        about = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 842] /Contents {5 + 2 * n} 0 R"
        objects.append(f"{about} /Resources << /Font << /F1 3 0 R >> >> >>".encode())
        head = f"<< /Length {len(stream)} /Filter /FlateDecode >>\nstream\n".encode()
        objects.append(head + stream + b"\nendstream")
    return _file(objects)


def _file(objects: Sequence[bytes]) -> bytes:
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    return bytes(out) + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{end}".encode()
