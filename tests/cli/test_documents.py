"""Documents are tests: what they say is what the program does."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import click
import pytest

from lienworker.cli import cli
from lienworker.cli.reference import commands_page, settings_page
from lienworker.settings import Settings

ROOT = Path(__file__).parents[2]


def commands(group: click.Group = cli, name: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [name]
    for member, command in group.commands.items():
        if isinstance(command, click.Group):
            found += commands(command, (*name, member))
        else:
            found.append((*name, member))
    return found


def test_every_setting_is_documented_as_it_is() -> None:
    assert (ROOT / "docs" / "settings.md").read_text() == settings_page(), "run `make docs`"


def test_every_command_is_documented_as_it_is() -> None:
    assert (ROOT / "docs" / "commands.md").read_text() == commands_page(), "run `make docs`"


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
    assert len(done.output.splitlines()) <= (32 if name else 44)  # the list of all commands is a longer screen
    assert "Example:" in done.output or "First steps:" in done.output


def test_every_make_target_explains_itself() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = {target for line in re.findall(r"^\.PHONY: (.*)$", text, re.M) for target in line.split()}
    explained = set(re.findall(r"^([a-z-]+):.*## ", text, re.M))
    assert targets == explained


def test_links_between_documents_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *ROOT.glob("docs/*.md"), ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
