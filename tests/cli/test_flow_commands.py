"""`platforms try` and `scrape` by parcel id, as somebody uses them who writes a flow."""

from __future__ import annotations

from pathlib import Path

import pytest

from lienworker.testing.county.pages import parcel_id
from lienworker.testing.serving import serving
from tests.harness.node import Node
from tests.harness.replay import Exchange, ReplaySite
from tests.harness.session_sites import served


def words(row: dict[str, str]) -> list[str]:
    """Return a row as the options of `try`."""
    return [text for name, value in row.items() if name != "platform" for text in ("--target", f"{name}={value}")]


def definition(node: Node) -> str:
    return str(next(Path(node.settings["LIENWORKER_PLATFORMS"]).iterdir()))


def test_try_shows_each_step_and_the_record_and_stores_nothing(tmp_path: Path) -> None:
    with served("webforms", tmp_path) as (site, node):
        done = node.cli("platforms", "try", definition(node), *words(site.work(1)[0]))
    assert done.returncode == 0, done.stderr
    steps = [line.split()[:3] for line in done.stderr.splitlines()]
    assert [step[:2] for step in steps[:2]] == [["open", "1"], ["open", "2"]]
    assert [step[2] for step in steps] == ["GET", "POST", "POST", "GET", "GET", "GET", "GET"]
    assert "juniper_iasworld: profile, values, sales, taxes" in done.stdout
    assert parcel_id(1) in done.stdout
    assert not node.data.exists()


def test_try_with_trace_shows_captures_without_secrets(tmp_path: Path) -> None:
    with served("guest", tmp_path) as (site, node):
        done = node.cli("platforms", "try", definition(node), *words(site.work(1)[0]), "--trace")
    assert done.returncode == 0, done.stderr
    assert "captured token: [secret]" in done.stderr
    assert "to be kept as account" in done.stderr
    assert not any(secret in done.stdout + done.stderr for secret in site.secrets)


def test_try_saves_the_page_at_the_step_that_failed(tmp_path: Path) -> None:
    with served("guest", tmp_path) as (site, node):
        file = Path(definition(node))
        file.write_text(file.read_text().replace('css = "#taxAccountSummary"', 'css = "#nowhere"'))
        done = node.cli("platforms", "try", str(file), *words(site.work(1)[0]), "--trace", "--save-to", str(tmp_path))
    assert done.returncode == 1
    assert "No record: unexpected_page: step 1: the page has nothing of what the flow expects there" in done.stderr
    saved = tmp_path / "juniper_eagleweb-step-1.html"
    assert str(saved) in done.stderr
    assert parcel_id(1) in saved.read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["iasworld", "--target", "parcel_id=1"], "needs base_url as well: --target base_url="),
        (["iasworld", "--target", "base_url=http://x.example"], "needs parcel_id"),
        (["iasworld", "--target", "nonsense"], "not NAME=VALUE"),
        (["vgsi", "--target", "parcel_id=1"], "vgsi has no flow"),
        (["nobody"], "is no file, and there is no platform 'nobody'"),
    ],
)
def test_try_says_in_a_sentence_what_it_cannot_do(node: Node, arguments: list[str], says: str) -> None:
    done = node.cli("platforms", "try", *arguments)
    assert done.returncode == 2
    assert says in done.stderr


def test_try_names_the_line_of_a_definition_that_cannot_work(node: Node, tmp_path: Path) -> None:
    file = tmp_path / "sunny.toml"
    file.write_text('extends = "generic"\n[[flow.step]]\nget = "https://x.example/{nobody}"\nkeep = "page"\n')
    done = node.cli("platforms", "try", str(file), "--target", "parcel_id=1")
    assert done.returncode == 2
    assert "line 3" in done.stderr
    assert "nobody" in done.stderr


def test_scrape_takes_a_parcel_id_instead_of_an_address_and_shows_its_steps(tmp_path: Path) -> None:
    with served("webforms", tmp_path) as (site, node):
        place = ("--state", "XX", "--county", "Juniper")
        done = node.cli("scrape", "--platform", site.name, *place, "--parcel-id", parcel_id(3), "--trace")
    assert done.returncode == 0, done.stderr
    assert "open 1   GET " in done.stderr
    assert "captured detail: " in done.stderr
    assert node.sql("SELECT status, parcel_id, state, county FROM tasks") == [
        ("completed", parcel_id(3), "XX", "Juniper")
    ]
    assert node.sql("SELECT count(*) FROM pages") == [(4,)]


def test_explain_says_of_a_parcel_of_several_pages_on_which_each_field_stands(tmp_path: Path) -> None:
    with served("webforms", tmp_path) as (site, node):
        parcel = ("--platform", site.name, "--state", "XX", "--parcel-id", parcel_id(3))
        assert node.cli("scrape", *parcel).returncode == 0
        told = node.json("platforms", "explain", parcel_id(3), "--platform", site.name)
        shown = node.cli("platforms", "explain", parcel_id(3), "--platform", site.name, "--field", "sales").stdout
    parts = {origin["field"]: origin["part"] for origin in told["origins"]}
    assert (parts["owner_name"], parts["sales[0].price"]) == ("profile", "sales")
    assert "sales /" in shown


def test_scrape_saves_the_page_at_the_step_that_failed(tmp_path: Path) -> None:
    with served("webforms", tmp_path) as (site, node):
        done = node.cli(
            "scrape", "--platform", site.name, "--parcel-id", "00-000-1", "--trace", "--save-to", str(tmp_path)
        )
    assert done.returncode == 1
    assert "parcel_not_found" in done.stderr
    assert "did not find any records" in (tmp_path / f"{site.name}-step-1.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "Say a URL, or --platform with --parcel-id."),
        (["--parcel-id", "1"], "Say a URL, or --platform with --parcel-id."),
        (["--platform", "iasworld", "--parcel-id", "1"], "give it --target base_url=..."),
        (["--platform", "nobody", "--parcel-id", "1"], "There is no platform 'nobody'"),
        (["--platform", "generic", "--parcel-id", "1"], "give it a URL"),
    ],
)
def test_scrape_says_what_it_needs_to_find_a_parcel(node: Node, arguments: list[str], says: str) -> None:
    done = node.cli("scrape", *arguments)
    assert done.returncode == 2
    assert says in done.stderr


def test_a_new_flow_can_be_tried_at_once(node: Node, tmp_path: Path) -> None:
    form = '<form method="post" action="/find"><input name="parcel"><input type="submit" value="Search"></form>'
    rows = "<tr><th>Parcel ID</th><td>00-12-003</td></tr><tr><th>Owner Name</th><td>WREN ADA</td></tr>"
    found = Exchange("POST", "/find", f"<table>{rows}</table>", sent={"parcel": "00-12-003"})
    site = ReplaySite([Exchange("GET", "/", form), found])
    with serving(site):
        made = node.cli("platforms", "new", "sunny", "--flow", "--folder", str(tmp_path), "--base-url", site.url)
        assert made.returncode == 0, made.stderr
        done = node.cli("platforms", "try", str(tmp_path / "sunny.toml"), "--target", "parcel_id=00-12-003")
    assert done.returncode == 0, (done.stderr, site.refused)
    assert "WREN ADA" in done.stdout
