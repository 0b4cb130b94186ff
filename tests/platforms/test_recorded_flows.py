"""Flows walked over recorded replies of real sites, which are read in place and never copied."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from parsel import Selector

from lienworker.platforms import Page, Target, default_registry
from lienworker.platforms.flows import Capture, Condition, Done, Flow, Step, Submit
from lienworker.platforms.flows.matching import values_of
from lienworker.platforms.vendors import iasworld
from lienworker.testing.serving import serving
from tests.harness.replay import Exchange, ReplaySite
from tests.harness.walking import record_of, walk_one

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
pytestmark = pytest.mark.skipif(not (SHARED / "flows").exists(), reason="no recorded pages in ../shared/flows")


def recorded(name: str) -> bytes:
    return (SHARED / name).read_bytes()


def test_the_form_of_a_real_webforms_site_is_sent_back_with_every_hidden_field() -> None:
    """Scarsdale, New York: choosing a street posts the whole form, with the drop-down as the event's target."""
    home = recorded("flows/webforms_scarsdale/1_home_form.html")
    streets = "dnn$ctr1398$ViewHelloWorld$lstboxStreets"
    form = Selector(home.decode()).css("#Form")
    hidden = {item.attrib["name"]: item.attrib.get("value", "") for item in form.css("[type=hidden]")}
    street = form.css(f"[name='{streets}'] option::attr(value)").getall()[3]
    action = "/Home/Departments/InformationTechnology/PropertyInquiry.aspx"
    site = ReplaySite(
        [
            Exchange("GET", action, home),
            Exchange(
                "POST",
                action,
                recorded("flows/webforms_scarsdale/2_street_results.html"),
                sent={**hidden, "__EVENTTARGET": streets, streets: street},
            ),
        ]
    )
    flow = Flow(
        settings={"base_url": ""},
        steps=(
            Step(get=f"{{base_url}}{action}"),
            Step(
                submit=Submit(form="#Form", set={streets: "{parcel_id}", "__EVENTTARGET": streets}),
                safe=True,
                expect=Condition(css=("#Form",)),
                keep="houses",
            ),
        ),
    )
    with serving(site):
        done = walk_one(flow, Target(parcel_id=street, extra={"base_url": site.url}))
    assert isinstance(done, Done), (done, site.refused)
    assert len(hidden) > 5
    assert site.is_over


def test_the_side_menu_of_a_real_iasworld_page_leads_to_its_tabs() -> None:
    """Northampton, Pennsylvania: its modes have endings of their own (`values_nh`), and its taxes are `charge_text`."""
    page = Page(
        "https://county.example/_web/datalets/datalet.aspx?mode=profile_nh",
        recorded("pages/tyler_iasworld/pa_northampton_L9NE4C-20-2-0310_profile.html"),
    )
    captures = next(step.capture for step in iasworld.FLOW.steps if "values_tab" in step.capture)
    found = {
        name: values_of(capture, page)[0].partition("mode=")[2].partition("&")[0] for name, capture in captures.items()
    }
    assert found == {
        "building_tab": "residential_nh",
        "values_tab": "values_nh",
        "sales_tab": "sales_all",
        "taxes_tab": "charge_text",
    }


def test_the_calendar_of_a_real_auction_site_has_its_days() -> None:
    page = Page("https://x.example/index.cfm", recorded("flows/realauction/1_calendar_hillsborough_tax_deed.html"))
    days = values_of(Capture(css=".CALBOX[dayid]::attr(dayid)", many=True), page)
    assert days == ["03/05/2026", "03/12/2026", "03/19/2026", "03/26/2026"]
    record = default_registry().parse(page, Target(platform="realauction")).record
    assert record["parcels"][0]["auction"]["date"] == "2026-03-05"


def test_the_lists_of_real_auction_sites_are_read_after_a_preview() -> None:
    """Hillsborough, Florida, and in shorthand Montgomery, Ohio; the preview is ours, after what is known of it."""
    lists = (
        "pages/realauction/realforeclose_fl_hillsborough_areaW_2026-06-05.html",
        "pages-more/realauction/sheriffsale_oh_montgomery_areaC_2026-07-10.rethtml.txt",
    )
    for name in lists:
        shown = recorded(name).decode()
        listed = json.dumps({"retHTML": shown, "rlist": ""})
        ids = re.findall(r'AITEM_(\d+)"', shown)
        site = ReplaySite(
            [
                Exchange("GET", "/index.cfm", f"<div id='ALB'>{','.join(ids)}</div>"),
                Exchange("GET", "/index.cfm", listed),
                Exchange("GET", "/index.cfm", listed),
            ]
        )
        with serving(site):
            target = Target("realauction", extra={"base_url": site.url, "auction_date": "06/05/2026"})
            done = walk_one(default_registry().get("realauction").flow_for(target), target)
        assert isinstance(done, Done), (done, site.refused)
        items = record_of(done.parts, target)["parcels"]
        assert [item["alternate_ids"]["auction_id"] for item in items] == ids
        assert all(item["auction"]["case_number"] and item["parcel_id"] for item in items)
