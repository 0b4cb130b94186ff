"""The actors are thin, keep their names, and are imported by nobody but the processes that run them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
#: The queue, the priority and the schedule of each actor; messages in a Redis that outlives an update name them.
ACTORS = {
    "collect": ("beat", 1, True),
    "fetch": ("fetch", 30, False),
    "heartbeat": ("beat", 0, False),
    "relay": ("beat", 0, True),
    "scrape": ("scrape", 20, False),
    "scrape_url": ("fetch", 30, False),
    "upkeep": ("beat", 20, True),
    "upload": ("upload", 10, False),
}
#: Processes whose command line is `lienworker.actors`.
RUN_THEM = {"lienworker/stack/schedule.py"}


def python(code: str, tmp_path: Path) -> str:
    environment = {**os.environ, "LIENWORKER_DATA_DIR": str(tmp_path), "STANDALONE": "true"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_actors_keep_their_names_queues_and_schedule(tmp_path: Path) -> None:
    code = (
        "from lienworker.actors import broker\n"
        "print({n: (a.queue_name, a.priority, 'periodic' in a.options) for n, a in broker.actors.items()})"
    )
    assert ast.literal_eval(python(code, tmp_path)) == ACTORS


def test_the_actors_are_thin() -> None:
    lines = [path.read_text().count("\n") for path in (ROOT / "lienworker" / "actors").glob("*.py")]
    assert sum(lines) <= 300


def test_nobody_imports_the_actors_but_the_processes_that_run_them() -> None:
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "lienworker").rglob("*.py")
        if "actors" not in path.parts and "lienworker.actors" in _imported(path)
    }
    assert found == RUN_THEM


def _imported(path: Path) -> str:
    """Names of the modules that are imported, at the top or inside of functions."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return " ".join(names)


def test_looking_loads_neither_broker_nor_parsers_and_a_persons_work_no_broker(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from lienworker.cli import cli\n"
        "assert CliRunner().invoke(cli, ['init']).exit_code == 0\n"
        "for words in (['tasks', 'list'], ['status']):\n"
        "    assert CliRunner().invoke(cli, words).exit_code == 0\n"
        "looking = bool({'dramatiq', 'parsel'} & set(sys.modules))\n"
        "import lienworker.operator.preview, lienworker.operator.replay, lienworker.operator.scrape_now\n"
        "print(looking, 'lienworker.actors' in sys.modules, 'lienworker.broker' in sys.modules)"
    )
    assert python(code, tmp_path) == "False False False"
