"""Walking a flow, without a network: from each reply to the next request, to the pages, or to a reason."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qs

import pytest

from lienworker.platforms import Page, Target
from lienworker.platforms.flows import (
    Ask,
    Capture,
    Condition,
    Done,
    Ended,
    Flow,
    OpenSession,
    Refused,
    Repeat,
    Step,
    Submit,
    Walk,
)

BASE = "https://county.example/PT"
SEARCH = f"{BASE}/search/commonsearch.aspx?mode=parid"
FLOW = Flow(
    session=1800.0,
    settings={"base_url": BASE},
    open=(
        Step(get="{base_url}/search/commonsearch.aspx?mode=parid"),
        Step(when=Condition(css=("#btAgree",)), submit=Submit("#frmMain", click="btAgree"), safe=True),
    ),
    steps=(
        Step(
            submit=Submit("#frmMain", {"inpParid": "{parcel_id}"}, "btSearch"),
            expect=Condition(css=("#datalet_header", "tr.SearchResults")),
            missing=Condition(text=("did not find any records",)),
            capture={"detail": Capture(css="tr.SearchResults::attr(onclick)", re="'(.+?)'")},
            safe=True,
        ),
        Step(get="{detail}", keep="profile"),
        Step(get="{detail}&mode=value", keep="values", optional=True),
    ),
)
TARGET = Target(platform="county", parcel_id="01 2/3")
DISCLAIMER = """<form id="frmMain" method="post" action="Disclaimer.aspx?FromUrl=x">
<input type="hidden" name="__VIEWSTATE" value="v1"><input type="hidden" name="hdURL" value="a&amp;b">
<input type="submit" name="btAgree" id="btAgree" value="Agree"><input type="submit" name="btNo" value="No"></form>"""
FORM = """<form id="frmMain" method="post" action="commonsearch.aspx?mode=parid" enctype="multipart/form-data">
<input type="hidden" name="__VIEWSTATE" value="v+2/="><input type="hidden" name="__EVENTVALIDATION" value="e2">
<input name="inpParid"><select name="PageSize"><option>15<option selected>50</select>
<input type="checkbox" name="all" value="1"><input name="off" value="1" disabled>
<input type="button" name="btSearch" value="Search"></form>"""
RESULTS = """<table id="searchResults"><tr class="SearchResults"
onclick="selectSearchRow('../Datalets/Datalet.aspx?sIndex=0&amp;idx=1')"><td>01 2/3</td></tr></table>"""
DATALET = f"{BASE}/Datalets/Datalet.aspx?sIndex=0&idx=1"


def page(url: str, body: str, status: int = 200) -> Page:
    return Page(url, body.encode(), "text/html", "utf-8", status)


def asked(move: object) -> Ask:
    assert isinstance(move, Ask), move
    return move


def test_a_flow_is_walked_from_the_disclaimer_to_all_pages_of_the_parcel() -> None:
    walk = Walk(FLOW, TARGET)

    first = asked(walk.start())
    assert (first.method, first.url, first.label) == ("GET", SEARCH, "open 1")
    agree = asked(walk.reply(page(f"{BASE}/search/Disclaimer.aspx?FromUrl=x", DISCLAIMER)))
    assert (agree.method, agree.url) == ("POST", f"{BASE}/search/Disclaimer.aspx?FromUrl=x")
    assert parse_qs((agree.body or b"").decode()) == {"__VIEWSTATE": ["v1"], "hdURL": ["a&b"], "btAgree": ["Agree"]}
    search = asked(walk.reply(page(SEARCH, FORM)))
    assert (search.method, search.url, search.label) == ("POST", SEARCH, "step 1")
    assert search.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert search.headers["Referer"] == SEARCH
    assert parse_qs((search.body or b"").decode()) == {
        "__VIEWSTATE": ["v+2/="],
        "__EVENTVALIDATION": ["e2"],
        "inpParid": ["01 2/3"],
        "PageSize": ["50"],
        "btSearch": ["Search"],
    }
    assert walk.opened == OpenSession({}, SEARCH)
    assert asked(walk.reply(page(SEARCH, RESULTS))).url == DATALET
    values = asked(walk.reply(page(DATALET, "the profile")))
    assert values.url == f"{DATALET}&mode=value"
    done = walk.reply(page(f"{DATALET}&mode=value", "the values"))

    assert isinstance(done, Done)
    assert {name: part.text for name, part in done.parts.items()} == {"profile": "the profile", "values": "the values"}
    assert walk.requests == 5


def test_without_a_disclaimer_the_step_for_it_is_left_out() -> None:
    walk = Walk(FLOW, TARGET)
    walk.start()
    assert asked(walk.reply(page(SEARCH, FORM))).label == "step 1"


def test_an_open_session_begins_at_the_page_that_it_was_opened_to() -> None:
    walk = Walk(FLOW, TARGET, OpenSession({}, SEARCH))
    assert asked(walk.start()).url == SEARCH
    assert asked(walk.reply(page(SEARCH, FORM))).label == "step 1"


def at_step_one() -> Walk:
    walk = Walk(FLOW, TARGET, OpenSession({}, SEARCH))
    walk.start()
    walk.reply(page(SEARCH, FORM))
    return walk


def test_a_parcel_that_does_not_exist_is_told_apart() -> None:
    ended = at_step_one().reply(page(SEARCH, "<p>Your search did not\n find any <b>records</b>.</p>"))
    assert isinstance(ended, Ended)
    assert (ended.reason, ended.retryable, ended.label) == ("parcel_not_found", False, "step 1")


def test_words_in_a_script_do_not_count() -> None:
    ended = at_step_one().reply(page(SEARCH, "<script>'did not find any records'</script><p>Hello</p>"))
    assert isinstance(ended, Ended)
    assert ended.reason == "unexpected_page"


def test_a_page_with_nothing_of_what_is_expected_is_a_failure_with_its_step_and_page() -> None:
    ended = at_step_one().reply(page(SEARCH, "<p>We are closed for maintenance</p>"))
    assert isinstance(ended, Ended)
    assert (ended.reason, ended.retryable) == ("unexpected_page", True)
    assert ended.detail.startswith("step 1: ")
    assert ended.page is not None
    assert "closed" in ended.page.text


@pytest.mark.parametrize(
    ("url", "body"),
    [
        (f"{BASE}/search/Disclaimer.aspx?FromUrl=y", "<p>Please read</p>"),
        (f"{BASE}/Login.aspx", "<p>Who are you</p>"),
        (SEARCH, DISCLAIMER),
    ],
)
def test_a_page_that_leads_in_again_says_that_the_session_is_over(url: str, body: str) -> None:
    ended = at_step_one().reply(page(url, body))
    assert isinstance(ended, Ended)
    assert (ended.reason, ended.retryable) == ("session_lost", True)


def test_the_first_page_of_an_open_session_may_say_that_it_is_over() -> None:
    walk = Walk(FLOW, TARGET, OpenSession({}, SEARCH))
    walk.start()
    ended = walk.reply(page(f"{BASE}/search/Disclaimer.aspx", DISCLAIMER))
    assert isinstance(ended, Ended)
    assert ended.reason == "session_lost"


def test_what_a_flow_declares_as_lost_may_be_an_error_reply() -> None:
    walk = Walk(replace(FLOW, lost=Condition(status=(500,), text=("view state",))), TARGET, OpenSession({}, SEARCH))
    walk.start()
    walk.reply(page(SEARCH, FORM))
    ended = walk.reply(page(SEARCH, "<p>Invalid View State</p>", 500))
    assert isinstance(ended, Ended)
    assert ended.reason == "session_lost"


def test_an_error_reply_that_the_flow_has_no_word_for_is_the_fetchers_to_judge() -> None:
    assert at_step_one().reply(page(SEARCH, "<tr class='SearchResults'>", 500)) == Refused("step 1")


@pytest.mark.parametrize(("status", "offered"), [(404, False), (410, False), (500, True), (503, True), (403, True)])
def test_an_optional_page_may_not_be_offered_but_trouble_is_no_excuse(status: int, offered: bool) -> None:
    walk = at_step_one()
    walk.reply(page(SEARCH, RESULTS))
    walk.reply(page(DATALET, "the profile"))
    end = walk.reply(page(f"{DATALET}&mode=value", "no", status))
    if offered:
        assert end == Refused("step 3")
    else:
        assert isinstance(end, Done)
        assert list(end.parts) == ["profile"]


def test_a_value_from_outside_is_escaped_unless_it_is_the_address_itself() -> None:
    flow = Flow(
        steps=(
            Step(get="https://a.example/", capture={"key": Capture(json="key"), "link": Capture(json="link")}),
            Step(get="https://a.example/p/{key}/{parcel_id}?q={key}", keep="page"),
            Step(get="{link}", keep="more"),
        )
    )
    walk = Walk(flow, TARGET)
    walk.start()
    second = asked(walk.reply(page("https://a.example/", '{"key": "../x?y=1&z#\\u00e9", "link": "/sub?a=b&c=d"}')))
    escaped = "..%2Fx%3Fy%3D1%26z%23%C3%A9"
    assert second.url == f"https://a.example/p/{escaped}/01%202%2F3?q={escaped}"
    assert asked(walk.reply(page(second.url, "x"))).url == "https://a.example/sub?a=b&c=d"


@pytest.mark.parametrize("body", ['{"link": "a\\nb"}', '{"link": "' + "x" * 3000 + '"}', "{}"])
def test_a_captured_value_that_cannot_be_used_ends_the_walk(body: str) -> None:
    flow = Flow(
        steps=(Step(get="https://a.example/", capture={"link": Capture(json="link")}), Step(get="{link}", keep="page"))
    )
    walk = Walk(flow, TARGET)
    walk.start()
    ended = walk.reply(page("https://a.example/", body))
    assert isinstance(ended, Ended)
    assert (ended.reason, ended.retryable) == ("unexpected_page", True)


def test_a_token_is_captured_from_a_header_and_sent_in_one() -> None:
    flow = Flow(
        session=60.0,
        open=(
            Step(post="https://a.example/guest", json={"guest": True}, capture={"token": Capture(header="X-Token")}),
        ),
        steps=(
            Step(get="https://a.example/{parcel_digits}", headers={"Authorization": "Bearer {token}"}, keep="page"),
        ),
    )
    walk = Walk(flow, TARGET)
    login = asked(walk.start())
    assert (login.body, login.headers["Content-Type"], login.safe) == (b'{"guest": true}', "application/json", False)
    reply = page("https://a.example/guest", "{}")
    reply.headers = {"X-Token": "t0k"}
    ask = asked(walk.reply(reply))
    assert (ask.url, ask.headers["Authorization"], ask.safe) == ("https://a.example/0123", "Bearer t0k", True)
    assert walk.opened == OpenSession({"token": "t0k"}, "https://a.example/guest")
    again = asked(Walk(flow, TARGET, walk.opened).start())
    assert again.headers["Authorization"] == "Bearer t0k"
    assert "t0k" not in repr((walk.opened, ask, login))


def test_a_header_cannot_be_split_by_what_a_site_says() -> None:
    flow = Flow(
        steps=(
            Step(get="https://a.example/", capture={"t": Capture(json="t")}),
            Step(get="https://a.example/2", headers={"X-T": "{t}"}, keep="page"),
        )
    )
    walk = Walk(flow, TARGET)
    walk.start()
    assert isinstance(walk.reply(page("https://a.example/", '{"t": "a\\r\\nHost: evil"}')), Ended)


def test_a_link_that_posts_back_is_clicked_with_its_two_words() -> None:
    body = FORM.replace(
        "</form>", """<a id="b7" href="javascript:__doPostBack(&#39;ctl00$b7&#39;,&#39;x&#39;)">v</a></form>"""
    )
    flow = Flow(
        steps=(Step(get="https://a.example/"), Step(submit=Submit("form", click="#b7"), keep="page", safe=True))
    )
    walk = Walk(flow, TARGET)
    walk.start()
    sent = parse_qs((asked(walk.reply(page("https://a.example/", body))).body or b"").decode())
    assert (sent["__EVENTTARGET"], sent["__EVENTARGUMENT"]) == (["ctl00$b7"], ["x"])
    assert "btSearch" not in sent


def test_a_step_is_repeated_over_a_captured_list_up_to_its_bound() -> None:
    flow = Flow(
        steps=(
            Step(get="https://a.example/", keep="list", capture={"bills": Capture(css="a::attr(href)", many=True)}),
            Step(get="{bill}", keep="bill", repeat=Repeat(most=2, over="bills", name="bill")),
        )
    )
    walk = Walk(flow, TARGET)
    walk.start()
    links = "".join(f'<a href="/b/{n}">' for n in range(5))
    assert asked(walk.reply(page("https://a.example/", links))).url == "https://a.example/b/0"
    assert asked(walk.reply(page("https://a.example/b/0", "zero"))).url == "https://a.example/b/1"
    done = walk.reply(page("https://a.example/b/1", "one"))
    assert isinstance(done, Done)
    assert list(done.parts) == ["list", "bill-1", "bill-2"]


def test_a_step_is_repeated_along_next_links_until_there_is_none() -> None:
    repeat = Repeat(most=9, next=Capture(css="a.next::attr(href)"))
    walk = Walk(Flow(steps=(Step(get="https://a.example/1", keep="list", repeat=repeat),)), TARGET)
    walk.start()
    assert asked(walk.reply(page("https://a.example/1", '<a class="next" href="2">'))).url == "https://a.example/2"
    done = walk.reply(page("https://a.example/2", "the last"))
    assert isinstance(done, Done)
    assert list(done.parts) == ["list-1", "list-2"]


def test_a_step_is_repeated_by_number_until_the_page_says_so() -> None:
    repeat = Repeat(most=9, until=Condition(without=Condition(json=("items",))))
    walk = Walk(Flow(steps=(Step(get="https://a.example/?page={n}", keep="list", repeat=repeat),)), TARGET)
    assert asked(walk.start()).url.endswith("page=1")
    assert asked(walk.reply(page("https://a.example/", '{"items": [1]}'))).url.endswith("page=2")
    assert isinstance(walk.reply(page("https://a.example/", '{"items": []}')), Done)


def test_the_last_page_may_be_kept_by_a_step_that_asks_for_nothing() -> None:
    flow = Flow(
        steps=(
            Step(get="https://a.example/"),
            Step(when=Condition(css=("a",)), get="/detail"),
            Step(keep="page", expect=Condition(text=("{parcel_id}",))),
        )
    )
    walk = Walk(flow, TARGET)
    walk.start()
    done = walk.reply(page("https://a.example/", "<p>Parcel 01 2/3</p>"))
    assert isinstance(done, Done)
    walk = Walk(flow, TARGET)
    walk.start()
    asked(walk.reply(page("https://a.example/", "<a>1</a>")))
    wrong = walk.reply(page("https://a.example/detail", "<p>Parcel 999</p>"))
    assert isinstance(wrong, Ended)
    assert wrong.reason == "unexpected_page"


def test_a_page_built_to_be_slow_ends_the_walk() -> None:
    ended = at_step_one().reply(page(SEARCH, "<div>" * 3000))
    assert isinstance(ended, Ended)
    assert ended.reason == "too_complex"
