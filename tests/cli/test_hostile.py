"""Command lines and settings with values that nobody would give on purpose: one sentence, an exit code, no trace."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from lienworker.cli import cli as lienworker
from lienworker.cli.common import shown
from lienworker.db import database
from lienworker.errors import LienworkerError, SettingsError
from lienworker.settings import Settings
from tests.harness.node import Node
from tests.web.seed import seed

VALUES = [
    "", " ", "\n", "-", "--", "-1", "0", "99999999999999999999999", "1e999", "nan", "NaN", "-inf", "0x10", "٣",
    "\udcff\udcfe", "é‮", "\x1b[2J", "a" * 100_000, "../../../etc/passwd", "/dev/null", "/nonexistent/x", ".",
    "'; DROP TABLE tasks; --", "%s%n", "{}", "$(id)", "=1+1", "http://[", "http://%00/", "file:///etc/passwd",
    "2026-13-45", "0001-01-01", "9999-12-31T23:59:59", "all", "*",
]  # fmt: skip
#: These start processes that stay, open a browser, or fetch; they have tests of their own.
_STAYING = {"up", "run", "demo", "web", "serve", "scrape", "watch"}


def commands(
    group: click.Group = lienworker, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        elif name not in _STAYING:
            yield (*path, name), command


def lines(command: click.Command, chance: random.Random) -> Iterator[list[str]]:
    """Each option and each argument with a hostile value, the others left out or plain."""
    arguments = [item for item in command.params if isinstance(item, click.Argument)]
    for parameter in command.params:
        for value in chance.sample(VALUES, 6):
            line = ["x" for item in arguments if item is not parameter and item.required]
            if isinstance(parameter, click.Argument):
                yield [*line, "--", value]
            elif isinstance(parameter, click.Option) and not parameter.is_flag:
                yield [parameter.opts[-1], value, *line]


@pytest.fixture
def seeded(node: Node) -> Node:
    seed(node.data)
    return node


@pytest.mark.parametrize(("path", "command"), list(commands()), ids=[" ".join(path) for path, _ in commands()])
def test_hostile_values_on_a_command_line_are_a_sentence_and_a_code(
    seeded: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...], command: click.Command
) -> None:
    monkeypatch.chdir(tmp_path)
    before = {file for file in tmp_path.rglob("*") if seeded.data not in file.parents}
    for line in lines(command, random.Random(" ".join(path))):
        done = CliRunner().invoke(lienworker, [*path, *line], env=seeded.environment(), input="n\n")
        database.close()
        problem = done.exception
        assert problem is None or isinstance(problem, SystemExit | LienworkerError), (line, problem)
        assert done.exit_code in {0, 1, 2, 3, 130}, (line, done.output)
        assert "Traceback" not in done.output
    after = {file for file in tmp_path.rglob("*") if seeded.data not in file.parents}
    made = {file for file in after - before if not file.is_relative_to(tmp_path)}
    assert not made


@pytest.mark.parametrize("name", [item.metadata["env"] for item in fields(Settings)])
def test_a_setting_of_any_value_is_used_or_refused_by_name(name: str) -> None:
    for value in VALUES:
        problem = refusal({"GATEWAY_TOKEN": "t", name: value})
        assert problem is None or problem.name in {name, "GATEWAY_TOKEN", "LIENWORKER_DISK_WARN_MB"}, (name, value)
        assert "\n" not in str(problem)
        assert len(str(problem)) < 500


def refusal(values: dict[str, str]) -> SettingsError | None:
    try:
        Settings.from_mapping(values)
    except SettingsError as problem:
        return problem
    return None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LIENWORKER_PROXY", "http://proxy.example:80800"),
        ("LIENWORKER_PROXY", "http://proxy.example:0"),
        ("LIENWORKER_PROXY", "socks5://"),
        ("LIENWORKER_PROXY", "http://me:geheim/wort@proxy.example:80"),
        ("LIENWORKER_PROXY", "http://:80"),
        ("GATEWAY_URL", "http://[::1"),
        ("GATEWAY_URL", "http://me:geheim@gateway.example:99999"),
        ("GATEWAY_URL", "http://gate way.example"),
        ("GATEWAY_URL", "http://gate\nway.example"),
        ("GATEWAY_URL", "http://gateway..example"),
        ("GATEWAY_URL", f"http://{'a' * 64}.example"),
        ("GATEWAY_TOKEN", "geheim\r\nX-Other: 1"),
        ("REDIS_URL", "redis://h:abc"),
        ("REDIS_URL", "redis:///0"),
        ("REDIS_URL", "unix://"),
        ("REDIS_URL", "unix://run/redis.sock"),
        ("LIENWORKER_USER_AGENT", "us\r\nX-Other: 1"),
        ("LIENWORKER_USER_AGENT", "us\x1b[2J"),
        ("LIENWORKER_WEB_HOST", "a..b"),
        ("LIENWORKER_WEB_HOST", "127.0.0.1 "),
        ("LIENWORKER_DATA_DIR", "~nosuchuser/x"),
        ("LIENWORKER_PLATFORMS", "~nosuchuser/x"),
    ],
)
def test_a_value_that_could_only_fail_later_is_refused_by_name(name: str, value: str) -> None:
    problem = refusal({"GATEWAY_TOKEN": "t", name: value})
    assert problem
    assert problem.name == name
    assert "geheim" not in str(problem)
    assert str(problem).isprintable()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LIENWORKER_PROXY", "http://me:p@ss%2Fword@proxy.example:8080"),
        ("LIENWORKER_PROXY", "socks5h://[::1]:1080"),
        ("GATEWAY_URL", "https://gateway.example/api"),
        ("GATEWAY_URL", "http://bücher.example"),
        ("REDIS_URL", "redis://:pw@h:6379/0?socket_timeout=5"),
        ("REDIS_URL", "unix:///run/a folder/redis.sock?db=1"),
        ("REDIS_URL", "unix://me:pw@/run/redis.sock"),
        ("REDIS_URL", "unix:///srv/\udcfc\x1b/redis.sock"),
        ("LIENWORKER_USER_AGENT", "us/1 (+https://us.example; Ä)"),
        ("LIENWORKER_WEB_HOST", "::1"),
        ("LIENWORKER_WEB_HOST", "0.0.0.0"),
    ],
)
def test_a_value_that_can_be_used_is(name: str, value: str) -> None:
    settings = Settings.from_mapping({"GATEWAY_TOKEN": "t", name: value})
    assert settings.to_environment()[name] == value


def test_a_settings_file_that_is_no_text_is_one_sentence(node: Node) -> None:
    (node.data.parent / ".env").write_bytes("STANDALONE=true # für immer\n".encode("latin-1"))
    done = node.cli("status")
    assert done.returncode == 2
    assert done.stderr == f"Error: .env: the one in {node.data.parent} is not UTF-8 text; save it as UTF-8.\n"


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that nobody can read, not even root")
def test_a_settings_file_that_cannot_be_read_is_one_sentence(node: Node) -> None:
    (node.data.parent / ".env").symlink_to("/proc/self/mem")
    done = node.cli("status")
    assert done.returncode == 2
    assert done.stderr.startswith(f"Error: .env: the one in {node.data.parent} cannot be read: ")
    assert len(done.stderr.splitlines()) == 1


def test_settings_that_pass_the_check_can_be_used(node: Node) -> None:
    """A value that only breaks later would break with a trace."""
    chance = random.Random(6)
    for item in fields(Settings):
        for value in chance.sample(VALUES, 8):
            if "\0" in value or "\udcff" in value or item.metadata["env"] == "LIENWORKER_DATA_DIR":
                continue
            environment = {**node.environment(), item.metadata["env"]: value}
            done = CliRunner().invoke(lienworker, ["status"], env=environment)
            database.close()
            assert done.exception is None or isinstance(done.exception, SystemExit | LienworkerError), (
                item.metadata["env"],
                value[:50],
                done.exception,
            )


@pytest.mark.parametrize("text", ["\x1b[2J\x1b[1;1H", "a\rb", "a\nb", "\x07", "\u202egnp.exe", "\x9b31m"])
def test_scraped_text_cannot_move_the_cursor(text: str) -> None:
    assert shown(text).isprintable()
