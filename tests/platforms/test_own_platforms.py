"""Platforms of one's own: from a folder, as Python, TOML or YAML, and the skeleton they begin with."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lienworker.errors import InputError, PageError
from lienworker.platforms import Page, Target, default_registry, registry_with
from lienworker.platforms.catalog.proposal import propose
from lienworker.platforms.catalog.skeleton import Start, blank_start, check_name, start_from, write_skeleton

PAGES = Path(__file__).parents[1] / "fixtures" / "pages"
PAGE = b"""<html><body id="sunny"><h1>Sunny County</h1>
<p id="pid"> 00-7 A </p><p id="owner">HERON IDA</p><p id="second">OTTER JO</p><b class="just">$1,234.50</b>
<img class="photo" src="/1.jpg"><img class="photo" src="/2.jpg">
<table class="deeds"><tr><th>Sale Date</th><th>Sale Price</th></tr>
<tr><td>07/25/2017</td><td>$98,000</td></tr></table></body></html>"""
SUNNY = """
version = "3"
hosts = ["*.sunny.example"]
marks = ["id=\\"sunny\\""]
url = "https://www.sunny.example/p/{parcel_id}"
delay = 2.5

[fields]
parcel_id = "#pid"
owner_name = "//p[@id='owner']"
market_value = { select = "b.just", clean = "money" }
images = "img.photo::attr(src)"

[tables]
sales = "table.deeds"

[county.Marsh]
url = "https://marsh.sunny.example/{parcel_id}"
fields = { owner_name = "#second" }
"""

SUNNY_YAML = """
version: "3"
hosts: ["*.sunny.example"]
marks:
  - 'id="sunny"'
url: https://www.sunny.example/p/{parcel_id}
delay: 2.5

fields:
  parcel_id: "#pid"
  owner_name: //p[@id='owner']
  market_value: {select: b.just, clean: money}
  images: img.photo::attr(src)

tables:
  sales: table.deeds

county:
  Marsh:
    url: https://marsh.sunny.example/{parcel_id}
    fields:
      owner_name: "#second"
"""


@pytest.fixture(params=["sunny.toml", "sunny.yaml", "sunny.yml"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    (tmp_path / request.param).write_text(SUNNY if request.param.endswith("toml") else SUNNY_YAML)
    return tmp_path


def test_a_definition_reads_its_page(folder: Path) -> None:
    parsed = registry_with(folder).parse(Page("", PAGE), Target())

    assert (parsed.platform, parsed.version) == ("sunny", "3")
    assert parsed.record["parcel_id"] == "00-7 A"
    assert parsed.record["owner_name"] == "HERON IDA"
    assert parsed.record["market_value"] == 1234.5
    assert parsed.record["images"] == ["/1.jpg", "/2.jpg"]
    assert parsed.record["sales"] == [{"date": "2017-07-25", "price": 98000.0}]


def test_a_definition_knows_its_addresses_and_its_manners(folder: Path) -> None:
    registry = registry_with(folder)
    found = registry.for_url("https://www.sunny.example/p/1")

    assert found is not None
    assert (found.name, found.delay) == ("sunny", 2.5)
    assert found.build_url(Target(parcel_id="0 7")) == "https://www.sunny.example/p/0%207"
    assert registry.for_url("https://www.rainy.example/p/1") is None


def test_a_county_may_differ(folder: Path) -> None:
    registry = registry_with(folder)
    marsh = Target(platform="sunny", county="MARSH", parcel_id="7")

    assert registry.parse(Page("", PAGE), marsh).record["owner_name"] == "OTTER JO"
    assert registry.parse(Page("", PAGE), marsh).record["parcel_id"] == "00-7 A"
    assert registry.get("sunny").build_url(marsh) == "https://marsh.sunny.example/7"


def test_a_definition_may_put_right_what_another_platform_reads(tmp_path: Path) -> None:
    (tmp_path / "vgsi.toml").write_text(
        'extends = "vgsi"\n[county.Farhaven.fields]\nowner_name = "#MainContent_lblCoOwner"\n'
    )
    page = Path(__file__).parents[1] / "fixtures" / "pages" / "vgsi.html"
    registry = registry_with(tmp_path)
    plain = registry.parse(Page("https://gis.vgsi.com/x/Parcel.aspx?pid=975", page.read_bytes()), Target())
    other = registry.parse(Page("", page.read_bytes()), Target(county="Farhaven"))

    mended = registry.for_url("https://gis.vgsi.com/x/Parcel.aspx?pid=975")
    assert mended is registry.get("vgsi")
    assert mended.delay == default_registry().get("vgsi").delay
    assert plain.record["owner_name"] == "EVERMERE, ESME"
    assert other.platform == "vgsi"
    assert other.record["owner_name"] == "IVERSUND, FLINT"
    assert other.record["sales"] == plain.record["sales"]


def test_a_python_file_with_a_platform_is_taken(tmp_path: Path) -> None:
    (tmp_path / "quarry.py").write_text(
        "from lienworker.platforms.selectors import SelectorPlatform, Spot\n"
        "class Quarry(SelectorPlatform):\n    name = 'quarry'\n    hosts = ('quarry.example',)\n"
        "    fields = {'parcel_id': Spot('#pid'), 'owner_name': Spot('#owner')}\n"
        "PLATFORM = Quarry()\n"
    )
    parsed = registry_with(tmp_path).parse(Page("http://quarry.example/1", PAGE), Target())
    assert (parsed.platform, parsed.record["owner_name"]) == ("quarry", "HERON IDA")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.py", "import no_such_module", "no_such_module"),
        ("a.py", "raise SystemExit(3)", "SystemExit"),
        ("a.py", "PLATFORM = 5", "no PLATFORM"),
        ("a.py", "def (", "SyntaxError"),
        ("a.toml", "= 3", "it is no TOML: Invalid statement (at line 1"),
        ("a.toml", "hosts = ['x']", "parcel_id"),
        ("a.toml", "[fields]\nparcel_id = '//a['", "is no XPath"),
        ("a.toml", "[fields]\nparcel_id = 'p[[x'", "neither CSS nor XPath"),
        ("a.toml", "[fields]\nparcel_no = '#x'", "parcel_no"),
        ("a.toml", "[fields]\nparcel_id = {select = '#x', clean = 'soap'}", "soap"),
        ("a.toml", "extends = 'atlantis'", "atlantis"),
        ("a.toml", "colour = 'red'", "colour"),
        ("a.toml", "url_patterns = ['(']\n[fields]\nparcel_id = '#x'", "missing )"),
        ("a.toml", "delay = -1\n[fields]\nparcel_id = '#x'", "line 1: delay"),
        (
            "a.toml",
            "# delay\n[county.Dixie.fields]\nparcel_no = '#x'\n[fields]\nparcel_id = '#x'",
            "line 3: there is no",
        ),
        ("a.toml", "county = 3\n[fields]\nparcel_id = '#x'", "line 1: county must be a group"),
        ("a.toml", "[fields]\nparcel_id = '#x'\n[county]\nDixie = 4", "line 4: county Dixie must be"),
        ("a.yaml", "fields: [", "line 1: it is no YAML"),
        ("a.yaml", "hosts: ['x']\nfields:\n\tparcel_id: '#x'", "line 3: it is no YAML"),
        ("a.yaml", "", "not a definition"),
        ("a.yaml", "- one\n- two", "not a definition"),
        ("a.yaml", "hosts: ['x']\nfields:\n  parcel_id: #pid", "line 3: parcel_id needs a selector, in quotes"),
        ("a.yaml", "fields:\n  parcel_id: '#x'\nversion: 3", "line 3: version must be a text (in quotes)"),
        (
            "a.yaml",
            "fields:\n  parcel_id: '#x'\n  parcel_id: '#y'",
            "line 3: 'parcel_id' is there twice",
        ),
        ("a.yaml", "fields:\n  parcel_id: '#x'\nyes: 1", "line 3: the name 'yes' needs quotes"),
        ("a.yaml", "fields: !!python/object/apply:os.system ['true']", "could not determine a constructor"),
        (
            "a.yaml",
            "fields:\n  parcel_id: '#x'\ncounty:\n  Dixie:\n    fields:\n      owner_name: '//a['",
            "line 6: owner_name",
        ),
        ("a.yaml", "fields:\n  parcel_id: '#x'\nextends: atlantis", "line 3: there is no platform 'atlantis'"),
        ("a.yml", "\x00", "it is no YAML"),
        ("a.yml", "fields: &a {fields: *a}", "within itself"),
    ],
)
def test_a_broken_file_is_one_sentence_and_stops_nobody_else(folder: Path, name: str, text: str, words: str) -> None:
    (folder / name).write_text(text)
    registry = registry_with(folder)

    assert [registry.parse(Page("", PAGE), Target()).platform, *registry.broken[:0]] == ["sunny"]
    assert len(registry.broken) == 1
    assert str(folder / name) in registry.broken[0]
    assert words in registry.broken[0]
    assert "\n" not in registry.broken[0]


def test_a_folder_that_is_not_there_is_said_and_costs_nothing(tmp_path: Path) -> None:
    registry = registry_with(tmp_path / "nowhere")
    assert "nowhere" in registry.broken[0]
    assert registry.names() == default_registry().names()


def test_the_platforms_of_a_folder_stay_out_of_the_shared_registry(folder: Path) -> None:
    assert "sunny" in registry_with(folder).names()
    assert "sunny" not in default_registry().names()
    assert registry_with(None) is default_registry()


def test_a_page_without_a_parcel_is_told_apart(folder: Path) -> None:
    with pytest.raises(PageError):
        registry_with(folder).parse(Page("", b"<p id='sunny'>nothing</p>"), Target(platform="sunny"))


def passes(test: Path) -> bool:
    """Whether a platform's own test passes, in a process of its own."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    done = subprocess.run(command, cwd=test.parent, capture_output=True, text=True)
    assert done.returncode in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}, done.stdout
    return done.returncode == pytest.ExitCode.OK


SELECTORS = {
    "parcel_id": "#parcel", "owner_name": "#owner", "property_address": "#situs", "market_value": "#value",
    "sales": "#sales",
}  # fmt: skip


def test_a_new_platform_passes_its_test_once_the_selectors_are_filled_in(tmp_path: Path) -> None:
    module, page, test = write_skeleton("sunny", tmp_path, blank_start("sunny"))
    assert not passes(test)

    text = module.read_text()
    for field, select in SELECTORS.items():
        text = text.replace(f'"{field}": Spot("")', f'"{field}": Spot("{select}")')
    module.write_text(text)

    assert len(text.splitlines()) < 60
    parsed = registry_with(tmp_path).parse(Page("", page.read_bytes()), Target())
    assert parsed.record["sales"] == [{"date": "2017-07-25", "price": 98000.0, "grantor": "FINCH OTTO"}]
    assert passes(test)


@pytest.mark.parametrize("name", ["generic", "../x", "Sunny", "1x", "", "x" * 50])
def test_a_name_that_cannot_be_used_is_one_sentence(name: str) -> None:
    with pytest.raises(InputError):
        check_name(name, ["generic"])


def test_a_skeleton_is_never_written_over_anything(tmp_path: Path) -> None:
    write_skeleton("sunny", tmp_path, blank_start("sunny"))
    with pytest.raises(InputError, match="already"):
        write_skeleton("sunny", tmp_path, blank_start("sunny"))


def start(name: str, file: str, url: str = "") -> Start:
    page = Page(url, (PAGES / file).read_bytes())
    return start_from(name, page, propose(page, default_registry().get("generic")))


@pytest.mark.parametrize("file", ["vgsi.html", "qpublic.html", "polk_card.html", "patriot.html"])
def test_a_platform_that_begins_with_a_page_passes_its_test_at_once(tmp_path: Path, file: str) -> None:
    made = start("sunny", file)
    assert all(made.fields.values())
    assert len(made.fields) > 5
    _, page, test = write_skeleton("sunny", tmp_path, made)
    assert page.read_bytes() == (PAGES / file).read_bytes()
    assert passes(test)


def test_proposed_selectors_prefer_what_a_redesign_leaves() -> None:
    html = """<html><h1>Parcel</h1><table><tr><th>Parcel ID</th><td>00-12-003</td></tr>
    <tr><th>Owner Name</th><td id="who"><b>WREN ADA</b></td></tr>
    <tr><th>Property Address</th><td class="situs">12 JUNIPER LN</td></tr>
    <tr><th>Market Value</th><td>$123,400</td></tr></table></html>"""
    proposal = propose(Page("", html.encode()), default_registry().get("generic"))
    assert proposal.fields["parcel_id"] == "//th[normalize-space()='Parcel ID']/following-sibling::td[1]"
    assert proposal.fields["property_address"] == "//th[normalize-space()='Property Address']/following-sibling::td[1]"
    assert proposal.expected()["market_value"] == 123400.0
    assert proposal.left() == {}


def test_what_no_selector_reads_is_left_to_a_person(tmp_path: Path) -> None:
    made = start("sunny", "leepa.html")
    assert made.fields["parcel_id"] == ""
    module, _, test = write_skeleton("sunny", tmp_path, made)
    assert '# "parcel_id": Spot(""),  # the page says "' in module.read_text()
    assert not passes(test)


def test_the_address_of_the_page_says_whose_pages_are_like_it() -> None:
    html = (
        b"<table><tr><th>Parcel ID</th><td>00-12 3</td></tr><tr><th>Owner Name</th><td>WREN ADA</td></tr>"
        b"<tr><th>Market Value</th><td>$1,000</td></tr></table>"
    )
    page = Page("https://tax.marsh.example/show?id=00-12%203&x=1", html)
    made = start_from("marsh", page, propose(page, default_registry().get("generic")))
    assert made.hosts == ("tax.marsh.example",)
    assert made.url_template == "https://tax.marsh.example/show?id={parcel_id}&x=1"


def test_what_a_page_says_cannot_become_code(tmp_path: Path) -> None:
    evil = 'x"""\n\nimport os; {name} \\\u2028 #'
    html = (
        f"<table><tr><th>Parcel ID</th><td>00-12-003</td></tr><tr><th>Owner Name</th><td>{evil}</td></tr>"
        "<tr><th>Market Value</th><td>$1,000</td></tr></table>"
    )
    page = Page("", html.encode())
    made = start_from("sunny", page, propose(page, default_registry().get("generic")))
    module, _, test = write_skeleton("sunny", tmp_path, replace(made, left={"legal_description": evil}))
    assert not [node for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Import)]
    assert passes(test)


@pytest.mark.parametrize("file", ["bas_list.html", "broward.json"])
def test_a_list_and_a_page_that_is_no_html_are_refused(file: str) -> None:
    with pytest.raises(InputError):
        start("sunny", file)
