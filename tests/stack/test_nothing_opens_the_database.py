"""No command and no part of the stack gets a descriptor of the database past SQLite.

Closing one would drop every lock that the process has on the file: another process would take itself for the last user,
delete the log, and the first one would write on into a deleted file.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from lienworker.cli import cli
from lienworker.testing.county.site import DemoSite, demo_site
from lienworker.testing.gateway import ReferenceGateway, reference_gateway
from lienworker.testing.layers import feature_server
from tests.harness.descriptors import lost_locks, needs_proc, opened, spied
from tests.harness.node import Node, wait_until, write_list

pytestmark = [pytest.mark.slow, needs_proc]

#: What each command is called with; None where it does not use the data folder or is the stack itself.
COMMANDS: dict[str, list[str] | None] = {
    "analyze": [],
    "backup": ["{base}/b.tar"],
    "bulk import": ["{base}/more.jsonl"],
    "completion": None,
    "config show": [],
    "counties list": [],
    "counties show": ["Juniper"],
    "demo": None,
    "doctor": [],
    "gateway check": [],
    "gateway serve": None,
    "harvest": ["{layer}", "--state", "FL", "--county", "Dixie", "--limit", "5"],
    "harvests list": [],
    "health": ["workers"],
    "hosts forget": ["http://127.0.0.1:1/"],
    "hosts list": ["--all"],
    "hosts pause": ["127.0.0.1:1"],
    "hosts resume": ["127.0.0.1:1"],
    "hosts set": ["127.0.0.1:1", "--delay", "1"],
    "hosts show": ["{url}"],
    "import": ["{base}/more.jsonl"],
    "imports list": [],
    "imports show": ["1"],
    "init": [],
    "logs": None,
    "outbox discard": ["--id", "1", "--yes"],
    "outbox hold": ["--county", "Juniper"],
    "outbox list": [],
    "outbox release": ["--reason", "operator"],
    "outbox replay": [],
    "outbox show": ["1"],
    "outbox status": [],
    "pause": ["--upload"],
    "platforms accept": ["--all"],
    "platforms explain": ["{base}/page.html"],
    "platforms list": [],
    "platforms new": None,
    "platforms parse": ["{base}/page.html"],
    "platforms score": None,  # reads a folder of pages and no data folder
    "platforms try": None,  # walks a flow and stores nothing
    "purge": ["--older-than", "0", "--yes"],
    "reparse": [],
    "restore": ["{base}/b.tar", "--force"],
    "results archive": [],
    "results export": ["--output", "{base}/out.jsonl"],
    "results list": [],
    "results show": ["{task}"],
    "resume": [],
    "run": ["{base}/more.jsonl"],
    "scrape": ["{url}"],
    "service install": None,
    "service uninstall": None,
    "sources add": ["{base}/sources.toml"],
    "sources check": ["FL Dixie"],
    "sources list": [],
    "sources show": ["FL Dixie"],
    "status": [],
    "stop": None,
    "tasks cancel": ["{task}"],
    "tasks fill": ["--all"],
    "tasks list": [],
    "tasks retry": ["--all"],
    "tasks show": ["{task}"],
    "up": [],
    "web": None,
}


def leaves(group: click.Group, *path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, *path, name)
        else:
            yield " ".join((*path, name))


def test_no_command_is_left_out() -> None:
    assert sorted(leaves(cli)) == sorted(COMMANDS)


@dataclass
class Busy:
    """A stack that works, in on-demand mode, with its monitor; everything in it is spied on."""

    base: Path
    node: Node
    words: dict[str, str]
    process: subprocess.Popen[str]


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Busy]:
    base = tmp_path_factory.mktemp("busy")
    with reference_gateway() as gateway, demo_site() as site, feature_server(count=10) as layer:
        yield from _busy(base, site, gateway, layer.layer)


def _busy(base: Path, site: DemoSite, gateway: ReferenceGateway, layer: str) -> Iterator[Busy]:
    node = Node(base / "data", GATEWAY_URL=gateway.url, GATEWAY_TOKEN=gateway.token, **spied(base))
    first = node.cli("run", write_list(base / "first.jsonl", site.parcels(5)))
    assert first.returncode == 0, first.stderr
    write_list(base / "more.jsonl", site.parcels(10, start=100))
    (base / "page.html").write_text("<h1>Parcel 1</h1><table><tr><th>Owner</th><td>OTTER IDA</td></tr></table>")
    layer = f"{site.url}/arcgis/rest/services/Parcels/FeatureServer/0"
    (base / "sources.toml").write_text(f'[[source]]\nstate = "FL"\ncounty = "Dixie"\nurl = "{layer}"\nfield = "PIN"\n')
    task = node.sql("SELECT task_id FROM tasks LIMIT 1")[0][0]
    words = {"base": str(base), "task": task, "url": site.parcels(1, start=900)[0]["url"], "layer": layer}
    process = node.start("up")
    try:
        wait_until(node.is_up, 60, "the stack")
        yield Busy(base, node, words, process)
    finally:
        process.terminate()
        process.communicate(timeout=30)
        node.kill_everything()


@pytest.mark.parametrize("command", [name for name, arguments in COMMANDS.items() if arguments is not None])
def test_a_command_beside_a_running_stack_opens_nothing_and_drops_no_lock(busy: Busy, command: str) -> None:
    arguments = [word.format(**busy.words) for word in COMMANDS[command] or []]
    done = busy.node.cli(*command.split(), *arguments)
    assert "Traceback" not in done.stderr, done.stderr
    assert opened(busy.base) == "", done.stderr
    assert lost_locks(busy.node.data) == []
    assert busy.process.poll() is None
    assert busy.node.sql("PRAGMA quick_check") == [("ok",)]


def test_the_spy_sees_what_it_is_there_for(tmp_path: Path) -> None:
    """Otherwise the tests above would prove nothing."""
    node = Node(tmp_path / "data", **spied(tmp_path))
    assert node.cli("init").returncode == 0
    assert opened(tmp_path) == ""
    code = f"open({str(node.data / 'lienworker.db')!r}).close()"
    subprocess.run([sys.executable, "-c", code], env=node.environment(), check=True)
    assert "opened" in opened(tmp_path)


def test_a_dropped_lock_is_seen(tmp_path: Path) -> None:
    """What closing a second descriptor does, and that `lost_locks` tells."""
    path = tmp_path / "lienworker.db"
    with closing(sqlite3.connect(path)) as mine:
        mine.execute("PRAGMA journal_mode = wal")
        mine.execute("CREATE TABLE t (x)")
        assert lost_locks(tmp_path) == []
        path.open("rb").close()
        assert "without its lock" in lost_locks(tmp_path)[0]


def test_a_repair_and_a_restore_open_nothing_either(tmp_path: Path) -> None:
    with demo_site() as site:
        node = Node(tmp_path / "data", **spied(tmp_path))
        assert node.cli("run", write_list(tmp_path / "a.jsonl", site.parcels(5))).returncode == 0
        assert node.cli("backup", str(tmp_path / "b.tar")).returncode == 0
        pages = node.sql("SELECT pageno FROM dbstat WHERE name = 'rollups' AND pagetype = 'leaf'")
        with (node.data / "lienworker.db").open("r+b") as file:
            file.seek((pages[0][0] - 1) * 4096)
            file.write(bytes(4096))
        assert "Repaired: database" in node.cli("doctor", "--repair", "--yes").stderr
        assert node.cli("restore", str(tmp_path / "b.tar"), "--force").returncode == 0
        assert opened(tmp_path) == ""
        node.doctor()


@pytest.mark.parametrize(
    "command", [("import",), ("run",), ("results", "export", "--output"), ("analyze", "--html")], ids=" ".join
)
@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_person_who_names_the_database_as_a_file_is_told(busy: Busy, command: tuple[str, ...], suffix: str) -> None:
    name = f"{busy.node.data / 'lienworker.db'}{suffix}"
    done = busy.node.cli(*command, name)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "lienworker's own database" in done.stderr
    assert lost_locks(busy.node.data) == []


def test_looking_while_a_repair_has_the_folder_waits_and_harms_nothing(tmp_path: Path) -> None:
    """A looker that opened the old file in the middle of a swap would take the new one's log along."""
    from lienworker.data_folder import DataFolder
    from lienworker.db.database import close, open_store
    from lienworker.db.usage import owning, release

    node = Node(tmp_path / "data")
    open_store(node.data)
    close()
    release()
    with owning(DataFolder(node.data)):
        looker = node.start("status")
        with pytest.raises(subprocess.TimeoutExpired):
            looker.wait(2)
    said, _ = looker.communicate(timeout=60)
    assert looker.returncode == 0, said
