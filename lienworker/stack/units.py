"""systemd units for the stack, whole or in parts, and the steps that install or remove them."""

from __future__ import annotations

import os
import re
import subprocess  # systemctl and its kin, as argument lists  # nosec B404
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import jinja2

from lienworker.errors import OperatorError

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("lienworker.stack"),
    autoescape=False,  # units are no HTML  # noqa: S701 # nosec B701
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    keep_trailing_newline=True,
)
#: How the files that we write begin; a file without it is not ours.
_MARK = "# Made by `lienworker service"
_WHOLE = {"lienworker.service": ("the whole stack", "up")}
_PARTS = {
    "lienworker-workers.service": ("workers", "up --only workers"),
    "lienworker-schedule.service": ("schedule", "up --only schedule"),
    "lienworker-web.service": ("monitor", "web"),
}
_HAS_REDIS = re.compile(r"""^\s*REDIS_URL\s*=\s*["']?[^\s"']""", re.MULTILINE)
_SYSUSERS = 'u lienworker - "lienworker" /var/lib/lienworker\n'
_SETTINGS = "# Settings of the lienworker services, one NAME=value a line; docs/settings.md has them all.\n"
#: Where a hardened service has no access.
_HIDDEN = ("/home", "/root", "/tmp", "/var/tmp", "/run/user")  # only named  # noqa: S108 # nosec B108


@dataclass(frozen=True)
class Service:
    """Which units, for whom: `--user` or `--system`, all in one or in parts."""

    program: Path
    is_system: bool
    in_parts: bool
    root: Path = Path("/")

    @property
    def main_unit(self) -> str:
        return "lienworker.target" if self.in_parts else "lienworker.service"

    @property
    def unit_folder(self) -> Path:
        return self.root / "etc/systemd/system" if self.is_system else _config() / "systemd" / "user"

    @property
    def settings_file(self) -> Path:
        return (self.root / "etc" if self.is_system else _config()) / "lienworker" / "lienworker.env"

    @property
    def control(self) -> tuple[str, ...]:
        return ("systemctl",) if self.is_system else ("systemctl", "--user")

    @property
    def lacks_redis(self) -> bool:
        """Whether the units would end at once: parts need a Redis that all of them know."""
        if not self.in_parts or not self.settings_file.exists():
            return self.in_parts
        return not _HAS_REDIS.search(self.settings_file.read_text(encoding="utf-8", errors="replace"))

    def units(self) -> dict[str, str]:
        """Return the text of each unit by its name."""
        target = {"lienworker.target": self._rendered("lienworker.target")} if self.in_parts else {}
        services = _PARTS if self.in_parts else _WHOLE
        return target | {
            name: self._rendered("lienworker.service", what=what, arguments=arguments)
            for name, (what, arguments) in services.items()
        }

    def _rendered(self, template: str, **words: str) -> str:
        return _TEMPLATES.get_template(template).render(vars(self) | words)


@dataclass(frozen=True)
class Step:
    """One thing to do: a file to write or remove, or a command to run."""

    words: str
    path: Path | None = None
    text: str | None = None
    command: tuple[str, ...] = ()

    def do(self) -> None:
        if self.command:
            _run(self.command)
        elif self.path and self.text is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(self.text, encoding="utf-8")
            self.path.chmod(0o600 if self.path.suffix == ".env" else 0o644)
        elif self.path:
            self.path.unlink(missing_ok=True)


def install_steps(service: Service) -> list[Step]:
    """Return what an install does, in order. Refuse where it cannot work or would do harm."""
    _check(service)
    return [*_files(service), *_start_commands(service)]


def _files(service: Service) -> Iterator[Step]:
    if service.is_system:
        yield _write(service.root / "etc/sysusers.d/lienworker.conf", _SYSUSERS)
    for name, text in service.units().items():
        yield _write(service.unit_folder / name, text)
    if not service.settings_file.exists():
        yield _write(service.settings_file, _SETTINGS)


def _start_commands(service: Service) -> Iterator[Step]:
    if service.root != Path("/"):  # an image of a system: nothing runs there yet
        yield _call("systemctl", f"--root={service.root}", "enable", *service.units())
        return
    if service.is_system:
        yield _call("systemd-sysusers", "lienworker.conf")
    yield _call(*service.control, "daemon-reload")
    yield _call(*service.control, "enable", *(() if service.lacks_redis else ("--now",)), *service.units())


def uninstall_steps(service: Service) -> list[Step]:
    """Return what removes all of our units that exist. Data, settings and user stay."""
    names = [name for name in ("lienworker.target", *_PARTS, *_WHOLE) if _is_ours(service.unit_folder / name)]
    if not names:
        raise OperatorError(f"There are no units of ours in {service.unit_folder}.")
    removals = [Step(f"remove {service.unit_folder / name}", service.unit_folder / name) for name in names]
    if service.root != Path("/"):
        return [_call("systemctl", f"--root={service.root}", "disable", *names), *removals]
    stop, look = _call(*service.control, "disable", "--now", *names), _call(*service.control, "daemon-reload")
    return [stop, *removals, look]


def _check(service: Service) -> None:
    if service.is_system and str(service.program).startswith(_HIDDEN):
        raise OperatorError(
            f"{service.program} is where a hardened service cannot look; install lienworker under /opt or /usr/local, "
            "name another one with --program, or use --user."
        )
    other = replace(service, in_parts=not service.in_parts).main_unit
    if _is_ours(service.unit_folder / other):
        raise OperatorError(f"{other} is installed, and two stacks cannot share a folder; `service uninstall` first.")
    for name in service.units():
        path = service.unit_folder / name
        if path.exists() and not _is_ours(path):
            raise OperatorError(f"{path} exists and is not ours; move it elsewhere first.")


def _is_ours(path: Path) -> bool:
    return path.exists() and path.read_text(encoding="utf-8", errors="replace").startswith(_MARK)


def _write(path: Path, text: str) -> Step:
    return Step(f"write {path}", path, text)


def _call(*command: str) -> Step:
    return Step(f"run {' '.join(command)}", command=command)


def _run(command: tuple[str, ...]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True)  # ours  # nosec B603
    except FileNotFoundError:
        raise OperatorError(f"{command[0]} is not installed: does this machine have systemd?") from None
    if done.returncode:
        raise OperatorError(f"`{' '.join(command)}` failed: {done.stderr.strip() or done.stdout.strip()}")


def _config() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
