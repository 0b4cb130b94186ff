"""systemd units: understood by systemd, as locked up as they can be, and installed only after saying so."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lienworker.cli import cli
from lienworker.errors import OperatorError
from lienworker.stack.units import Service, Step, install_steps

HAS_SYSTEMD = shutil.which("systemd-analyze") is not None
needs_systemd = pytest.mark.skipif(not HAS_SYSTEMD, reason="there is no systemd here: the units were not verified")
PROGRAM = Path("/usr/bin/true")


def lienworker(*arguments: str, answer: str = "") -> Result:
    return CliRunner().invoke(cli, ["service", *arguments], input=answer)


def units(folder: Path, *, is_system: bool, in_parts: bool) -> list[Path]:
    made = []
    for name, text in Service(PROGRAM, is_system, in_parts).units().items():
        # Whether the user is there is the installer's business, not the unit's.
        (folder / name).write_text(text.replace("=lienworker\nGroup=lienworker", "=daemon\nGroup=daemon"))
        made.append(folder / name)
    return made


@needs_systemd
@pytest.mark.parametrize("is_system", [True, False])
@pytest.mark.parametrize("in_parts", [True, False])
def test_systemd_understands_every_line(tmp_path: Path, is_system: bool, in_parts: bool) -> None:
    scope = "--system" if is_system else "--user"
    files = [str(path) for path in units(tmp_path, is_system=is_system, in_parts=in_parts)]
    place = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "SYSTEMD_UNIT_PATH": f"{tmp_path}:"}
    done = subprocess.run(
        ["systemd-analyze", scope, "verify", "--man=no", *files], capture_output=True, text=True, env=place
    )
    about_ours = [line for line in done.stderr.splitlines() if "lienworker" in line]
    assert not about_ours
    assert done.returncode == 0, done.stderr


@needs_systemd
@pytest.mark.parametrize("in_parts", [True, False])
def test_systemd_finds_little_exposed(tmp_path: Path, in_parts: bool) -> None:
    for path in units(tmp_path, is_system=True, in_parts=in_parts):
        if path.suffix == ".service":
            command = ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", str(path)]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("in_parts", [True, False])
def test_only_what_does_not_pass_by_itself_keeps_a_unit_down(in_parts: bool) -> None:
    """A wrong setting and a damaged database; not a full disk, a bug or a repair that is at work on the folder."""
    services = {name: text for name, text in Service(PROGRAM, True, in_parts).units().items() if "target" not in name}
    for text in services.values():
        assert "\nRestart=always\n" in text
        assert "\nRestartPreventExitStatus=2 4\n" in text


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `systemctl` that only writes down what it was told."""
    programs, log = tmp_path / "bin", tmp_path / "calls"
    programs.mkdir()
    (programs / "systemctl").write_text(f'#!/bin/sh\necho "$@" >> {log}\n')
    (programs / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return log


def test_it_says_what_it_will_do_and_asks(recorded: Path, tmp_path: Path) -> None:
    done = lienworker("install", "--user", answer="n\n")
    assert done.exit_code == 1
    assert "write" in done.output
    assert "run systemctl --user enable --now lienworker.service" in done.output
    assert not recorded.exists()
    assert not (tmp_path / "config").exists()


def test_a_dry_run_shows_every_file_and_touches_nothing(recorded: Path, tmp_path: Path) -> None:
    done = lienworker("install", "--user", "--parts", "--dry-run")
    assert done.exit_code == 0
    for part in ("workers", "schedule", "web"):
        assert f"lienworker-{part}.service" in done.output
    assert "NoNewPrivileges=yes" in done.output
    assert not (tmp_path / "config").exists()
    assert not recorded.exists()


def test_for_one_user_installed_and_removed_again(recorded: Path, tmp_path: Path) -> None:
    unit = tmp_path / "config" / "systemd" / "user" / "lienworker.service"
    settings = tmp_path / "config" / "lienworker" / "lienworker.env"
    assert lienworker("install", "--user", "--yes", "--program", "/opt/x/lienworker").exit_code == 0
    assert "ExecStart=/opt/x/lienworker up\n" in unit.read_text()
    settings.write_text("STANDALONE=true\n")
    assert lienworker("install", "--user", "--yes").exit_code == 0, "installing again is fine"
    assert settings.read_text() == "STANDALONE=true\n"
    assert lienworker("uninstall", "--user", "--yes").exit_code == 0
    assert not unit.exists()
    assert settings.exists()
    calls = recorded.read_text().splitlines()
    assert calls[:2] == ["--user daemon-reload", "--user enable --now lienworker.service"]
    assert calls[-2:] == ["--user disable --now lienworker.service", "--user daemon-reload"]


def test_parts_without_their_redis_are_installed_but_not_started(recorded: Path, tmp_path: Path) -> None:
    settings = tmp_path / "config" / "lienworker" / "lienworker.env"
    done = lienworker("install", "--user", "--parts", "--yes")
    assert "not started: REDIS_URL is missing" in done.output
    assert f"Put it into {settings}; then `systemctl --user start lienworker.target`." in done.output
    settings.write_text("# REDIS_URL=redis://h\nREDIS_URL=\n")
    lienworker("install", "--user", "--parts", "--yes")
    assert "--now" not in recorded.read_text()

    settings.write_text("STANDALONE=true\nREDIS_URL=redis://127.0.0.1:6379/0\n")
    done = lienworker("install", "--user", "--parts", "--yes")
    assert "--user enable --now lienworker.target" in recorded.read_text()
    assert done.output.endswith("then `systemctl --user restart lienworker.target`.\n")


@needs_systemd
def test_into_an_image_for_the_machine(tmp_path: Path) -> None:
    where = ["--system", "--root", str(tmp_path), "--yes"]
    done = lienworker("install", "--program", "/opt/lienworker/bin/lienworker", *where)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "etc/systemd/system/multi-user.target.wants/lienworker.service").is_symlink()
    assert "u lienworker" in (tmp_path / "etc/sysusers.d/lienworker.conf").read_text()
    assert (tmp_path / "etc/lienworker/lienworker.env").stat().st_mode & 0o077 == 0
    assert lienworker("uninstall", *where).exit_code == 0
    assert not list((tmp_path / "etc/systemd/system").rglob("lienworker*"))


def test_a_program_that_the_service_could_not_see_is_refused() -> None:
    with pytest.raises(OperatorError, match="where a hardened service cannot look"):
        install_steps(Service(Path("/home/ada/.local/bin/lienworker"), is_system=True, in_parts=False))


def test_somebody_elses_unit_is_left_alone(recorded: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "config" / "systemd" / "user" / "lienworker.service"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("[Service]\nExecStart=/bin/theirs\n")
    done = lienworker("install", "--user", "--yes")
    assert isinstance(done.exception, OperatorError)
    assert "not ours" in str(done.exception)
    assert theirs.read_text() == "[Service]\nExecStart=/bin/theirs\n"


def test_the_whole_and_its_parts_are_not_installed_together(recorded: Path) -> None:
    assert lienworker("install", "--user", "--yes").exit_code == 0
    assert "two stacks" in str(lienworker("install", "--user", "--parts", "--yes").exception)


def test_a_machine_without_systemd_is_told_so() -> None:
    with pytest.raises(OperatorError, match="does this machine have systemd"):
        Step("run it", command=("no-such-systemctl",)).do()
