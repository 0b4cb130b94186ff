"""The beginning of a new platform: its module, a page that it reads, and the test that it has to pass.

Or of a flow: a definition with the steps that most sites have, to be changed until it works.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from lienworker.errors import InputError

MODULE = '''"""The county sites of {title}: say here what they look like, and what is odd about them."""

from __future__ import annotations

from lienworker.platforms.selectors import SelectorPlatform, Spot


class {title}Platform(SelectorPlatform):
    """Where each field is. `lienworker platforms explain {name}.html --platform {name}` shows what a selector sees."""

    name = "{name}"
    version = "1"  # change it when the same page gives another record
    delay = 2.0  # seconds between two requests to one host
    hosts = ("{name}.example", "*.{name}.example")
    marks = ('content="{name}"',)
    url_template = "https://www.{name}.example/parcel/{{parcel_id}}"
    fields = {{
        # CSS or XPath; amounts, years and areas are cleaned by their names.
        "parcel_id": Spot(""),
        "owner_name": Spot(""),
        "property_address": Spot(""),
        "market_value": Spot(""),
    }}
    tables = {{
        "sales": Spot(""),
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
EXPECTED = {{
    "parcel_id": "00-12-003",
    "owner_name": "WREN ADA",
    "property_address": "12 JUNIPER LN",
    "market_value": 123400.0,
    "sales": [{{"date": "2017-07-25", "price": 98000.0, "grantor": "FINCH OTTO"}}],
}}


def test_the_page_says_what_a_reader_sees() -> None:
    page = Page("https://www.{name}.example/parcel/1", (HERE / "{name}.html").read_bytes())
    parsed = registry_with(HERE).parse(page, Target())
    assert parsed.platform == "{name}"
    assert {{name: parsed.record.get(name) for name in EXPECTED}} == EXPECTED


def test_an_address_can_be_built() -> None:
    url = registry_with(HERE).get("{name}").build_url(Target(parcel_id="00-12 003"))
    assert url == "https://www.{name}.example/parcel/00-12%20003"


def test_a_page_without_a_parcel_is_told_apart() -> None:
    with pytest.raises(PageError):
        registry_with(HERE).parse(Page("https://www.{name}.example/", b"<p>No such parcel</p>"), Target())
'''

FLOW = """# How the pages of a county's site are reached where one GET is not enough. docs/flows.md has all the words.
# Change it, and see each step with: lienworker platforms try {name}.toml --target parcel_id=00-12-003 --trace
name = "{name}"
extends = "generic"                     # who reads the pages
delay = 3.0                             # seconds between two requests

[settings]
base_url = {base_url}

[flow]
session = "20m"                         # how long a session is used again

[[flow.open]]                           # steps that make a session: the page with the search form
get = "{{base_url}}/"
[[flow.open]]                           # where the site wants its terms accepted; you agree to them
when = {{ css = "#btAgree" }}
submit = {{ form = "form", click = "btAgree" }}
safe = true                             # a POST that only looks something up may be sent again

[[flow.step]]                           # the search: the form's fields by their names, the button by its name
submit = {{ form = "form", set = {{ parcel = "{{parcel_id}}" }} }}
safe = true
missing = {{ text = "no records found" }} # how the site says that there is no such parcel
expect = {{ text = "{{parcel_id}}" }}     # anything else is a failure, and the page is saved for you
keep = "page"                           # this reply is a page of the parcel
"""


def write_flow(name: str, folder: Path, taken: list[str], base_url: str | None) -> Path:
    """Write the definition; never over another."""
    base_url = base_url or f"https://www.{name.replace('_', '-')}.example"
    return _write({f"{name}.toml": FLOW}, name, folder, taken, base_url=json.dumps(base_url))[0]


def write_skeleton(name: str, folder: Path, taken: list[str]) -> list[Path]:
    """Write the three files; never over others."""
    files = {f"{name}.py": MODULE, f"{name}.html": PAGE, f"test_{name}.py": TEST}
    return _write(files, name, folder, taken, title="".join(part.capitalize() for part in name.split("_")))


def _write(files: dict[str, str], name: str, folder: Path, taken: list[str], **words: str) -> list[Path]:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name):
        raise InputError(f"{name!r} is no name for a platform; use small letters, digits and '_', a letter first.")
    if name in taken:
        raise InputError(f"there is a platform {name!r} already; choose another name.")
    for file in files:
        if (folder / file).exists():
            raise InputError(f"{folder / file} is there already; choose another name or --folder.")
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (folder / file).write_text(text.format(name=name, **words), encoding="utf-8")
    return [folder / file for file in files]
