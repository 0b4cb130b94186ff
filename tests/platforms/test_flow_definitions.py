"""Flows from TOML, YAML and Python: what is understood, and what is refused with file and line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lienworker.platforms import Target, registry_with
from lienworker.platforms.catalog.definitions import load_definition
from lienworker.platforms.catalog.registry import Registry
from lienworker.platforms.core.base import Page, Platform, Record
from lienworker.platforms.flows import Capture, Condition, Flow, FlowError, Repeat, Step, Submit, can_walk

TOML = """
[fields]
parcel_id = "#pid"

[settings]
base_url = "https://county.example/PT"

[flow]
session = "30m"                       # a session is kept and reused for so long

[[flow.open]]                         # steps that make a session
get = "{base_url}/search/commonsearch.aspx?mode=parid"
[[flow.open]]
when = { css = "#btAgree" }           # only if the last page has it
submit = { form = "#frmMain", click = "btAgree" }

[[flow.step]]
submit = { form = "#frmMain", set = { inpParid = "{parcel_id}" }, click = "btSearch" }
expect = { css = ["#datalet_header", "tr.SearchResults"] }
missing = { text = "did not find any records" }
capture = { detail = { css = "tr.SearchResults::attr(onclick)", re = "'(.+?)'" } }

[[flow.step]]
get = "{detail}"
keep = "profile"
[[flow.step]]
get = "{detail}&mode=value"
keep = "values"
optional = true
"""

YAML = """
fields:
  parcel_id: "#pid"
settings:
  base_url: https://county.example/PT
flow:
  session: 30m
  open:
    - get: "{base_url}/search/commonsearch.aspx?mode=parid"
    - when: {css: "#btAgree"}
      submit: {form: "#frmMain", click: btAgree}
  step:
    - submit: {form: "#frmMain", set: {inpParid: "{parcel_id}"}, click: btSearch}
      expect: {css: ["#datalet_header", tr.SearchResults]}
      missing: {text: did not find any records}
      capture:
        detail: {css: "tr.SearchResults::attr(onclick)", re: "'(.+?)'"}
    - get: "{detail}"
      keep: profile
    - get: "{detail}&mode=value"
      keep: values
      optional: true
"""

PYTHON = Flow(
    session=1800.0,
    settings={"base_url": "https://county.example/PT"},
    open=(
        Step(get="{base_url}/search/commonsearch.aspx?mode=parid"),
        Step(when=Condition(css=("#btAgree",)), submit=Submit("#frmMain", click="btAgree")),
    ),
    steps=(
        Step(
            submit=Submit("#frmMain", {"inpParid": "{parcel_id}"}, "btSearch"),
            expect=Condition(css=("#datalet_header", "tr.SearchResults")),
            missing=Condition(text=("did not find any records",)),
            capture={"detail": Capture(css="tr.SearchResults::attr(onclick)", re="'(.+?)'")},
        ),
        Step(get="{detail}", keep="profile"),
        Step(get="{detail}&mode=value", keep="values", optional=True),
    ),
)


def load(folder: Path, text: str, name: str = "county.toml", *known: Platform) -> Platform:
    registry = Registry({})
    for platform in known:
        registry.add(platform)
    (folder / name).write_text(text)
    return load_definition(folder / name, registry.get)


@pytest.mark.parametrize(("name", "text"), [("county.toml", TOML), ("county.yaml", YAML)])
def test_toml_yaml_and_python_make_the_same_flow(tmp_path: Path, name: str, text: str) -> None:
    assert load(tmp_path, text, name).flow == PYTHON


class Vendor(Platform):
    """A vendor of many counties: each has its own address."""

    name = "vendor"
    flow = replace(PYTHON, settings={"base_url": ""})

    def parse(self, page: Page, target: Target) -> Record:
        return {"parcel_id": "1"}


def test_a_county_whose_addresses_differ_only_says_which(tmp_path: Path) -> None:
    county = load(tmp_path, 'extends = "vendor"\n[settings]\nbase_url = "https://dixie.example"\n', "d.toml", Vendor())
    assert county.flow == replace(PYTHON, settings={"base_url": "https://dixie.example"})
    target = Target(county="Dixie", state="FL", parcel_id="12 3")
    assert county.build_url(target) == ("https://dixie.example/search/commonsearch.aspx?mode=parid&parcel_id=12+3")


def test_a_county_within_a_definition_may_have_its_own_settings(tmp_path: Path) -> None:
    text = 'extends = "vendor"\n[settings]\nbase_url = "https://a.example"\n'
    county = load(tmp_path, text + '[county.Marsh.settings]\nbase_url = "https://m.example"\n', "d.toml", Vendor())
    marsh = county.flow_for(Target(county="Marsh"))
    assert marsh is not None
    assert marsh.settings == {"base_url": "https://m.example"}
    assert county.flow_for(Target(county="Dixie")) == replace(PYTHON, settings={"base_url": "https://a.example"})


def test_an_empty_setting_is_the_targets_to_bring_and_a_full_one_is_not_its_to_change() -> None:
    flow = Vendor.flow
    assert not can_walk(flow, Target(parcel_id="1"))
    assert can_walk(flow, Target(parcel_id="1", extra={"base_url": "https://b.example"}))
    fixed = replace(flow, settings={"base_url": "https://a.example"})
    built = Vendor()
    built.flow = fixed
    assert can_walk(fixed, Target(parcel_id="1", extra={"base_url": "https://evil.example"}))


STEP = '\n[[flow.step]]\nget = "https://a.example/{parcel_id}"\nkeep = "page"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("flow = 3", "line 1: flow must be a group"),
        ('[flow]\nsession = "30m"', "the flow has no step"),
        ('[flow]\nsession = "soon"' + STEP, "line 2: flow: 'soon' is no time"),
        ('[flow]\nsession = "30d"' + STEP, "line 2: flow: a session lasts"),
        ("[flow]\nsessions = 4" + STEP, "line 2: flow: sessions needs session"),
        ("[flow]\ncolour = 1" + STEP, "line 2: flow: there is no 'colour' in a flow"),
        (STEP + 'colour = "red"', "line 5: flow: there is no 'colour' in a step"),
        (STEP + STEP.replace('"page"', '"a b"'), "line 8: flow: 'a b' is no name of a part"),
        (STEP + STEP, "line 8: flow: two steps keep a page as 'page'"),
        (STEP + '[[flow.step]]\nget = "/{nobody}"', "line 6: flow: nobody fills {nobody}"),
        (STEP + '[[flow.step]]\nget = "{parcel_id}"', "line 6: flow: an address cannot begin with {parcel_id}"),
        ('[[flow.step]]\nget = "/relative"\nkeep = "page"', "line 2: flow: '/relative' needs https://"),
        ('[[flow.step]]\nsubmit = { form = "#f" }\nkeep = "page"', "line 2: flow: submit needs a page"),
        ('[[flow.step]]\nwhen = { css = "a" }' + STEP[14:], "line 2: flow: when needs a page"),
        ('[[flow.step]]\nkeep = "page"', "line 1: flow: the first step must ask"),
        ('[[flow.step]]\nget = "https://a.example"', "flow: no step keeps a page"),
        (STEP + 'post = "https://a.example"', "line 5: flow: a step is one request"),
        (STEP + 'form = { a = "1" }', "line 5: flow: form belongs to a post"),
        (STEP + "[[flow.step]]\n", "line 5: flow: the step does nothing"),
        (STEP + '[[flow.step]]\nget = "/a"\nrepeat = { over = "x", most = 3 }', "no step before captures a list 'x'"),
        (STEP + 'repeat = { until = { css = "a" } }', "line 5: flow: repeat needs a bound"),
        (STEP + 'repeat = { until = { css = "a" }, most = 900 }', "line 5: flow: repeat needs a bound"),
        (STEP + "repeat = { most = 3 }", "line 5: flow: repeat needs one of over, next and until"),
        (STEP + 'expect = { css = "p[[x" }', "line 5: flow: 'p[[x' cannot be used as css"),
        (STEP + 'expect = { xpath = "//a[" }', "line 5: flow: '//a[' cannot be used as xpath"),
        (STEP + 'expect = { json = "a[" }', "line 5: flow: 'a[' cannot be used as json"),
        (STEP + "expect = { }", "line 5: flow: the condition is empty"),
        (STEP + "expect = { status = 9 }", "line 5: flow: a status is a number"),
        (STEP + 'missing = { text = "{who}" }', "line 5: flow: nobody fills {who}"),
        (STEP + 'capture = { x = { re = "(" } }', "line 5: flow: '(' cannot be used as re"),
        (STEP + 'capture = { x = { css = "a", json = "b" } }', "line 5: flow: a value is captured by css or by json"),
        (STEP + 'capture = { parcel_id = { css = "a" } }', "line 5: flow: 'parcel_id' is no name"),
        (STEP + 'headers = { Cookie = "a" }', "line 5: flow: the header 'Cookie' cannot be set"),
        (STEP + 'headers = { User-Agent = "a" }', "line 5: flow: the header 'User-Agent' cannot be set"),
        (STEP + 'optional = "yes"', "line 5: flow: optional must be true or false"),
        ('[[flow.open]]\nget = "https://a.example"\nkeep = "page"\n' + STEP, "line 3: flow: a step that opens"),
        ("[settings]\nbase_url = 3" + STEP, "line 1: settings must be names with texts"),
    ],
)
def test_a_flow_that_cannot_work_is_refused_with_its_file_and_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "county.toml").write_text(text + "\n[fields]\nparcel_id = '#pid'\n")

    registry = registry_with(tmp_path)

    assert len(registry.broken) == 1
    assert str(tmp_path / "county.toml") in registry.broken[0]
    assert words in registry.broken[0]


def test_a_wrong_step_of_yaml_is_found_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "county.yaml").write_text(YAML.replace("keep: values", "keep: val ues"))
    assert "line 21: flow: 'val ues' is no name of a part" in registry_with(tmp_path).broken[0]


@pytest.mark.parametrize(
    "steps",
    [
        (Step(submit=Submit(), keep="page"),),
        (Step(get="https://a.example", keep="page", repeat=Repeat(most=0, until=Condition(css=("a",)))),),
        (Step(get="https://a.example/{x}", keep="page"),),
    ],
)
def test_a_python_flow_that_cannot_work_is_refused_when_it_is_made(steps: tuple[Step, ...]) -> None:
    with pytest.raises(FlowError):
        Flow(steps=steps)
