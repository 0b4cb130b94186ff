"""Running the reference Gateway: in a thread for tests, or in the foreground for `lienworker gateway serve`."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

from lienworker.errors import InputError, OperatorError
from lienworker.testing.gateway.server import make_server
from lienworker.testing.gateway.state import GatewayState, Settings

LOOPBACK = "127.0.0.1"
_PATIENCE = 60.0

T = TypeVar("T")


class _Listener:
    """One listening socket and the connections behind it; stopping drops both, as a crash does."""

    def __init__(self, state: GatewayState, sock: socket.socket) -> None:
        self._state = state
        self._sock = sock

    async def start(self) -> None:
        self._runner = web.ServerRunner(make_server(self._state), shutdown_timeout=0.01)
        await self._runner.setup()
        await web.SockSite(self._runner, self._sock, backlog=1024).start()

    async def stop(self) -> None:
        server = self._runner.server
        for connection in server.connections if server else []:
            if connection.transport is not None:
                connection.transport.abort()
        await self._runner.cleanup()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((host, port))
    return sock


class ReferenceGateway:
    """A reference Gateway in a thread of its own. `state` takes the commands and answers the questions."""

    def __init__(self, state: GatewayState) -> None:
        self.state = state
        self.token = state.token
        # Bound but not listening: it keeps the port ours while the Gateway is stopped, and refuses connections.
        self._holder = _bound(LOOPBACK, 0)
        self.port: int = self._holder.getsockname()[1]
        self.url = f"http://{LOOPBACK}:{self.port}"
        self._listener: _Listener | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="reference-gateway", daemon=True)
        self._thread.start()

    # The commands of the state, so that a test needs one name only.

    def enqueue(self, *tasks: Mapping[str, Any]) -> list[str]:
        return self.state.enqueue(*tasks)

    def fault(self, kind: str, **options: Any) -> int:
        return self.state.fault(kind, **options)

    def clear_faults(self, fault_id: int | None = None) -> None:
        self.state.clear_faults(fault_id)

    def command(self, *commands: Any, worker_id: str | None = None) -> None:
        self.state.command(*commands, worker_id=worker_id)

    def configure(self, **changes: Any) -> None:
        self.state.configure(**changes)

    def start_listening(self) -> None:
        """Listen on the same port as before."""
        if self._listener is None:
            listener = _Listener(self.state, _bound(LOOPBACK, self.port))
            self._run(listener.start())
            self._listener = listener

    def stop_listening(self) -> None:
        """Stop for real: open connections break, new ones are refused."""
        if self._listener is not None:
            self._run(self._listener.stop())
            self._listener = None

    def close(self) -> None:
        self.stop_listening()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)
        self._loop.close()
        self._holder.close()

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_PATIENCE)


@contextmanager
def reference_gateway(  # the token is for a Gateway that exists for a test only  # nosec B107
    token: str = "reference-token",  # noqa: S107
    *,
    raw_folder: Path | None = None,
    settings: Settings | None = None,
    clock: Callable[[], float] | None = None,
    listening: bool = True,
) -> Iterator[ReferenceGateway]:
    """Run a Gateway on a free port of 127.0.0.1 for as long as the block lasts."""
    options = {} if clock is None else {"clock": clock}
    gateway = ReferenceGateway(GatewayState(token, raw_folder=raw_folder, settings=settings, **options))
    try:
        if listening:
            gateway.start_listening()
        yield gateway
    finally:
        gateway.close()


def read_tasks(path: Path) -> list[Mapping[str, Any]]:
    """Read tasks from a file: one JSON object a line, or one JSON list. Raises InputError."""
    try:
        text = path.read_text("utf-8")
        tasks = json.loads(text) if text.lstrip().startswith("[") else [json.loads(row) for row in _rows(text)]
    except (OSError, ValueError) as problem:
        raise InputError(f"{path}: {problem}") from None
    if not all(isinstance(task, dict) for task in tasks):
        raise InputError(f"{path}: a task must be a JSON object")
    return list(tasks)


def _rows(text: str) -> list[str]:
    return [row for row in text.splitlines() if row.strip()]


def serve(
    host: str,
    port: int,
    token: str,
    data_folder: Path | None = None,
    tasks: Iterable[Mapping[str, Any]] = (),
    *,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Run in the foreground until interrupted. `on_ready` gets the address once it listens."""
    state = GatewayState(token, raw_folder=data_folder / "raw" if data_folder else None)
    state.enqueue(*tasks)
    try:
        sock = _bound(host, port)
    except OSError as problem:
        raise OperatorError(f"Cannot listen on {host}:{port}: {problem.strerror}.") from None
    shown = f"[{host}]" if ":" in host else host
    asyncio.run(_serve(state, sock, f"http://{shown}:{sock.getsockname()[1]}", on_ready))


async def _serve(state: GatewayState, sock: socket.socket, url: str, on_ready: Callable[[str], None] | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, ValueError, RuntimeError):  # not in the main thread: the caller stops us
            loop.add_signal_handler(number, stop.set)
    listener = _Listener(state, sock)
    await listener.start()
    try:
        if on_ready is not None:
            on_ready(url)
        await stop.wait()
    finally:
        await listener.stop()
