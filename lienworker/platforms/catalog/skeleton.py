"""The beginning of a new platform: its module, a page that it reads, and the test that it has to pass."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from lienworker.errors import InputError
from lienworker.platforms.catalog.proposal import Proposal
from lienworker.platforms.core.base import Page, Record

MODULE = '''"""The county sites of {title}: say here what they look like, and what is odd about them."""

from __future__ import annotations

from lienworker.platforms.selectors import SelectorPlatform, Spot


class {title}Platform(SelectorPlatform):
    """Where each field is. `lienworker platforms explain {name}.html --platform {name}` shows what a selector sees."""

    name = "{name}"
    version = "1"  # change it when the same page gives another record
    delay = 2.0  # seconds between two requests to one host
    hosts = {hosts}
    marks = {marks}
    url_template = {url_template}
    fields = {{
        # CSS or XPath; amounts, years and areas are cleaned by their names.
{fields}
    }}
    tables = {{
{tables}
    }}


PLATFORM = {title}Platform()
'''
PAGE = """<!doctype html>
<html><head><meta name="generator" content="{name}"><title>Parcel 00-12-003</title></head>
<body>
<h1>A page of your county belongs here; people on it are invented</h1>
<table class="facts">
<tr><th>Parcel</th><td id="parcel">00-12-003</td></tr>
<tr><th>Owner</th><td id="owner">WREN ADA</td></tr>
<tr><th>Situs</th><td id="situs">12 JUNIPER LN</td></tr>
<tr><th>Just value</th><td id="value">$123,400</td></tr>
</table>
<table id="sales">
<tr><th>Sale Date</th><th>Sale Price</th><th>Grantor</th></tr>
<tr><td>07/25/2017</td><td>$98,000</td><td>FINCH OTTO</td></tr>
</table>
</body></html>
"""
TEST = '''"""The pages of {name}, as they are and as they must not be."""

from __future__ import annotations

from pathlib import Path

import pytest

from lienworker.errors import PageError
from lienworker.platforms import Page, Target, registry_with

HERE = Path(__file__).parent
URL = {url}
EXPECTED = {{
{expected}
}}


def test_the_page_says_what_a_reader_sees() -> None:
    page = Page(URL, (HERE / "{name}.html").read_bytes())
    parsed = registry_with(HERE).parse(page, Target())
    assert parsed.platform == "{name}"
    assert {{name: parsed.record.get(name) for name in EXPECTED}} == EXPECTED


def test_an_address_can_be_built() -> None:
    url = registry_with(HERE).get("{name}").build_url(Target(parcel_id="00-12 003"))
    assert url {built}


def test_a_page_without_a_parcel_is_told_apart() -> None:
    with pytest.raises(PageError):
        registry_with(HERE).parse(Page(URL, b"<p>No such parcel</p>"), Target())
'''


@dataclass(frozen=True, slots=True)
class Start:
    """What a new platform begins with: a page, where it came from, and what is known of its fields."""

    url: str
    hosts: tuple[str, ...]
    page: bytes
    expected: Record
    #: Selectors by name; an empty one is to be filled in.
    fields: Mapping[str, str]
    tables: Mapping[str, str]
    marks: tuple[str, ...] = ()
    url_template: str = ""
    #: What the page says besides, for which a person may find a selector.
    left: Mapping[str, Any] = field(default_factory=dict)


def blank_start(name: str) -> Start:
    """A page of no county, with blank selectors."""
    return Start(
        url=f"https://www.{name}.example/parcel/1",
        hosts=(f"{name}.example", f"*.{name}.example"),
        page=PAGE.format(name=name).encode(),
        expected={
            "parcel_id": "00-12-003",
            "owner_name": "WREN ADA",
            "property_address": "12 JUNIPER LN",
            "market_value": 123400.0,
            "sales": [{"date": "2017-07-25", "price": 98000.0, "grantor": "FINCH OTTO"}],
        },
        fields=dict.fromkeys(("parcel_id", "owner_name", "property_address", "market_value"), ""),
        tables={"sales": ""},
        marks=(f'content="{name}"',),
        url_template=f"https://www.{name}.example/parcel/{{parcel_id}}",
    )


def start_from(name: str, page: Page, proposal: Proposal) -> Start:
    """The same from a page of a county; its own address, if that is known, says whose pages are like it."""
    url = page.url if "://" in page.url else ""
    host = urlsplit(url).hostname or ""
    parcel_id = str(proposal.record.get("parcel_id", ""))
    built = url.replace(quote(parcel_id, safe=""), "{parcel_id}") if parcel_id else ""
    return Start(
        url=url or f"https://www.{name}.example/parcel/1",
        hosts=(host,) if host else (f"{name}.example", f"*.{name}.example"),
        page=page.body,
        expected={"parcel_id": parcel_id, **proposal.expected()},
        fields={"parcel_id": "", **proposal.fields},
        tables=proposal.tables,
        url_template=built if "{parcel_id}" in built else "",
        left=proposal.left(),
    )


def check_name(name: str, taken: Sequence[str]) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name):
        raise InputError(f"{name!r} is no name for a platform; use small letters, digits and '_', a letter first.")
    if name in taken:
        raise InputError(f"there is a platform {name!r} already; choose another name.")


def write_skeleton(name: str, folder: Path, start: Start) -> list[Path]:
    """Write the three files; never over others."""
    words = {"name": name, "title": "".join(part.capitalize() for part in name.split("_")), **_parts(start)}
    files = {
        f"{name}.py": MODULE.format(**words).encode(),
        f"{name}.html": start.page,
        f"test_{name}.py": TEST.format(**words).encode(),
    }
    for file in files:
        if (folder / file).exists():
            raise InputError(f"{folder / file} is there already; choose another name or --folder.")
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (folder / file).write_bytes(content)
    return [folder / file for file in files]


def _parts(start: Start) -> dict[str, str]:
    """The parts of the files, as Python."""
    template = start.url_template
    built = template.replace("{parcel_id}", quote("00-12 003")) if template else None
    left = [f'# {_text(name)}: Spot(""),  # the page says {_text(value)}' for name, value in start.left.items()]
    return {
        "url": _text(start.url),
        "hosts": _tuple(start.hosts),
        "marks": _tuple(start.marks),
        "url_template": _text(template),
        "built": "is None" if built is None else f"== {_text(built)}",
        "fields": _lines([*_spots(start.fields), *left]),
        "tables": _lines(_spots(start.tables)),
        "expected": _lines([f"{_text(name)}: {_text(value)}," for name, value in start.expected.items()], 4),
    }


def _spots(selectors: Mapping[str, str]) -> list[str]:
    return [f"{_text(name)}: Spot({_text(select)})," for name, select in selectors.items()]


def _tuple(texts: Sequence[str]) -> str:
    return f"({', '.join(map(_text, texts))}{',' if len(texts) == 1 else ''})"


def _lines(lines: Sequence[str], indent: int = 8) -> str:
    return "\n".join(" " * indent + line for line in lines)


def _text(value: Any) -> str:
    """A value as Python has it; a text in double quotation marks, if it has none of them."""
    if isinstance(value, str) and '"' not in value and repr(value)[1:-1] == value:
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_text(key)}: {_text(item)}' for key, item in value.items())}}}"
    return repr(value)
