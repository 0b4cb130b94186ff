"""The registry: lazy, third parties welcome, and never an empty record."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lienworker.errors import PageError
from lienworker.platforms import Page, Platform, Record, Registry, Target, default_registry
from lienworker.platforms.catalog.registry import BUILT_IN
from lienworker.testing.county.pages import page, parcel_id, render_parcel

PIECES = (
    "<table> <tr> <td> </td> </tr> <th> <div> </div> <dl> <dt> <dd> <label> <span> <input> <b> <br> <form> Owner: "
    "Parcel ID $1,200.00 SMITH 12-34 2023 &nbsp; &amp; <!-- x --> <script> </script> Sale Date Taxes {} [] |"
)
HTML = st.lists(st.sampled_from(PIECES.split()), max_size=60).map(" ".join)


class Quarry(Platform):
    name = "quarry"
    version = "7"

    def matches_url(self, url: str) -> bool:
        return "quarry.example" in url

    def parse(self, page: Page, target: Target) -> Record:
        return {"parcel_id": "", "owner_name": None, "fields": {"x": "y"}}


def test_listing_names_imports_no_platform() -> None:
    code = (
        "import sys; from lienworker.platforms import default_registry; names = default_registry().names();"
        "assert {'demo', 'generic'} <= set(names); assert 'lienworker.platforms.vendors.demo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_built_in_platform_loads_under_its_own_name() -> None:
    registry = Registry(BUILT_IN)
    assert [registry.get(name).name for name in registry.names()] == registry.names()


def test_an_unknown_platform_is_named_together_with_those_that_exist() -> None:
    with pytest.raises(PageError) as error:
        default_registry().get("atlantis")
    assert error.value.reason == "unknown_platform"
    assert "atlantis" in error.value.detail
    assert "generic" in error.value.detail


def test_a_broken_add_on_stops_nobody_else() -> None:
    registry = Registry({"broken": "no.such.module:PLATFORM", "wrong": "json:loads", **BUILT_IN})
    assert registry.for_page(Page("", render_parcel(3).encode())).name == "demo"
    with pytest.raises(PageError, match="cannot be loaded"):
        registry.get("broken")


def test_the_targets_word_comes_first_then_the_url_then_the_content() -> None:
    registry = Registry(BUILT_IN)
    registry.add(Quarry())
    demo = Page("http://quarry.example/parcel/1", render_parcel(3).encode())
    assert registry.choose(demo, Target(platform="generic")).name == "generic"
    assert registry.choose(demo, Target()).name == "quarry"
    assert registry.choose(Page("http://127.0.0.1/", demo.body), Target()).name == "demo"
    assert registry.choose(Page("http://127.0.0.1/", b"<p>hello</p>"), Target()).name == "generic"


def test_an_empty_record_is_an_error_and_never_a_result() -> None:
    registry = Registry(BUILT_IN)
    registry.add(Quarry())
    with pytest.raises(PageError) as error:
        registry.parse(Page("http://quarry.example/", b"<p>A parcel of land</p>"), Target())
    assert error.value.reason == "not_a_parcel"


def test_a_parsed_page_says_who_read_it() -> None:
    parsed = default_registry().parse(Page("http://127.0.0.1/parcel/x", render_parcel(5).encode()), Target())
    assert (parsed.platform, parsed.version) == ("demo", "1")
    assert parsed.record["parcel_id"] == parcel_id(5)


@pytest.mark.parametrize("platform", [None, "demo", "generic"])
def test_a_page_that_is_no_parcel_has_its_reason_with_every_platform(platform: str | None) -> None:
    captcha = page("Are you human?", "<h2>Verify you are human</h2>")
    with pytest.raises(PageError) as error:
        default_registry().parse(Page("", captcha.encode()), Target(platform=platform))
    assert error.value.reason == "captcha"


class Fails(Platform):
    name = "fails"

    def recognises(self, page: Page) -> bool:
        raise ValueError("no")

    def matches_url(self, url: str) -> bool:
        raise ValueError("no")

    def parse(self, page: Page, target: Target) -> Record:
        raise KeyError("x")


def test_a_platform_that_fails_harms_only_its_own_pages() -> None:
    registry = Registry(BUILT_IN)
    registry.add(Fails())
    assert registry.parse(Page("http://127.0.0.1/", render_parcel(3).encode()), Target()).platform == "demo"
    with pytest.raises(PageError) as error:
        registry.parse(Page("http://127.0.0.1/", b"<p>x</p>"), Target(platform="fails"))
    assert error.value.reason == "parser_error"


@settings(max_examples=150, deadline=None)
@given(body=st.one_of(st.binary(max_size=400), HTML.map(str.encode)), name=st.sampled_from([None, *sorted(BUILT_IN)]))
def test_no_bytes_break_the_reading_of_a_page(body: bytes, name: str | None) -> None:
    try:
        parsed = Registry(BUILT_IN).parse(Page("http://county.example/", body), Target(platform=name))
    except PageError as error:
        reason = error.reason
        assert reason != "parser_error", error.detail  # noqa: PT017
    else:
        assert parsed.record


@pytest.mark.parametrize("module", sorted({place.partition(":")[0] for place in BUILT_IN.values()}))
def test_a_platform_is_a_small_module(module: str) -> None:
    source = Path(str(import_module(module).__file__)).read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 150
