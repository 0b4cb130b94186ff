"""Lines of the threat model (docs/security.md) that belong to no single part, and the model itself."""

from __future__ import annotations

import ast
import csv
import io
import re
import stat
import sys
import tarfile
from pathlib import Path

import pytest

from lienworker.db.database import open_store
from lienworker.queries.export import Columns, Selection, Shape, export_text
from lienworker.testing.county.site import DemoSite
from tests.harness.node import Node, interrupt, wait_until, write_list

ROOT = Path(__file__).parent.parent
MODEL = ROOT / "docs" / "security.md"
HOSTILE = [
    "../../../outside",
    "/etc/passwd",
    "..",
    "a/b\\c",
    "\0x",
    "x" * 300,
    "CON",
    "~root",
    "$(touch outside)",
    "‮gz",
]
FORMULAS = ["=cmd|'/c calc'!A1", "+1+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1"]


def test_every_line_of_the_threat_model_names_tests_that_are_there() -> None:
    lines = [line for line in MODEL.read_text(encoding="utf-8").splitlines() if line.startswith("| ") and "`" in line]
    assert len(lines) >= 30
    for line in lines:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", line)
        assert named, f"this line has no test: {line}"
        for file, name in named:
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
            functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
            assert name in functions, f"{file} has no {name}"


def test_the_database_is_private_also_in_a_folder_that_others_may_read(tmp_path: Path) -> None:
    shared = tmp_path / "data"
    shared.mkdir(mode=0o755)
    folder = open_store(shared)
    for path in shared.glob("lienworker.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(folder.raw.stat().st_mode) == 0o700


@pytest.mark.slow
def test_no_secret_is_on_a_command_line(node: Node) -> None:
    secrets = {
        "GATEWAY_TOKEN": "tok-11aa22bb",
        "LIENWORKER_PROXY": "http://me:pw-33cc44dd@127.0.0.1:9",
        "LIENWORKER_WEB_TOKEN": "web-55ee66ff",
        "GATEWAY_URL": "http://user:gw-77aa88bb@127.0.0.1:9",
    }
    node.settings |= {**secrets, "LIENWORKER_WEB_PORT": "0"}
    process = node.start("up")
    try:
        wait_until(node.is_up, what="the stack")
        lines = [" ".join(each.cmdline()) for each in node.processes()]
    finally:
        interrupt(process)
        process.communicate(timeout=60)
    assert len(lines) >= 4
    for word in ("tok-11aa22bb", "pw-33cc44dd", "web-55ee66ff", "gw-77aa88bb"):
        assert not [line for line in lines if word in line]


@pytest.mark.slow
def test_hostile_ids_write_nothing_outside_the_data_folder(node: Node, site: DemoSite, tmp_path: Path) -> None:
    """Through the whole way: import, raw page, result, pending file, archive, export."""
    rows = []
    for row, evil in zip(site.parcels(len(HOSTILE)), HOSTILE, strict=True):
        place = {name: evil.replace("\0", "") for name in ("state", "county", "parcel_id")}
        rows.append({**row, **place, "state": evil[:20].replace("\0", "")})
    listed = write_list(tmp_path / "rows.jsonl", rows)
    before = {path for path in tmp_path.rglob("*") if node.data not in path.parents}
    done = node.cli("run", listed)
    assert "Traceback" not in done.stderr
    assert node.sql("SELECT count(*) FROM results")[0][0] >= len(HOSTILE) // 2
    assert node.cli("results", "archive").returncode == 0
    (archive,) = (node.data / "archive").glob("*.tar")
    with tarfile.open(archive) as packed:
        assert all(re.fullmatch(r"[\w~.-]+\.json", name) for name in packed.getnames())
    after = {path for path in tmp_path.rglob("*") if node.data not in path.parents}
    assert after - before <= {node.data}
    for path in node.data.rglob("*"):
        assert path.resolve().is_relative_to(node.data.resolve())
        assert not path.is_symlink()


def test_a_formula_in_any_exported_cell_is_text() -> None:
    rows = [
        {"task_id": evil, "parcel_id": evil, "county": evil, "data": {"owner_name": evil, "notes": [evil], evil: evil}}
        for evil in FORMULAS
    ]
    out = io.StringIO()
    names = Columns((), ("owner_name", "notes", *FORMULAS))
    export_text(Selection(lambda: iter(rows), lambda: names), Shape("csv"), out)
    out.seek(0)
    cells = [cell for line in csv.reader(out) for cell in line]
    assert len(cells) > len(FORMULAS) * 5
    for cell in cells:
        assert not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r")), repr(cell)


def test_a_web_of_private_names_is_not_reached_through_settings_either(node: Node) -> None:
    """`scrape` asks the same guard as the workers: a person's typing error opens no door."""
    for url in ("http://169.254.169.254/latest/meta-data/", "http://[::ffff:10.0.0.1]/", "file:///etc/passwd"):
        done = node.cli("scrape", url, LIENWORKER_ALLOW_PRIVATE_HOSTS="")
        assert done.returncode in {1, 2}, done.stdout
        assert "Traceback" not in done.stderr


def test_this_python_has_no_option_that_weakens_it() -> None:
    """The tests speak for the program as it is installed: with hash randomisation and without `-O`."""
    assert sys.flags.hash_randomization
    assert not sys.flags.optimize
