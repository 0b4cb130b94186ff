"""Documents are tests: what they say is what the program does."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import click
import pytest

from lienworker.cli import cli
from lienworker.settings import Settings
from tests.docs.blocks import blocks, documents

#: What fenced blocks may be.
KINDS = {"sh", "text", "python", "toml", "yaml", "json", "ini", "html", "sql", "{toctree}", "{eval-rst}"}
ROOT = Path(__file__).parents[2]


def commands(group: click.Group = cli, name: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [name]
    for member, command in group.commands.items():
        if isinstance(command, click.Group):
            found += commands(command, (*name, member))
        else:
            found.append((*name, member))
    return found


@pytest.mark.parametrize("page", ["settings", "platforms"])
def test_every_setting_and_every_platform_is_documented_as_it_is(page: str) -> None:
    made = subprocess.run([sys.executable, ROOT / "docs" / f"{page}_page.py"], capture_output=True, check=True)
    assert (ROOT / "docs" / f"{page}.md").read_bytes() == made.stdout, "run `make docs`"


def test_every_command_is_documented_with_all_of_its_options(tmp_path: Path) -> None:
    """docs/commands.md is made from the commands when the site is built; here it is built alone."""
    alone = ["-D", "root_doc=commands", "-D", "include_patterns=commands.md"]
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "text", *alone, ROOT / "docs", tmp_path]
    subprocess.run(build, check=True, timeout=120)
    _, *parts = (tmp_path / "commands.txt").read_text().split("-[ Usage ]-")
    told = {part.partition("[OPTIONS]")[0].strip(): part for part in parts}
    assert told.keys() == {" ".join(("lienworker", *name)) for name in commands()}
    for name, part in told.items():
        options = [option for option in command_of(name.split()[1:])[0].params if isinstance(option, click.Option)]
        assert not [
            flag for option in options for flag in option.opts if not re.search(rf"^(.*, )?{flag}\b", part, re.M)
        ]


def test_every_variable_in_env_example_is_a_setting() -> None:
    known = {item.metadata["env"] for item in fields(Settings)}
    named = set(re.findall(r"^# ?([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.M))
    assert named
    assert named <= known


@pytest.mark.parametrize("name", commands(), ids=" ".join)
def test_every_help_fits_a_screen_and_carries_an_example(name: tuple[str, ...]) -> None:
    from click.testing import CliRunner

    done = CliRunner().invoke(cli, [*name, "--help"], terminal_width=80)
    assert done.exit_code == 0
    assert len(done.output.splitlines()) <= (32 if name else 48)  # the list of all commands is a longer screen
    assert "Example:" in done.output or "First steps:" in done.output


def test_every_make_target_explains_itself() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = {target for line in re.findall(r"^\.PHONY: (.*)$", text, re.M) for target in line.split()}
    explained = set(re.findall(r"^([a-z-]+):.*## ", text, re.M))
    assert targets == explained


def test_no_block_of_commands_is_forgotten() -> None:
    """Blocks in `sh` are run by tests/docs; one that cannot be says why: `<!-- not run: the reason -->` before it."""
    for page in documents():
        for block in blocks(page):
            where = f"{block.page}:{block.line}"
            assert block.kind in KINDS, f"{where}: say what the block is: {', '.join(sorted(KINDS))}"
            if block.kind != "sh":
                assert not re.search(r"^(lienworker|make|docker|sudo) ", block.text, re.M), f"{where}: mark it as sh"
            if block.why_not is not None:
                assert len(block.why_not.split()) >= 5, f"{where}: give the reason why it is not run"


def test_every_command_that_a_text_names_is_there() -> None:
    for page in [*documents(), ROOT / "CHANGELOG.md"]:
        for words in re.findall(r"`lienworker ([a-z][^`]*)`", page.read_text()):
            assert is_known(words.split()), f"{page.name}: lienworker {words}"


def test_a_command_that_is_not_there_would_be_noticed() -> None:
    assert is_known(["run", "parcels.csv", "--strict"])
    assert not is_known(["rum"])
    assert not is_known(["run", "--nonsense"])
    assert not is_known(["outbox", "reply"])


def is_known(words: list[str]) -> bool:
    """Whether the command is there, and every option that is named with it."""
    command, words = command_of(words)
    if isinstance(command, click.Group) and words:
        return words[0].isupper()
    known = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)} | {"--help"}
    return all(word.partition("=")[0].rstrip(",") in known for word in words if word.startswith("-") and word != "-")


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command that the words begin with, and the words behind it."""
    command: click.Command = cli
    while words and isinstance(command, click.Group) and words[0].rstrip(",:") in command.commands:
        command, words = command.commands[words[0].rstrip(",:")], words[1:]
    return command, words


def test_links_between_documents_lead_somewhere() -> None:
    for page in [*documents(), ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
