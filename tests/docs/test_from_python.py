"""docs/from-python.md and the views of docs/other-names.md: each block runs, each field and each column is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

from lienworker.platforms.core.base import CANONICAL
from lienworker.testing.county.site import DemoSite
from tests.docs.blocks import ROOT, blocks
from tests.harness.node import Node

FROM_PYTHON = ROOT / "docs" / "from-python.md"


class _Loader(yaml.SafeLoader):
    """Reads Compose's own tag, too."""


_Loader.add_constructor("!reset", lambda loader, node: None)


def test_the_blocks_run_one_after_the_other(node: Node, site: DemoSite, tmp_path: Path) -> None:
    import urllib.request

    url = site.parcels(1)[0]["url"]
    assert node.cli("init").returncode == 0
    (tmp_path / "page.html").write_bytes(urllib.request.urlopen(url).read())
    code = "\n".join(block.text for block in blocks(FROM_PYTHON) if block.kind == "python")
    code = code.replace("http://county.example/parcel/123", url)
    server = f"unix://{tmp_path}/redis.sock"
    from lienworker.stack.redis_server import server_program

    command = [str(server_program()), "--port", "0", "--unixsocket", f"{tmp_path}/redis.sock", "--save", ""]
    redis = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        from tests.harness.node import wait_until

        wait_until((tmp_path / "redis.sock").exists)
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=node.environment(REDIS_URL=server), capture_output=True
        )
    finally:
        redis.terminate()
        redis.wait()
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().splitlines()[0] == "pending"


def test_every_canonical_field_is_named_in_its_order() -> None:
    told = FROM_PYTHON.read_text().partition("## The fields of a record")[2].partition("\n\n")[2].partition("\n\n")[2]
    assert tuple(re.findall(r"`(\w+)`", told.partition("\n\n")[0])) == CANONICAL


def test_the_views_have_the_columns_that_are_told(node: Node) -> None:
    text = (ROOT / "docs" / "other-names.md").read_text()
    node.cli("init")
    for view in ("local_results", "standalone_tasks"):
        (line,) = re.findall(rf"^\| `{view}` \| (`id`.*) \|$", text, re.M)
        assert re.findall(r"`(\w+)`", line) == [row[1] for row in node.sql(f"PRAGMA table_info({view})")]


def test_the_file_of_the_other_name_is_the_standalone_profile() -> None:
    ours = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    theirs = yaml.load((ROOT / "docker-compose.standalone.yml").read_text(), _Loader)
    assert theirs["services"].keys() == {name for name, about in ours.items() if "standalone" in about["profiles"]}
    for name, about in theirs["services"].items():
        assert about == {"extends": {"file": "compose.yaml", "service": name}, "profiles": None}
    assert theirs["volumes"]["data"]["driver_opts"]["device"].endswith("/data}")


def test_a_first_look_installs_the_program_alone() -> None:
    made = subprocess.run(["make", "--dry-run", "--always-make", "demo"], cwd=ROOT, capture_output=True, text=True)
    assert "-e .\n" in made.stdout
    assert "dev" not in made.stdout.replace("/dev/", "")
