"""Safe by default: who may come in, from where, and what scraped text can do."""

from __future__ import annotations

import aiohttp
import pytest

from tests.harness.node import Node
from tests.web.monitor import Monitor, monitor
from tests.web.seed import COMPLETED, EVIL, FAILED

pytestmark = pytest.mark.slow
RETRY = "/act/tasks/retry"
VIEWS = (
    "/", "/tasks", f"/tasks/{FAILED}", f"/tasks/{COMPLETED}", f"/tasks/{FAILED}/page", "/results", "/outbox",
    "/counties", "/county?platform=demo&state=FL&county=Dixie", "/imports", "/audit",
)  # fmt: skip


def test_every_view_carries_a_strict_policy_and_nothing_inline(here: Monitor) -> None:
    for path in VIEWS:
        reply = here.ask(path)
        assert reply.status == 200, (path, reply.text)
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert " style=" not in reply.text
        assert "<script>" not in reply.text
        assert "http://evil.example" not in reply.text.replace("&#34;", '"').split("<pre")[0]


def test_a_stored_script_is_text_wherever_it_is_shown(here: Monitor) -> None:
    for path in VIEWS:
        text = here.ask(path).text
        assert EVIL not in text, path
        assert "<img" not in text, path
    assert "&lt;script&gt;" in here.ask(f"/tasks/{FAILED}").text
    assert "&lt;script&gt;" in here.ask("/results").text


def test_a_rendered_raw_page_has_nothing_left_that_runs_loads_or_leads_anywhere(here: Monitor) -> None:
    reply = here.ask(f"/tasks/{FAILED}/page/rendered")
    policy = reply.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert policy.endswith("sandbox")
    assert "Parcel 7" in reply.text
    for word in ("<script", "onload", "onerror", "<meta", "<link", "<base", "<iframe", "javascript:", "action="):
        assert word not in reply.text, word


def test_a_raw_page_as_text_is_never_html(here: Monitor) -> None:
    reply = here.ask(f"/tasks/{FAILED}/page/text")
    assert reply.headers["content-type"].startswith("text/plain")
    assert "sandbox" in reply.headers["content-security-policy"]
    assert 'sandbox=""' in here.ask(f"/tasks/{FAILED}/page").text


def test_a_strange_host_header_is_refused(here: Monitor) -> None:
    for name in ("evil.example", "evil.example:5555", "127.0.0.1.evil.example", "[", ""):
        assert here.ask("/", Host=name).status in {400, 421}, name
    assert here.ask("/", Host="localhost:1").status == 200


def test_a_forged_change_is_refused_whatever_it_carries(here: Monitor, seeded: Node) -> None:
    form = {"id": FAILED, "n": "1", "back": "/"}
    token = here.csrf()
    for fields, headers in (
        (form, {}),
        ({**form, "csrf": "0" * 64}, {}),
        ({**form, "csrf": token}, {"Origin": "http://evil.example"}),
        ({**form, "csrf": token}, {"Origin": "null"}),
        ({**form, "csrf": token}, {"Sec_Fetch_Site": "cross-site"}),
    ):
        assert here.ask(RETRY, "POST", data=fields, **headers).status == 403
    assert seeded.sql("SELECT status FROM tasks WHERE task_id = ?", FAILED) == [("failed",)]


def test_a_change_by_get_only_asks(here: Monitor, seeded: Node) -> None:
    assert "Retry 1 task" in here.ask(f"{RETRY}?id={FAILED}").text
    assert seeded.sql("SELECT status FROM tasks WHERE task_id = ?", FAILED) == [("failed",)]


@pytest.mark.parametrize(("option", "setting"), [(["--read-only"], {}), ([], {"LIENWORKER_WEB_READ_ONLY": "true"})])
def test_a_read_only_monitor_hides_and_refuses_every_action(
    seeded: Node, option: list[str], setting: dict[str, str]
) -> None:
    with monitor(seeded, *option, **setting) as here:
        for path in VIEWS:
            assert "/act/" not in here.ask(path).text, path
            assert 'type="file"' not in here.ask(path).text, path
        assert here.ask(f"{RETRY}?id={FAILED}").status == 409
        form = {"id": FAILED, "n": "1", "back": "/", "csrf": here.csrf()}
        assert here.ask(RETRY, "POST", data=form).status == 403
        upload = aiohttp.FormData({"file": "url\n"})
        assert here.ask("/imports", "POST", data=upload, X_CSRF_Token=here.csrf()).status == 403
    assert seeded.sql("SELECT status FROM tasks WHERE task_id = ?", FAILED) == [("failed",)]
    assert seeded.sql("SELECT count(*) FROM audit") == [(0,)]


def test_names_under_which_a_proxy_calls_it_are_let_in(seeded: Node) -> None:
    with monitor(
        seeded, "--allow-host", "one.example", LIENWORKER_WEB_ALLOW_HOSTS="two.example, Three.example"
    ) as here:
        for name in ("one.example", "two.example", "three.example"):
            assert here.ask("/", Host=name).status == 200, name
        assert here.ask("/", Host="four.example").status == 421


def test_the_token_opens_the_door_by_address_cookie_or_header(seeded: Node) -> None:
    with monitor(seeded, "--host", "0.0.0.0", LIENWORKER_WEB_TOKEN="open sesame") as running:
        here = running.as_stranger
        came = here.ask("/tasks?token=open%20sesame&status=failed")
        assert came.status == 303
        assert came.headers["location"] == "/tasks?status=failed"
        cookie = came.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "sesame" not in cookie
        assert here.ask("/tasks", Cookie=cookie.split(";")[0]).status == 200
        assert here.ask("/metrics", Authorization="Bearer open sesame").status == 200
        assert here.ask("/metrics", Authorization="Bearer shut").status == 401
        assert here.ask("/login", "POST", data={"token": "shut"}).status == 401
        assert here.ask("/login", "POST", data={"token": "open sesame"}).status == 303
        assert here.ask("//evil.example/?token=open%20sesame").headers["location"] == "/"
    assert "sesame" not in running.output


def test_a_done_message_cannot_be_forged(here: Monitor) -> None:
    assert "Pay me" not in here.ask("/?said=Pay+me&seal=0123").text


def test_paths_in_strange_shapes_lead_nowhere(here: Monitor) -> None:
    for path in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/imports/999/rejects",
        "/tasks/..%2f..%2fetc",
        "/act/x/y",
    ):
        assert here.ask(path).status in {404, 400}, path
    assert here.ask("/outbox/99999999999999999999").status == 404
    assert here.ask("/tasks?below=abc").status == 200
    assert here.ask("/tasks?text=%00%27%22").status == 200


def test_a_wrong_port_is_one_sentence(here: Monitor, seeded: Node) -> None:
    done = seeded.cli("web", "--port", str(here.port))
    assert done.returncode == 2
    assert "cannot listen" in done.stderr
    assert "Traceback" not in done.stderr
