"""Where the monitor sends a browser on to: its own pages, whatever a link says."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

import pytest

from lienworker.data_folder import DataFolder
from lienworker.settings import Settings
from lienworker.web.app import make_app
from lienworker.web.guard import Guard
from lienworker.web.pages import Place
from lienworker.web.server import Server, paths_of
from tests.web.monitor import Monitor
from tests.web.seed import FAILED

ELSEWHERE = [
    "/\t/evil.example", "/\n/evil.example", "/\r/evil.example", "\t//evil.example", "//evil.example", "/\\evil.example",
    "\\\\evil.example", "///evil.example", "/ /evil.example", "http://evil.example/", "http:evil.example",
    "javascript:alert(1)", "/\x00/evil.example", "/\u202e/evil.example", "/.//evil.example", "/tasks/..//evil.example",
    "/nowhere", "", "evil.example", "@evil.example", "/%09/evil.example", "/%5cevil.example", "?", "#",
]  # fmt: skip
OURS = ["/", "/tasks", "/tasks?status=failed&text=a%20b", "/outbox?state=held", "/outbox/4", "/tasks/p-0a1b", "/audit"]


@pytest.fixture
def server(tmp_path: Path) -> Server:
    place, guard = Place(Settings(), DataFolder(tmp_path), False), Guard("127.0.0.1", "ticket")
    made = Server(place, guard)
    made.known_paths = paths_of(make_app(place, guard))
    return made


@pytest.mark.parametrize("where", ELSEWHERE)
def test_no_address_leads_off_the_site(server: Server, where: str) -> None:
    came = server.own_path(where)
    assert urlsplit(urljoin("http://127.0.0.1:5555/act/", came)).netloc == "127.0.0.1:5555"
    assert came == "/"


@pytest.mark.parametrize("where", OURS)
def test_a_page_of_ours_is_gone_back_to(server: Server, where: str) -> None:
    assert server.own_path(where) == where


def test_a_task_with_a_strange_id_is_gone_back_to(server: Server) -> None:
    assert server.own_path("/tasks/a b é") == "/tasks/a%20b%20%C3%A9"


@pytest.mark.slow
@pytest.mark.parametrize("where", ["/\t/evil.example", "//evil.example", "/\\evil.example"])
def test_neither_the_question_nor_the_answer_leads_off_the_site(here: Monitor, where: str) -> None:
    asked = here.ask(f"/act/tasks/retry?id={FAILED}&back={quote(where, safe='')}")
    assert asked.status == 200
    assert "evil.example" not in asked.text
    form = {"id": FAILED, "n": "1", "back": where, "csrf": here.csrf()}
    done = here.ask("/act/tasks/retry", "POST", data=form)
    assert done.status == 303
    assert done.headers["location"].startswith("/?said=")


@pytest.mark.slow
def test_the_link_with_the_token_leads_to_no_other_site(here: Monitor) -> None:
    for path in ("//evil.example/", "/%09/evil.example", "/\\evil.example", "/nowhere"):
        assert here.as_stranger.ask(f"{path}?token={here.token}").headers["location"] == "/", path
