"""Who may come in: on loopback too, every user of the machine can knock."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lienworker.web.guard import Guard, Tries, Verdict
from tests.harness.node import Node, interrupt, wait_until
from tests.web.monitor import Monitor, free_port, monitor
from tests.web.seed import FAILED

CLOSED = ("/", "/tasks", "/api/tasks", "/metrics", "/events", "/results.csv", f"/tasks/{FAILED}/page/text", "/nothing")


def token_of(node: Node) -> str:
    return (node.data / "web_token").read_text().strip()


@pytest.mark.slow
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_without_the_token_nothing_is_shown_and_nothing_is_done(seeded: Node, host: str) -> None:
    with monitor(seeded, "--host", host) as here:
        stranger = here.as_stranger
        for path in CLOSED:
            assert stranger.ask(path).status == 401, path
        assert stranger.ask("/?token=wrong").status == 401
        form = {"lane": "fetch", "n": "1", "csrf": here.csrf()}
        assert stranger.ask("/act/lanes/pause", "POST", data=form).status == 401
        assert stranger.ask("/imports", "POST", data={"file": "url\n"}).status == 401
        assert stranger.ask("/healthz").status == 200
        assert stranger.ask("/readyz").status == 503
        assert here.ask("/tasks").status == 200
    assert seeded.sql("SELECT count(*) FROM pauses") == [(0,)]
    assert (seeded.data / "web_token").stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_the_link_sets_a_cookie_and_leaves_no_token_in_the_address(here: Monitor) -> None:
    came = here.as_stranger.ask(f"/tasks?status=failed&token={here.token}")
    assert (came.status, came.headers["location"]) == (303, "/tasks?status=failed")
    assert came.headers["referrer-policy"] == "no-referrer"
    cookie = came.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert str(here.token) not in cookie
    known = cookie.split(";")[0]
    assert here.as_stranger.ask("/tasks", Cookie=known).status == 200
    again = here.as_stranger.ask(f"/tasks?token={here.token}", Cookie=known)
    assert (again.status, again.headers["location"]) == (303, "/tasks"), "also for who is in already"


@pytest.mark.slow
def test_a_log_never_has_the_token_and_a_terminal_has_the_link(seeded: Node) -> None:
    with monitor(seeded, LIENWORKER_LOG_LEVEL="debug") as here:
        stranger = here.as_stranger
        stranger.ask(f"/tasks?token={here.token}")
        stranger.ask(f"/nothing?token={here.token}")
        stranger.ask(f"/tasks/{FAILED}?token={here.token}x")
        stranger.ask("/login", "POST", data={"token": str(here.token)})
        here.ask("/metrics")
        here.ask(f"/%00?token={here.token}")
    assert token_of(seeded) not in here.output
    assert "web --address" in here.output
    taken = seeded.on_terminal("web", "--address")[1]
    assert taken.strip() == f"http://127.0.0.1:5555/?token={token_of(seeded)}"


@pytest.mark.slow
@pytest.mark.parametrize("command", [["web"], ["up"]])
def test_on_a_terminal_the_link_is_printed_and_works(node: Node, command: list[str]) -> None:
    port = free_port()
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [*node_command(), *command],
        env=node.environment(LIENWORKER_WEB_PORT=str(port), TERM="xterm"),
        cwd=node.data.parent,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        shown = ""
        while "?token=" not in shown or "\n" not in shown.partition("?token=")[2]:
            shown += os.read(ours, 65_536).decode()
        link = shown.partition("The monitor: ")[2].split()[0]
        assert link == f"http://127.0.0.1:{port}/?token={token_of(node)}"
        assert Monitor(port).ask(link.partition(str(port))[2]).status == 303
    finally:
        interrupt(process)
        wait_until(lambda: _is_over(process, ours), seconds=30, what="it to stop")
        os.close(ours)


def _is_over(process: subprocess.Popen[str], terminal: int) -> bool:
    try:
        os.read(terminal, 65_536)  # a full terminal would stop it
    except OSError:
        return process.wait(20) is not None
    return process.poll() is not None


def node_command() -> list[str]:
    import sys

    return [sys.executable, "-m", "lienworker"]


@pytest.mark.slow
def test_a_visitor_without_the_token_is_told_a_command_that_works(seeded: Node, tmp_path: Path) -> None:
    import html
    import re

    with monitor(seeded) as here:
        page = here.as_stranger.ask("/tasks").text
        found = re.search(r'id="command">(.*?)</pre>', page, re.S)
        assert found
        typed = html.unescape(found[1])
        done = subprocess.run(
            ["sh", "-c", typed], capture_output=True, text=True, cwd=tmp_path, env={"PATH": os.environ["PATH"]}
        )
        link = done.stdout.strip()
        assert link == here.link()
        assert here.as_stranger.ask(link.removeprefix(here.url)).status == 303


@pytest.mark.slow
def test_prometheus_has_a_token_of_its_own_that_opens_nothing_else(seeded: Node) -> None:
    token = seeded.cli("web", "--metrics-token").stdout.strip()
    with monitor(seeded) as here:
        assert token not in (str(here.token), "")
        stranger = here.as_stranger
        scraped = stranger.ask("/metrics", Authorization=f"Bearer {token}")
        assert scraped.status == 200
        assert "lienworker_tasks{" in scraped.text
        for path in ("/", "/api/tasks", "/results.csv", "/act/lanes/pause", f"/?token={token}"):
            assert stranger.ask(path, Authorization=f"Bearer {token}").status == 401, path
        assert stranger.ask("/login", "POST", data={"token": token}).status == 401


@pytest.mark.slow
def test_two_monitors_on_one_machine_do_not_take_each_others_cookies(seeded: Node, tmp_path: Path) -> None:
    other = Node(tmp_path / "other")
    with monitor(seeded) as here, monitor(other) as there:
        names = [each.as_stranger.ask(f"/?token={each.token}").headers["set-cookie"] for each in (here, there)]
        cookies = "; ".join(name.split(";")[0] for name in names)
        assert here.as_stranger.ask("/", Cookie=cookies).status == 200
        assert there.as_stranger.ask("/", Cookie=cookies).status == 200


@pytest.mark.slow
def test_guessing_a_short_token_is_slowed_down_and_locks_nobody_out(seeded: Node) -> None:
    with monitor(seeded, LIENWORKER_WEB_TOKEN="sesame") as here:
        stranger = here.as_stranger
        cookie = stranger.ask("/?token=sesame").headers["set-cookie"].split(";")[0]
        codes = [stranger.ask("/login", "POST", data={"token": f"guess {n}"}).status for n in range(15)]
        assert codes[:9] == [401] * 9
        assert codes[-1] == 429
        for asked in ({"Authorization": "Bearer sesame"}, {"Authorization": "Bearer guess"}):
            assert stranger.ask("/api/tasks", **asked).status == 429, "a right guess is not told from a wrong one"
        assert "web --address" in stranger.ask("/?token=sesame").text
        assert here.ask("/tasks").status == 200, "the token of the data folder cannot be guessed: it is not counted"
        assert stranger.ask(f"/?token={here.token}").status == 303
        assert stranger.ask("/tasks", Cookie=cookie).status == 200


def test_tries_come_back_with_time() -> None:
    now = 0.0
    guard = Guard("127.0.0.1", "t" * 32, "short", tries=Tries(lambda: now))
    assert [guard.judge("wrong") for _ in range(11)] == [Verdict.WRONG] * 10 + [Verdict.WAIT]
    assert guard.judge("short") is Verdict.WAIT
    now = 6.5
    assert guard.judge("short") is Verdict.RIGHT


def test_a_long_token_is_never_refused_for_somebody_elses_guesses() -> None:
    guard = Guard("127.0.0.1", "t" * 32, "twenty characters or more")
    assert {guard.judge("wrong") for _ in range(100)} == {Verdict.WRONG}
    assert guard.judge("twenty characters or more") is Verdict.RIGHT


def test_neither_the_cookie_nor_the_metrics_token_tells_the_token() -> None:
    """Made from a token that somebody chose, they would be a way to guess it that nobody counts."""
    one, other = Guard("127.0.0.1", "t" * 32, "sesame"), Guard("127.0.0.1", "t" * 32, "another")
    assert (one.cookie_value, one.metrics_token) == (other.cookie_value, other.metrics_token)
    strange = Guard("127.0.0.1", "u" * 32, "sesame")
    assert one.cookie_value != strange.cookie_value
    assert one.cookie_name != strange.cookie_name
    assert len({one.cookie_value, one.metrics_token, one.ticket}) == 3
