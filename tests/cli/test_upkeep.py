"""Keeping a data folder in order by hand: purge."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from lienworker.testing.county.site import demo_site
from tests.harness.node import Node


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three results, archived, with raw pages that are not young any more; made once, copied by each test."""
    node = Node(tmp_path_factory.mktemp("scraped") / "data")
    with demo_site() as site:
        for row in site.parcels(3):
            assert node.cli("scrape", row["url"]).returncode == 0
    assert node.cli("results", "archive").returncode == 0
    for path in raw_files(node):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    return node.data


@pytest.fixture
def scraped(template: Path, node: Node) -> Node:
    shutil.copytree(template, node.data)
    return node


def raw_files(node: Node) -> list[Path]:
    return [path for path in (node.data / "raw").rglob("*") if path.is_file()]


def test_purge_says_what_would_go_asks_and_does_it(scraped: Node) -> None:
    dry = scraped.cli("purge", "--older-than", "0", "--archived", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "3 tasks" in dry.stdout
    assert "3 raw pages" in dry.stdout
    assert "12 finished steps" in dry.stdout
    assert "No Gateway has 3 results of these" in dry.stdout
    assert scraped.statuses() == {"completed": 3}

    asked = scraped.cli("purge", "--older-than", "0", "--archived", stdin="n\n")
    assert asked.returncode == 130
    assert scraped.statuses() == {"completed": 3}

    done = scraped.cli("purge", "--older-than", "0", "--archived", stdin="y\n")
    assert done.returncode == 0, done.stderr
    assert "Purged:\n  3 tasks" in done.stdout
    assert scraped.statuses() == {}
    assert raw_files(scraped) == []
    assert scraped.sql("SELECT action, n > 0 FROM audit WHERE action = 'purge'") == [("purge", 1)]
    scraped.doctor()


def test_purge_leaves_what_no_gateway_has_unless_told(scraped: Node) -> None:
    done = scraped.cli("purge", "--older-than", "0", "--only", "tasks", "--only", "raw", "--yes")
    assert done.returncode == 0, done.stderr
    assert "Nothing is old enough to be purged." in done.stdout
    assert len(raw_files(scraped)) == 3


@pytest.mark.parametrize("age", ["soon", "-1", "1y", ""])
def test_an_age_that_is_none_is_refused(node: Node, age: str) -> None:
    done = node.cli("purge", "--older-than", age)
    assert done.returncode == 2
    assert "is no age: use days" in done.stderr


def test_a_vacuum_makes_an_old_file_small_and_able_to_shrink(node: Node) -> None:
    node.cli("init")
    path = node.data / "lienworker.db"
    with sqlite3.connect(path) as direct:
        direct.execute("PRAGMA journal_mode = delete")
        direct.execute("PRAGMA auto_vacuum = none")
        direct.execute("VACUUM")
        direct.execute("CREATE TABLE ballast (x)")
        direct.executemany("INSERT INTO ballast VALUES (?)", [("x" * 4000,)] * 3000)
        direct.execute("DROP TABLE ballast")
    direct.close()
    before = path.stat().st_size
    assert before > 10_000_000

    done = node.cli("purge", "--vacuum", "--yes")

    assert done.returncode == 0, done.stderr
    assert "The database took" in done.stdout
    assert path.stat().st_size < 2_000_000
    assert node.sql("PRAGMA auto_vacuum") == [(2,)]
    node.doctor()
