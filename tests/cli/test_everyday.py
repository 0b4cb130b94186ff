"""What a new operator stumbles on: words that are so, advice that works, codes as documented, things by any name."""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lienworker.testing.county.site import DemoSite, demo_site
from tests.harness.node import Node, wait_until

PROGRAM = Path(__file__).parents[2] / "lienworker"
#: Advice that is not for running here, and why.
NOT_RUN = {
    "up": "stays until it is stopped; tests/stack runs it",
    "web": "stays until it is stopped; tests/web runs it",
    "gateway": "needs a Gateway; tests/cli/test_gateway_check.py runs it",
    "run": "takes a file; tests/stack runs it",
    "import": "takes a file; tests/intake runs it",
    "demo": "starts a stack; tests/stack runs it",
    "stop": "ends a stack; the test of --detach below runs it",
    "outbox replay": "needs a Gateway; tests/operator runs it",
    "platforms try 1 --target parcel_id=...": "takes a definition; tests/cli/test_flow_commands.py runs it",
    "harvest": "takes a source; tests/steps/test_harvest.py runs it",
    "resume --county 1": "takes a county that is paused; tests/cli/test_hosts.py runs it",
    "sources add PATH": "takes a list of sources; tests/steps/test_parcel_sources.py runs it",
    'sources check "1 1"': "asks sites; tests/steps/test_parcel_sources.py runs it",
    "restore": "takes a file; tests/maintenance runs it",
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a result, a failure and an import that waits; made once, copied by each test."""
    node = Node(tmp_path_factory.mktemp("everyday") / "data")
    with demo_site() as site:
        assert node.cli("scrape", site.parcels(1)[0]["url"]).returncode == 0
        assert node.cli("scrape", site.odd_parcels()[0]["url"]).returncode == 1
    file = node.data.parent / "list.csv"
    file.write_text("url,parcel_id\nhttp://county.example/1,00-1\n")
    assert node.cli("import", str(file)).returncode == 0
    return node.data


@pytest.fixture
def scraped(template: Path, node: Node) -> Node:
    shutil.copytree(template, node.data)
    return node


# Words that are so


@pytest.mark.parametrize("command", [["up"], ["run", "list.csv"]], ids=" ".join)
def test_a_redis_that_does_not_answer_is_one_sentence_at_once(node: Node, command: list[str]) -> None:
    (node.data.parent / "list.csv").write_text("url\nhttp://county.example/1\n")
    done = node.cli(*command, REDIS_URL="redis://:hunter2@127.0.0.1:1/0", timeout=20)
    assert done.returncode == 75
    assert done.stderr.startswith("Error: REDIS_URL: no Redis answers at redis://127.0.0.1:1/0.")
    assert len(done.stderr.splitlines()) == 1


def test_status_names_a_redis_that_does_not_answer(scraped: Node) -> None:
    words = scraped.cli("status", REDIS_URL="redis://127.0.0.1:1/0").stdout
    assert "no Redis answers at redis://127.0.0.1:1/0" in words
    assert "ll is well" not in words


@pytest.mark.parametrize(("url", "words"), [("redis://127.0.0.1:1/0", "no Redis answers"), ("", "No stack runs on")])
def test_dramatiq_by_hand_says_what_to_do_and_ends(scraped: Node, url: str, words: str) -> None:
    command = [str(Path(sys.executable).with_name("dramatiq")), "lienworker.actors", "-p", "1", "-t", "6"]
    environment = scraped.environment(REDIS_URL=url)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=25)
    assert done.returncode == 75, done.stderr
    assert words in done.stderr
    assert len(done.stderr.splitlines()) < 10


def test_nothing_is_called_delivered_that_never_left_the_machine(scraped: Node) -> None:
    line = next(line for line in scraped.cli("status").stdout.splitlines() if line.lstrip().startswith("uploads"))
    assert "delivered 0" in line
    assert "held 2" in line
    assert "oldest waits less than a minute" not in scraped.cli("outbox", "status").stdout  # held, it waits for nothing


# No data folder where there is none


@pytest.mark.parametrize(
    "command", ["status", "tasks list", "results export", "outbox status", "analyze", "pause", "imports list"]
)
def test_looking_makes_no_data_folder(node: Node, command: str) -> None:
    done = node.cli(*command.split())
    assert done.returncode in {1, 2}
    assert "lienworker init" in done.stdout + done.stderr
    assert not node.data.exists()


def test_doctor_says_that_there_is_no_data_folder_and_makes_none(node: Node) -> None:
    done = node.cli("doctor")
    assert f"there is none at {node.data} yet" in done.stdout
    assert not node.data.exists()


def test_a_misspelled_setting_is_named_by_doctor_and_at_start(scraped: Node) -> None:
    words = "LIENWORKER_HOST_DELAYS (in the environment) is no setting; did you mean LIENWORKER_HOST_DELAY?"
    assert words in scraped.cli("doctor", LIENWORKER_HOST_DELAYS="3").stdout
    assert words in scraped.cli("scrape", "--queue-only", "http://county.example/2", LIENWORKER_HOST_DELAYS="3").stderr
    assert "is no setting" not in scraped.cli("doctor").stdout


# Advice


def messages() -> Iterator[str]:
    """Every command that the program's own texts tell to type; what is put in is a 1."""
    for path in sorted(PROGRAM.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source if "lienworker " in source else "")
        told = {id(node.body[0].value) for node in ast.walk(tree) if _has_docstring(node)}
        for node in ast.walk(tree):
            if id(node) not in told:
                yield from re.findall(r"`(?:\S+=\S+ )?lienworker ([a-z][^`]*)`", _text(node))


def _has_docstring(node: ast.AST) -> bool:
    is_definition = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    return is_definition and ast.get_docstring(node, clean=False) is not None  # type: ignore[arg-type]


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "1" for part in node.values)
    return ""


ADVICE = sorted(
    {words for words in messages() if words.split()[0] not in NOT_RUN and words not in NOT_RUN and "{" not in words}
)


def test_there_is_advice_to_run() -> None:
    assert len(ADVICE) > 15
    assert "tasks retry" not in ADVICE


@pytest.mark.parametrize("words", ADVICE)
def test_every_command_that_a_message_prints_works_when_typed(scraped: Node, words: str) -> None:
    """0, or 1 for what is not there in this folder; never 2, which says that it cannot be typed so."""
    words = words.replace(" 1", " " + scraped.sql("SELECT task_id FROM tasks")[0][0]) if "show 1" in words else words
    process = scraped.start(*shlex.split(words))
    try:
        said, _ = process.communicate(timeout=3 if "--follow" in words or "--watch" in words else 60)
        assert process.returncode in {0, 1}, f"{words}\n{said}"
        assert "Usage:" not in said
    except subprocess.TimeoutExpired:
        process.terminate()  # SIGINT is ignored below a shell that put the tests in the background
        process.communicate(timeout=30)


def test_the_demo_sends_nobody_to_a_folder_that_it_removes(node: Node) -> None:
    done = node.cli("demo", "--parcels", "3")
    assert done.returncode == 0, done.stderr
    assert "results are in" not in done.stdout
    assert "lienworker tasks" not in done.stdout


def test_places_of_files_can_be_opened_as_they_are_printed(scraped: Node) -> None:
    shown = scraped.cli("results", "show", scraped.sql("SELECT task_id FROM results")[0][0]).stdout
    assert Path(re.findall(r"html_path\s+(\S+)", shown)[0]).is_file()
    failed = scraped.sql("SELECT task_id FROM tasks WHERE status = 'completed'")[0][0]
    assert Path(re.findall(r"raw page\s+(\S+)", scraped.cli("tasks", "show", failed).stdout)[0]).is_file()


def test_a_private_address_says_how_to_allow_it(node: Node, site: DemoSite) -> None:
    done = node.cli("scrape", site.parcels(1)[0]["url"], LIENWORKER_ALLOW_PRIVATE_HOSTS="")
    assert "LIENWORKER_ALLOW_PRIVATE_HOSTS=127.0.0.1 allows it" in done.stderr


# One thing by any of its names


def test_one_thing_goes_by_any_of_its_names(scraped: Node) -> None:
    task_id, parcel_id, url = scraped.sql(
        "SELECT t.task_id, t.parcel_id, t.url FROM tasks t JOIN results USING (task_id)"
    )[0]
    for name in (task_id, task_id[:12], parcel_id, parcel_id.lower(), url):
        assert scraped.json("tasks", "show", name)["task"]["task_id"] == task_id
        assert scraped.json("results", "show", name)["task_id"] == task_id
        assert {row["task_id"] for row in scraped.json("outbox", "show", name)} == {task_id}
    assert scraped.json("platforms", "explain", parcel_id)["platform"] == "demo"


def test_a_name_of_several_things_is_said(scraped: Node) -> None:
    done = scraped.cli("tasks", "show", "p-")
    assert done.returncode == 1
    assert "3 tasks or more" in done.stderr


# Exit codes


@pytest.mark.parametrize("more", [[], ["--dry-run"]], ids=["", "dry run"])
def test_rejected_rows_make_one(node: Node, more: list[str]) -> None:
    file = node.data.parent / "list.csv"
    file.write_text("url\nhttp://county.example/1\nftp://x\n")
    assert node.cli("import", str(file), *more).returncode == 1
    file.write_text("url\nhttp://county.example/1\n")
    assert node.cli("import", str(file), *more).returncode == 0


@pytest.mark.parametrize("command", ["scrape http://county.example/ --platform nope", "reparse --platform nope"])
def test_an_unknown_platform_is_two(scraped: Node, command: str) -> None:
    done = scraped.cli(*command.split())
    assert (done.returncode, done.stderr) == (2, "Error: There is no platform 'nope'.\n")


def test_a_prompt_without_a_terminal_says_yes(scraped: Node) -> None:
    done = scraped.cli("tasks", "cancel", "--all")
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert scraped.cli("tasks", "cancel", "--all", "--yes").returncode == 0


def test_retrying_nothing_is_one(scraped: Node) -> None:
    assert scraped.cli("tasks", "retry", "--reason", "nothing").returncode == 1


def test_a_closed_pipe_is_silent(scraped: Node) -> None:
    command = f"{shlex.quote(sys.executable)} -m lienworker results export | head -c 1"
    done = subprocess.run(["bash", "-c", command], env=scraped.environment(), capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("{", "")


def test_a_suggestion_is_never_dangerous(node: Node) -> None:
    assert "Did you mean `lienworker tasks retry`?" in node.cli("retry").stderr
    assert "restore" not in node.cli("restor").stderr
    assert "Did you mean 'status'?" in node.cli("statsu").stderr


# What an import says


def test_an_import_says_its_queue_and_what_became_urgent(node: Node) -> None:
    file = node.data.parent / "list.csv"
    file.write_text("url\nhttp://county.example/1\n")
    assert "1 row: 1 new, 0 already known; queue default" in node.cli("import", str(file)).stderr
    again = node.cli("import", str(file), "--queue", "urgent").stderr
    assert "1 moved to the queue urgent; queue urgent" in again


def test_no_url_names_the_columns_that_are_missing(node: Node) -> None:
    file = node.data.parent / "list.csv"
    file.write_text("platform,parcel_id\ntaxsys,33\n")
    assert "give the url column, or county_host" in node.cli("import", str(file), "--dry-run").stderr


# Commands of every day


def test_init_makes_a_folder_and_a_commented_env_and_leaves_what_is_there(node: Node) -> None:
    assert node.cli("init").returncode == 0
    settings = node.data.parent / ".env"
    assert "#LIENWORKER_HOST_DELAY=1.0" in settings.read_text()
    assert settings.stat().st_mode & 0o077 == 0
    settings.write_text("LIENWORKER_HOST_DELAY=7\n")
    assert "Left as it is" in node.cli("init").stdout
    assert settings.read_text() == "LIENWORKER_HOST_DELAY=7\n"


def test_config_shows_each_setting_and_where_it_comes_from_but_no_secret(node: Node) -> None:
    node.data.parent.mkdir(exist_ok=True)
    (node.data.parent / ".env").write_text("LIENWORKER_THREADS=9\n")
    done = node.cli("config", "show", "--json", GATEWAY_TOKEN="hunter2hunter2")
    rows = {row["setting"]: (row["value"], row["from"]) for row in json.loads(done.stdout)}
    assert rows["LIENWORKER_THREADS"] == ("9", ".env")
    assert rows["LIENWORKER_PROCESSES"] == ("2", "environment")
    assert rows["LIENWORKER_BATCH"] == ("16", "default")
    assert rows["GATEWAY_TOKEN"] == ("(set)", "environment")
    assert "hunter2" not in done.stdout


def test_imports_and_counties_are_listed_and_shown(scraped: Node) -> None:
    (found,) = scraped.json("imports", "list")
    assert found["added"] == 1
    assert scraped.json("imports", "show", "1")["tasks"]["pending"] == 1
    assert {row["county"] for row in scraped.json("counties", "list")} == {""}
    assert scraped.cli("imports", "show", "7").returncode == 1
    (scraped.data.parent / "odd.csv").write_text("Address of page;Parcel No.\nhttp://county.example/1;7\n")
    scraped.cli("import", "odd.csv", "--map", "url=Address of page", "--state", "FL", "--queue", "urgent")
    options = scraped.json("imports", "show", "2")["options"]
    mapping = {"url": "Address of page", "parcel_id": "Parcel No."}
    assert options == {"state": "FL", "queue": "urgent", "mapping": mapping}
    told = scraped.cli("imports", "show", "2").stdout
    assert re.search(r"^ +queue  urgent$", told, re.M)
    assert "column  url = Address of page\n" in told


@pytest.mark.slow
def test_a_stack_in_the_background_is_watched_and_stopped(node: Node) -> None:
    assert node.cli("up", "--detach").returncode == 0
    try:
        assert node.cli("health", "workers").returncode == 0
        assert node.cli("logs").stdout
        assert node.cli("up", "--detach").returncode == 1
    finally:
        assert node.cli("stop").returncode == 0
    assert node.cli("stop").returncode == 1
    wait_until(lambda: not node.processes())


def test_a_stack_that_cannot_start_in_the_background_says_why(node: Node) -> None:
    began = time.monotonic()
    done = node.cli("up", "--detach", REDIS_URL="redis://127.0.0.1:1/0")
    assert done.returncode == 75
    assert "no Redis answers" in done.stderr
    assert time.monotonic() - began < 20


def test_python_m_lienworker_bulk_import_works(node: Node) -> None:
    file = node.data.parent / "list.csv"
    file.write_text("url\nhttp://county.example/1\n")
    command = [sys.executable, "-m", "lienworker", "bulk", "import", str(file), "--batch-size", "100"]
    assert subprocess.run(command, env=node.environment(), capture_output=True).returncode == 0
    (row,) = node.sql("SELECT task_id, status, queue, priority FROM standalone_tasks")
    assert row[1:] == ("pending", "default", 3)
    assert node.sql("SELECT count(*) FROM local_results") == [(0,)]


def test_a_watched_status_fits_a_small_terminal(scraped: Node) -> None:
    """The headline stays on 24 lines of 80 columns, however many hosts and failures there are."""
    file = scraped.data.parent / "many.csv"
    file.write_text("url,county\n" + "".join(f"http://c{n}.example/1,County {n}\n" for n in range(30)))
    assert scraped.cli("import", str(file)).returncode == 0
    process = scraped.start("status", "--watch", COLUMNS="80", LINES="24")
    assert process.stdout is not None
    lines = [process.stdout.readline()]
    while "MB free on the disk" not in lines[-1]:
        lines.append(process.stdout.readline())
    process.terminate()  # SIGINT is ignored below a shell that put the tests in the background
    process.communicate(timeout=30)
    assert len(lines) <= 24, "".join(lines)
    assert "standalone" in lines[0]
    assert "and 2" in "".join(lines)
