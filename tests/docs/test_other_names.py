"""docs/other-names.md: what each name is said to be here is there, and does what the name asks for."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner

import lienworker
from lienworker.cli import cli
from lienworker.db.database import close, open_store
from lienworker.store.results import get_unsynced_results
from lienworker.testing.county.site import DemoSite
from tests.docs.blocks import ROOT
from tests.harness.node import Node

_ROW = re.compile(r"^\| (?P<asked>(?!asked|view|-).*?) \| (?P<here>[^|]*) \|$", re.M)
_TOLD = (ROOT / "docs" / "other-names.md").read_text().partition("The views are for reading")[0]
TOLD = {row["asked"].strip("`"): row["here"] for row in _ROW.finditer(_TOLD)}
PACKAGE = Path(lienworker.__file__).parent


def _commands() -> list[str]:
    return [code for here in TOLD.values() for code in re.findall(r"`lienworker ([a-z ]+)[A-Z`]", here)]


def test_every_mapping_has_its_test() -> None:
    assert TOLD.keys() == MEANT.keys()


def test_every_room_module_and_command_that_is_named_is_there() -> None:
    for here in TOLD.values():
        for room in re.findall(r"`([a-z/]+)/`", here):
            assert (PACKAGE / room / "__init__.py").is_file(), room
        for name in re.findall(r"`(lienworker(?:\.\w+)+)`", here):
            module, _, function = name.rpartition(".")
            assert callable(getattr(importlib.import_module(module), function)), name
        for file in re.findall(r"`(\S+\.ya?ml)`", here):
            assert (ROOT / file).is_file(), file
    assert len(_commands()) >= 3
    for command in _commands():
        assert CliRunner().invoke(cli, [*command.split(), "--help"]).exit_code == 0, command


def _rooms(node: Node) -> None:
    for name in re.findall(r"\((tasks, pages, results, raw files)\)", TOLD["LocalPersistenceManager"])[0].split(", "):
        assert (PACKAGE / "store" / f"{name.replace(' ', '_')}.py").is_file(), name


def _unsynced(node: Node) -> None:
    open_store(node.data)
    assert [row["data"]["parcel_id"] for row in get_unsynced_results()] == [_parcel(node)]
    close()


def _replay(node: Node) -> None:
    asked = node.cli("outbox", "replay", "--dry-run")
    assert "2 rows to replay" in asked.stdout, "the page and the result"


def _table_and_view(table: str, view: str) -> Callable[[Node], None]:
    def check(node: Node) -> None:
        assert node.sql(f"SELECT task_id FROM {view}") == node.sql(f"SELECT task_id FROM {table}") != []

    return check


def _bulk(node: Node) -> None:
    told = node.cli("bulk", "import", "--help").stdout
    assert re.search(r"--batch-size .*?\[default: 100;", " ".join(told.split()))
    assert told.partition("Options")[2] == node.cli("import", "--help").stdout.partition("Options")[2]


def _compose(node: Node) -> None:
    assert "./data/pending" in (ROOT / "docker-compose.standalone.yml").read_text()


def _pending(node: Node) -> None:
    (file,) = (node.data / "pending").glob("*.json")
    assert json.loads(file.read_text())["parcel_id"] == _parcel(node)


def _parcel(node: Node) -> str:
    ((parcel,),) = node.sql("SELECT parcel_id FROM results")
    return str(parcel)


MEANT: dict[str, Callable[[Node], None]] = {
    "LocalPersistenceManager": _rooms,
    "LocalPersistenceManager.get_unsynced_results": _unsynced,
    "SyncManager": _replay,
    "SyncManager.sync_pending": _replay,
    "the table `local_results": _table_and_view("results", "local_results"),
    "the table `standalone_tasks": _table_and_view("tasks", "standalone_tasks"),
    "python -m lienworker bulk import FILE": _bulk,
    "docker compose -f docker-compose.standalone.yml up -d": _compose,
    "data/pending/*.json": _pending,
}


def test_each_name_is_what_it_is_said_to_be(node: Node, site: DemoSite) -> None:
    """In a standalone folder with one parcel, scraped."""
    assert node.cli("run", "-", stdin=json.dumps(site.parcels(1)[0]) + "\n").returncode == 0
    for check in MEANT.values():
        check(node)
