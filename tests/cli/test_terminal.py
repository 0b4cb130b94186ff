"""What a stranger wrote cannot give orders to the terminal."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from lienworker.db.clock import rfc3339
from lienworker.db.database import close, execute, open_store, write
from lienworker.outbox.registration import register_task
from lienworker.store import tasks
from lienworker.store.results import NewResult, save_result
from lienworker.store.tasks import NewTask
from lienworker.text_safety import visible
from tests.harness.node import Node

#: Clears the screen, writes the window's title, turns the text around, and the same with 8-bit controls.
ORDERS = "\x1b[2J\x1b]0;owned\x07\x9b2J\u202egnp.exe\u2066\x7f\r"
#: None of the orders above is one.
OUR_COLORS = re.compile(r"\x1b\[[0-9]{1,2}m")
OBEYED = ("\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\x7f")


@pytest.fixture
def hostile(node: Node) -> Node:
    """Every text of a task and its result is an order to the terminal."""
    open_store(node.data)
    place = {"platform": f"demo{ORDERS}", "state": f"FL{ORDERS}", "county": f"Dixie{ORDERS}"}
    for name in ("bad", "good"):
        register_task(NewTask("cli", f"http://county.example/{name}", task_id=name, parcel_id=f"7{ORDERS}", **place))
    with write("test"):
        tasks.mark_failed("bad", f"broken{ORDERS}", f"The page says {ORDERS}")
        row = execute("SELECT id FROM outbox WHERE task_id = 'bad'").fetchone()[0]
        parked = (ORDERS, json.dumps([ORDERS]), row)
        execute("UPDATE outbox SET state = 'parked', reason = ?, payload = ? WHERE id = ?", parked)
        execute(
            "INSERT INTO attempts (outbox_id, task_id, topic, at, reason, error) VALUES (?, 'bad', 'fetch', ?, ?, ?)",
            (row, rfc3339(), ORDERS, ORDERS),
        )
        data = {"owner_name": ORDERS, ORDERS: ORDERS, "liens": [{ORDERS: ORDERS}]}
        made = ("good", 1, ORDERS, *place.values(), data, "pending/x.json", "raw/x", "0" * 64, rfc3339(), f"1{ORDERS}")
        save_result(NewResult(*made, rfc3339(), 4))
        tasks.mark_completed("good")
    close()
    return node


COMMANDS = [
    ["status"], ["tasks", "list"], ["tasks", "show", "bad"], ["tasks", "show", "good"], ["results", "list"],
    ["results", "show", "good"], ["outbox", "status"], ["outbox", "list"], ["outbox", "show", "1"], ["analyze"],
    ["results", "export", "--format", "csv"], ["results", "export", "--format", "jsonl"],
    ["tasks", "show", f"nothing{ORDERS}"], ["scrape", f"http://{ORDERS}/"], ["import", f"/nothing/{ORDERS}.csv"],
    [f"nothing{ORDERS}"],
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=range(len(COMMANDS)))
def test_no_command_passes_a_strangers_orders_on(hostile: Node, command: list[str]) -> None:
    for form in ([], ["--json"]):
        said = OUR_COLORS.sub("", hostile.on_terminal(*command, *form)[1])
        assert said
        assert not [order for order in OBEYED if order in said], (command, said)


def test_status_has_its_color_on_a_terminal_and_none_elsewhere(node: Node) -> None:
    node.cli("init")
    _, said = node.on_terminal("status")
    assert "\x1b[32m\x1b[1mNothing waits" in said
    assert "\\x1b" not in said
    _, plain = node.on_terminal("status", NO_COLOR="1")
    assert ": Nothing waits" in plain
    assert ": Nothing waits" in node.cli("status").stdout


def test_a_file_that_is_imported_cannot_give_orders_either(node: Node, tmp_path: Path) -> None:
    listed = tmp_path / f"list{ORDERS.replace('/', '')}.csv"
    listed.write_text(f"url,owner{ORDERS}\nno url {ORDERS},x\n", encoding="utf-8")
    for command in (["import", "--dry-run", str(listed)], ["import", str(listed)]):
        _, said = node.on_terminal(*command)
        assert not [order for order in OBEYED if order in said], said


def test_what_is_not_obeyed_is_seen() -> None:
    assert visible("a\x1b[2Jb") == "a\\x1b[2Jb"
    assert visible("\u202egnp") == "\\u202egnp"
    assert visible("1\u00a0MAIN\u2009ST") == "1 MAIN ST"
    assert visible("\U000e0001\udcff") == "\\U000e0001\\udcff"
    assert visible("one\ntwo", keep="\n") == "one\ntwo"
    assert visible("one\ntwo") == "one two"
    assert visible("Ünïcode 漢字 🏠") == "Ünïcode 漢字 🏠"


def test_json_stays_json_and_a_pipe_gets_what_is_there(hostile: Node) -> None:
    shown = hostile.json("results", "show", "good")
    assert shown["data"]["owner_name"] == ORDERS
    (exported,) = hostile.cli("results", "export").stdout.splitlines()
    assert json.loads(exported)["data"]["owner_name"] == ORDERS


def test_commands_speak_through_one_function() -> None:
    """`click.echo` passes everything on; the progress bar draws, and says nothing of a stranger's."""
    folder = Path(__file__).parents[2] / "lienworker" / "cli"
    wrong = [
        f"{path.name}:{node.lineno}"
        for path in sorted(folder.glob("*.py"))
        if path.name not in {"output.py", "progress.py"}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"click.echo", "click.secho", "print"}
    ]
    assert not wrong, "say it with lienworker.cli.output.echo"
