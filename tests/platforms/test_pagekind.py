"""Pages without a parcel are told apart; parcel pages pass, whatever their frame holds."""

from __future__ import annotations

import re

import pytest

from lienworker.errors import PageError
from lienworker.platforms import Page, check_page
from lienworker.platforms.reading.pagekind import flow_name
from lienworker.testing.county.pages import render_parcel

PARCEL = """
<table><tr><td>Parcel ID</td><td>12-0034-005</td></tr><tr><td>Owner</td><td>FENWAKE ADA</td></tr>
<tr><td>Site Address</td><td>12 ACORN LN</td></tr><tr><td>Just Value</td><td>$10,000</td></tr></table>
"""
PAGES = {
    "empty_page": [
        "",
        "  \n ",
        "<html><head><script>var x = 1;</script></head><body> </body></html>",
        "<title>County Tax</title><noscript>You need to enable JavaScript to run this.</noscript><div id='root'></div>",
    ],
    "error_page": [
        "<h1>Polk</h1><p>The system is currently unavailable. Please try again later.</p>",
        "<title>Runtime Error</title><h1>Server Error in '/' Application.</h1>",
        "<pre>Traceback (most recent call last):\n  File x</pre>",
        "<p>Our parcel search is down for maintenance.</p>",
        "<p>Error Executing Database Query. [ODBC]</p>",
        "<p>Your session has timed out. Please start a new search for your parcel.</p>",
        "<h2>We are performing system maintenance. Property search will be back soon.</h2>",
    ],
    "captcha": [
        "<title>Attention Required! | Cloudflare</title><p>Checking your browser before accessing</p>",
        "<h1>Access Denied</h1><p>You don't have permission</p>",
        '<title>Just a moment</title><div class="g-recaptcha" data-sitekey="x"></div>',
        '<title>Parcel</title><body><iframe src="/_Incapsula_Resource?x=1"></iframe></body>',
        "<title>Request Rejected</title><p>The requested URL was rejected. Please consult your administrator.</p>",
        "<p>Please complete the security check: I'm not a robot</p>",
        "<title>county</title><script src='https://ct.captcha-delivery.com/c.js'></script>",
        "<title>county</title><div id='x'></div><script src='https://x.token.awswaf.com/challenge.js'></script>",
        "<h1>Over Limit</h1><p>You have exceeded the maximum number of searches for today.</p>",
    ],
    "login_required": [
        '<title>Sign in</title><form>User <input name="u"> Password <input type="password" name="p">'
        "<button>Sign in</button></form>",
    ],
    "disclaimer": [
        "<h1>Disclaimer</h1><p>The data on property is provided as is.</p><form><button>I Agree</button></form>",
        '<p>Terms of use for parcel data</p><form><input type="submit" value="I accept"></form>',
        '<h4>Terms and Conditions</h4><p>Parcel data as is.</p><a class="btn">Agree</a> <a class="btn">Disagree</a>',
    ],
    "search_form": [
        '<h1>Property Search</h1><form><label>Owner Name</label><input name="o"><label>Parcel ID</label>'
        '<input name="p"><button>Search</button></form>',
    ],
    "parcel_not_found": [
        "<h1>Search results</h1><p>No records found for parcel 12-34.</p>",
        '<p>The parcel you asked for does not exist.</p><form><input name="q"> Search again</form>',
        "<p>There is no property matching this parcel number.</p>",
        "<h3>This parcel has been retired.</h3>",
        "<form><p>Your search did not yield any results.</p>Parcel ID <input name='a'></form>",
    ],
    "map_shell": [
        '<html><head><script src="https://js.arcgis.com/4.2/"></script></head><body><div id="mapView"></div>'
        "<ul><li>Parcels</li><li>Zoning</li></ul></body></html>",
    ],
    "not_a_parcel": ["<h1>Welcome</h1><p>The county fair opens on Friday.</p>"],
}


@pytest.mark.parametrize(("reason", "html"), [(reason, html) for reason, pages in PAGES.items() for html in pages])
def test_each_kind_has_its_own_reason(reason: str, html: str) -> None:
    with pytest.raises(PageError) as error:
        check_page(Page("http://county.example/", html.encode(), "text/html"))
    assert error.value.reason == reason
    assert error.value.detail


@pytest.mark.parametrize(("reason", "retryable"), [("error_page", True), ("captcha", True), ("search_form", False)])
def test_a_retry_makes_sense_where_the_page_may_be_another_tomorrow(reason: str, retryable: bool) -> None:
    with pytest.raises(PageError) as error:
        check_page(Page("", PAGES[reason][0].encode()))
    assert error.value.retryable is retryable


@pytest.mark.parametrize("reason", PAGES)
def test_a_gate_says_that_a_flow_is_needed_and_nothing_else_does(reason: str) -> None:
    with pytest.raises(PageError) as error:
        check_page(Page("http://www.sunny.example/", PAGES[reason][0].encode()))
    wanted = "its parcels need a flow, begun with: lienworker platforms new sunny_example --flow"
    assert (wanted in error.value.detail) is (reason in {"login_required", "disclaimer", "search_form"})


@pytest.mark.parametrize(
    "url",
    ["", "nonsense", "http://127.0.0.1:8900/x", "http://[::1", f"http://{'a-' * 60}.example/", "http://ÄÖ.example/"],
)
def test_the_name_of_a_flow_can_be_typed_whatever_the_address_is(url: str) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]{0,39}", flow_name(url))


@pytest.mark.parametrize("frame", [html for pages in PAGES.values() for html in pages])
def test_a_parcel_page_passes_whatever_its_frame_holds(frame: str) -> None:
    check_page(Page("http://county.example/", f"<html><body>{frame}{PARCEL}</body></html>".encode()))


def test_the_demo_countys_page_has_a_search_box_and_a_log_in_link_and_passes() -> None:
    check_page(Page("", render_parcel(1).encode()))


@pytest.mark.parametrize(
    ("status", "reason"), [(404, "parcel_not_found"), (500, "error_page"), (401, "login_required")]
)
def test_the_status_speaks_where_the_page_does_not(status: int, reason: str) -> None:
    with pytest.raises(PageError) as error:
        check_page(Page("", b"<p>Oops, a parcel page went missing</p>", status=status))
    assert error.value.reason == reason


@pytest.mark.parametrize(("body", "reason"), [(b"{}", "parcel_not_found"), (b'{"error": {"code": 500}}', "error_page")])
def test_a_service_that_answers_json_fails_in_its_own_way(body: bytes, reason: str) -> None:
    with pytest.raises(PageError) as error:
        check_page(Page("", body, "application/json"))
    assert error.value.reason == reason


@pytest.mark.parametrize(
    "footer",
    [
        "<footer><p>Scheduled maintenance is on Sundays.</p></footer>",
        "<div id='siteFooter'><p>Try again later if a map is slow.</p></div>",
        f"<p>{'The county gives no warranty of any kind for these data. ' * 6}Routine maintenance is on Fridays.</p>",
    ],
)
def test_a_word_in_a_footer_or_a_disclaimer_makes_no_error_page(footer: str) -> None:
    check_page(Page("", f"<h1>Property</h1><ul><li>12-0034-005</li><li>FENWAKE ADA</li></ul>{footer}".encode()))
