"""Pages that nobody would write but an attacker or a broken server, of about the size that is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable


def _fill(piece: str, size: int) -> str:
    return piece * max(1, size // len(piece))


def _nested(opening: str, closing: str, size: int) -> str:
    depth = max(1, size // (len(opening) + len(closing)))
    return opening * depth + "Owner: DOE JOHN" + closing * depth


def _pairs(size: int) -> str:
    return _fill("<tr><td>Owner Name:</td><td>DOE JOHN 12/31/1999 $1,234.56</td></tr>", size)


PAGES: dict[str, Callable[[int], bytes]] = {
    "one long word": lambda size: b"<html><body>" + b"a" * size,
    "blanks": lambda size: b"<html><body>Owner" + b" " * size + b"x",
    "blank lines": lambda size: b"<html><body>Owner:" + b"\n\t " * (size // 3) + b"x",
    "digits": lambda size: b"<html><body>Parcel ID: " + b"1" * size,
    "dashed digits": lambda size: b"<html><body>Parcel ID: " + b"1-" * (size // 2),
    "commas": lambda size: b"<html><body>Amount due: $" + b"1," * (size // 2),
    "colons": lambda size: b"<html><body>" + b"Owner:" * (size // 6),
    "angle brackets": lambda size: b"<" * size,
    "half tags": lambda size: b"<div " * (size // 5),
    "half attributes": lambda size: b"<div a='" * (size // 8),
    "comments that never end": lambda size: b"<!--" * (size // 4),
    "entities": lambda size: b"<html><body>" + b"&amp;&#x41;&nosuch;" * (size // 19),
    "scripts": lambda size: b"<html><body>" + b"<script>var a = '</scr';</script>" * (size // 33),
    "deep": lambda size: _nested("<div>", "</div>", size).encode(),
    "deep tables": lambda size: _nested("<table><tr><td>", "</td></tr></table>", size).encode(),
    "deep and open": lambda size: b"<b><i><p>" * (size // 9),
    "deep lists": lambda size: _nested("<ul><li>", "</li></ul>", size).encode(),
    "many rows": lambda size: f"<table>{_pairs(size)}</table>".encode(),
    "one wide row": lambda size: f"<table><tr>{_fill('<td>Owner</td>', size)}</tr></table>".encode(),
    "wide header": lambda size: (
        f"<table><tr>{_fill('<th>Tax Year</th>', size // 2)}</tr><tr>{_fill('<td>2020</td>', size // 2)}</tr></table>"
    ).encode(),
    "spans": lambda size: f"<table><tr>{_fill('<td colspan=1000 rowspan=1000>Owner</td>', size)}</tr></table>".encode(),
    "huge span": lambda size: b"<table><tr><td colspan=999999999 rowspan=999999999>Owner</td></tr></table>",
    "many tables": lambda size: _fill("<table><tr><td>Owner</td><td>X</td></tr></table>", size).encode(),
    "definition lists": lambda size: f"<dl>{_fill('<dt>Owner</dt><dd>X</dd>', size)}</dl>".encode(),
    "labels": lambda size: _fill("<label for=a>Owner</label><input id=a value=X>", size).encode(),
    "many attributes": lambda size: b"<div " + b" ".join(b"a%d=1" % n for n in range(size // 8)) + b">Owner: X</div>",
    "no text at all": lambda size: bytes(range(256)) * (size // 256),
    "zeros": lambda size: bytes(size),
    "utf-16 that says utf-8": lambda size: b"<meta charset=utf-8>" + _pairs(size // 2).encode("utf-16"),
    "charset of its own": lambda size: b"<meta charset=klingon>" + _pairs(size).encode(),
    "charset utf-7": lambda size: b"<meta charset=utf-7>+ADw-script+AD4-" + _pairs(size).encode(),
    "xml that names files": lambda size: (
        b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">'
        b'<!ENTITY l0 "lol"><!ENTITY l1 "&l0;&l0;&l0;&l0;&l0;&l0;&l0;&l0;&l0;&l0;">]><a>&x;&l1;</a>'
        + _pairs(size).encode()
    ),
    "json arrays": lambda size: b"[" * size,
    "json objects": lambda size: b'{"a":' * (size // 5),
    "json features": lambda size: json.dumps(
        {"features": [{"attributes": {"OWNER": "X" * 50, "PARCEL_ID": str(n)}} for n in range(size // 120)]}
    ).encode(),
    "json numbers": lambda size: b'{"features":[{"attributes":{"A":1' + b"0" * size + b"}}]}",
    "json of odd values": lambda size: b'{"features":[null,1,"x",[],{"attributes":null},{"attributes":[1]}]}',
    "csv": lambda size: b"Parcel ID,Owner,Face Amount\n" + b'1,"DOE, JOHN",12.00\n' * (size // 20),
    "csv quotes": lambda size: b"Parcel ID,Owner\n" + b'1,"' * (size // 3),
}
