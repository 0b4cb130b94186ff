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
    "nested labels": lambda size: b"<div>Owner: DOE" * (size // 15),
    "bold labels": lambda size: b"<b>Owner:</b>" * (size // 13),
    "bold labels and values": lambda size: b"<b>Owner:</b>DOE JOHN " * (size // 22),
    "tails of a nest": lambda size: b"<b>" * 200 + b"x</b>" * 200 + b"<p>" + b"x<i>y</i>" * (size // 9),
    "open cells": lambda size: b"<table>" + b"<tr><td>Owner:<td>X" * (size // 19),
    "open options": lambda size: b"<select>" + b"<option>Owner: X" * (size // 16),
    "open links": lambda size: b"<a href=x>Owner: X" * (size // 18),
    "open fonts": lambda size: b"<font><p>Owner: X" * (size // 17),
    "closings of nothing": lambda size: b"<b>" * 250 + b"</i>" * (size // 4),
    "tables in tables in rows": lambda size: _fill("<tr><td>Owner<td>X<tr><td rowspan=20>Owner<td>", size).encode(),
    "numbered": lambda size: b"<p>" + b"1: " * (size // 3),
    "acres": lambda size: b"<p>Lot Size: sq " + b"1" * size,
    "a long month": lambda size: b"<p>Sale Date: 1" + b"a" * size,
    "many sales": lambda size: (
        b"<table><tr><th>Sale Date<th>Sale Price" + b"".join(b"<tr><td>1/2/2020<td>$%d" % n for n in range(size // 26))
    ),
    "many values of a year": lambda size: (
        b"<table><tr><th>Year<th>Land Value<th>Assessed Value"
        + b"".join(b"<tr><td>2020<td>$%d<td>%d" % (n, n) for n in range(size // 30))
    ),
    "many owners": lambda size: (
        b"<p>Owner: DOE JOHN<p>" + b"".join(b"<p>Co-Owner: DOE NO %d" % n for n in range(size // 24))
    ),
    "one cell": lambda size: b"<table><tr><td>Legal Description</td><td>" + b"LOT 3 BLK 7 " * (size // 12),
    "brackets among attributes": lambda size: b"<div " + b" ".join(b"a%d<=1" % n for n in range(size // 9)) + b">x",
    "brackets in quotes": lambda size: b"<div " + b" ".join(b"a%d='>'" % n for n in range(size // 10)) + b">x",
    "brackets in a name": lambda size: b"<a" * (size // 40) + b"a" * size,
    "brackets before a long name": lambda size: b"<a" + b" <a" * 990 + b"a" * size,
    "captcha words": lambda size: b"<p>" + b"type=passwortype='passwor" * (size // 25),
    "json of many names": lambda size: (
        b"[" + b",".join(b'{"name%d":1,"owner":2}' % n for n in range(size // 24)) + b"]"
    ),
    "json of empty lists": lambda size: b"[" + b"[]," * (size // 3) + b"[]]",
    "json of zeros": lambda size: b"[" + b"0," * (size // 2) + b"0]",
    "json text of shorthand": lambda size: b'{"retHTML":"AITEM_' + b"@A@L" * (size // 4) + b'"}',
    "csv of short rows": lambda size: b"Parcel ID,Owner,Face Amount\n" + b"1,A,2\n" * (size // 6),
    "csv of a wide head": lambda size: (
        b"Parcel ID,Owner,Face Amount," + b"a," * (size // 4) + b"\n" + b"1,A\n" * (size // 8)
    ),
    "csv in one line": lambda size: b"Parcel ID,Owner,Face Amount\n" + b"1," * (size // 2),
    "csv of returns": lambda size: b"Parcel ID,Owner,Face Amount\r" + b"1,A,2\r" * (size // 6),
    "bytes that are no letters": lambda size: b"<p>" + b"\xff\xfe\x80" * (size // 3),
    "utf-7 tags": lambda size: b"<meta charset=utf-7>" + b"+ADwAYgA-" * (size // 9),
    # As many as give a record: about 14 MB of it.
    "csv that is a list": lambda size: (
        b"Parcel ID,Owner,Face Amount\n"
        + b"".join(b"%07d,OWNER %d,12.00\n" % (n, n) for n in range(min(60_000, size // 25)))
    ),
}
