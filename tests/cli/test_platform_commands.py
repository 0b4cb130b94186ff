"""`lienworker platforms …`, as a developer of a parser uses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lienworker.testing.county.site import DemoSite
from tests.harness.node import Node

PAGES = Path(__file__).parents[1] / "fixtures" / "pages"


def test_parse_prints_the_record_and_stores_nothing(node: Node) -> None:
    parsed = node.json("platforms", "parse", str(PAGES / "vgsi.html"))
    assert parsed["platform"] == "vgsi"
    assert parsed["record"]["owner_name"] == "EVERMERE, ESME"
    assert not node.data.exists()


def test_parse_takes_an_address_and_stores_nothing(node: Node, site: DemoSite) -> None:
    row = site.parcels(1)[0]
    done = node.cli("platforms", "parse", row["url"])
    assert done.returncode == 0, done.stderr
    assert row["parcel_id"] in done.stdout
    assert not node.data.exists()


def test_a_page_without_a_record_says_why(node: Node, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<title>Just a moment...</title><p>Verify you are human</p>")
    done = node.cli("platforms", "parse", str(page))
    assert done.returncode == 1
    assert "captcha" in done.stderr


def test_the_address_of_a_saved_page_tells_its_platform(node: Node) -> None:
    url = "https://www.sunnycounty-taxes.example/"
    assert node.json("platforms", "parse", str(PAGES / "beacon.html"), "--url", url)["platform"] == "qpublic"
    url = "https://beacon.schneidercorp.com/Application.aspx?AppID=1&PageTypeID=4&KeyValue=1"
    assert node.json("platforms", "parse", str(PAGES / "beacon.html"), "--url", url)["platform"] == "beacon"


def test_score_says_what_is_lost_by_platform_and_field_and_fails_below_the_bar(node: Node, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_bytes((PAGES / "vgsi.html").read_bytes())
    seen = {
        "owner": "EVERMERE, ESME",
        "situs": "28 ELDERBERRY CT",
        "mailing": "nowhere at all",
        "appraisal": "$202,400",
    }
    (tmp_path / "expected.json").write_text(json.dumps([{"file": "page.html", "expected": seen}]))
    done = node.cli("platforms", "score", str(tmp_path), "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert (told["recall"], told["wrong"]) == (0.75, 1)
    assert told["platforms"]["vgsi"] == {"recall": 0.75, "named": 0.75, "values": 4, "missing": 0, "wrong": 1}
    assert told["fields"]["owner_address"]["wrong"] == 1
    assert [(lost["field"], lost["expected"]) for lost in told["lost"]] == [("mailing", "nowhere at all")]
    assert node.cli("platforms", "score", str(tmp_path), "--bar", "0.5").returncode == 1
    del seen["mailing"]
    (tmp_path / "expected.json").write_text(json.dumps([{"file": "page.html", "expected": seen | {"zoning": "X-9"}}]))
    assert node.cli("platforms", "score", str(tmp_path), "--bar", "0.5").returncode == 0
    assert node.cli("platforms", "score", str(tmp_path), "--bar", "0.9").returncode == 1


def test_parse_says_what_looks_wrong_in_the_record(node: Node, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text((PAGES / "vgsi.html").read_text().replace("07/25/2017", "07/25/2917"))
    told = node.json("platforms", "parse", str(page))
    assert [(doubt["check"], doubt["detail"]) for doubt in told["doubts"]] == [("in_the_future", "2917-07-25")]
    assert "in_the_future" in node.cli("platforms", "parse", str(page)).stdout
    assert node.json("platforms", "parse", str(PAGES / "vgsi.html"))["doubts"] == []


@pytest.mark.parametrize("source", ["no-such-file.html", "http://127.0.0.1:9/parcel/1", "ftp://x.example/"])
def test_a_source_that_cannot_be_read_is_one_sentence(node: Node, source: str) -> None:
    done = node.cli("platforms", "parse", source)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1


def test_explain_says_which_rule_found_a_field_and_what_it_saw(node: Node) -> None:
    told = node.json("platforms", "explain", str(PAGES / "vgsi.html"), "--field", "owner_name")
    assert told["clues"][0] == {
        "field": "owner_name",
        "value": "EVERMERE, ESME",
        "rule": "vgsi: id 'MainContent_lblGenOwner'",
        "saw": "EVERMERE, ESME",
        "where": told["clues"][0]["where"],
    }
    assert told["clues"][0]["where"].endswith(": EVERMERE, ESME")
    (origin,) = told["origins"]
    assert (origin["field"], origin["part"], origin["text"]) == ("owner_name", "page", "EVERMERE, ESME")
    assert origin["path"].startswith("/html/body/")


def test_explain_says_so_where_nothing_was_found(node: Node) -> None:
    told = node.json("platforms", "explain", str(PAGES / "vgsi.html"), "--field", "zip")
    assert told["clues"][0]["value"] is None


def test_explain_tells_of_a_page_without_a_record_what_each_rule_saw(node: Node, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<html><body><h1>Notice</h1><span id='MainContent_lblTab1Title'>x</span></body></html>")
    done = node.cli("platforms", "explain", str(page), "--platform", "vgsi", "--json")
    assert done.returncode == 1
    assert "No record: " in done.stderr
    clues = {clue["field"]: clue for clue in json.loads(done.stdout)["clues"]}
    assert clues["owner_name"]["saw"] == "(no such id)"
    assert node.cli("platforms", "explain", str(page), "--platform", "vgis").returncode == 1


def test_explain_of_one_field_is_about_that_field_alone(node: Node) -> None:
    page = str(PAGES / "vgsi.html")
    assert node.json("platforms", "explain", page, "--field", "zip")["unused"] == []
    done = node.cli("platforms", "explain", page, "--field", "owner_nam")
    assert done.returncode == 2
    assert "Did you mean 'owner_name'?" in done.stderr


def test_what_was_found_by_its_id_is_no_unused_label(node: Node) -> None:
    told = node.json("platforms", "explain", str(PAGES / "vgsi.html"))
    seen = {clue["saw"] for clue in told["clues"] if ": id " in clue["rule"]}
    assert seen
    assert not seen & {pair["value"] for pair in told["unused"]}


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.*")), ids=lambda page: page.name)
def test_every_page_that_has_a_record_can_be_explained(page: Path) -> None:
    from lienworker.errors import PageError
    from lienworker.operator.preview import page_from_file
    from lienworker.platforms import Target, default_registry
    from lienworker.platforms.catalog.explain import explain, unused

    loaded = page_from_file(page)
    try:
        parsed = default_registry().parse(loaded, Target())
    except PageError:
        return
    platform = default_registry().get(parsed.platform)
    clues = explain(platform, loaded, Target(), parsed.record)
    assert {clue.field for clue in clues} == parsed.record.keys() - {"fields"}
    assert all(clue.rule for clue in clues)
    unused(platform, loaded, Target())


def test_list_shows_platforms_of_a_folder_and_names_what_is_broken(node: Node, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "sunny.toml").write_text("[fields]\nparcel_id = '#pid'\n")
    (folder / "bad.toml").write_text("colour = 1\n")
    done = node.cli("platforms", "list", "--json", LIENWORKER_PLATFORMS=str(folder))
    assert done.returncode == 0
    assert "sunny" in {row["name"] for row in json.loads(done.stdout)}
    assert "bad.toml" in done.stderr


def test_new_writes_a_skeleton_here(node: Node, tmp_path: Path) -> None:
    done = node.cli("platforms", "new", "sunny", "--folder", str(tmp_path / "mine"))
    assert done.returncode == 0, done.stderr
    assert {file.name for file in (tmp_path / "mine").iterdir()} == {"sunny.py", "sunny.html", "test_sunny.py"}


def test_new_begins_with_a_page_and_proposes_selectors(node: Node, site: DemoSite, tmp_path: Path) -> None:
    """From an address: a page of the county. The module reads it as it is, and is used at once."""
    mine = tmp_path / "mine"
    url = site.parcels(1)[0]["url"]
    done = node.cli("platforms", "new", "sunny", "--folder", str(mine), "--from", url)
    assert done.returncode == 0, done.stderr
    assert "Proposed: " in done.stdout
    parsed = node.cli("platforms", "parse", url, "--json", LIENWORKER_PLATFORMS=str(mine))
    assert json.loads(parsed.stdout)["platform"] == "sunny"
    assert node.cli("platforms", "new", "other", "--from", f"{site.url}/").returncode == 1


def test_a_scrape_uses_the_platforms_of_the_folder(node: Node, site: DemoSite, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "juniper.toml").write_text('hosts = ["127.0.0.1"]\n[fields]\nparcel_id = "#jc-parcel-id"\n')
    node.settings["LIENWORKER_PLATFORMS"] = str(folder)
    assert node.cli("scrape", site.parcels(1)[0]["url"]).returncode == 0
    assert node.sql("SELECT platform FROM results") == [("juniper",)]
