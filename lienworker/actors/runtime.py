"""What a process needs to do steps: settings, store, holder, fetcher, platforms. One a process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lienworker.fetching import Fetcher, FetchOptions
from lienworker.outbox.claims import Rules
from lienworker.outbox.leases import Holder
from lienworker.platforms import Registry, default_registry
from lienworker.settings import Settings
from lienworker.store.database import open_store
from lienworker.store.folder import DataFolder

#: Threads kept free for the relay and the heartbeat, so that they never wait for pages.
RESERVED_THREADS = 2


class Runtime:
    """The surroundings of the steps. `slots` is how many of them may run in this process at a time."""

    def __init__(self, settings: Settings, folder: DataFolder, holder: Holder, loop: asyncio.AbstractEventLoop) -> None:
        self.settings = settings
        self.folder = folder
        self.holder = holder
        self.loop = loop
        self.rules = rules_of(settings)
        self.registry: Registry = default_registry()
        self.stopping = threading.Event()
        self._places = threading.BoundedSemaphore(max(1, holder.slots))
        self._fetcher: Fetcher | None = None
        self._fetcher_lock = threading.Lock()

    @property
    def fetcher(self) -> Fetcher:
        """Made on the event loop when it is first needed."""
        with self._fetcher_lock:
            if self._fetcher is None:
                self._fetcher = asyncio.run_coroutine_threadsafe(_make_fetcher(self.settings), self.loop).result()
            return self._fetcher

    @contextmanager
    def place(self) -> Iterator[bool]:
        """True where there is room for one more step; a token that finds none is dropped, the relay sends another."""
        free = not self.stopping.is_set() and self._places.acquire(blocking=False)
        try:
            yield free
        finally:
            if free:
                self._places.release()

    def close(self) -> None:
        if self._fetcher is not None:
            asyncio.run_coroutine_threadsafe(self._fetcher.close(), self.loop).result(timeout=5)


@contextmanager
def running(
    settings: Settings,
    kind: str,
    slots: int,
    loop: asyncio.AbstractEventLoop,
    after_beat: Callable[[], None] = lambda: None,
) -> Iterator[Runtime]:
    """A runtime with its holder, for as long as the block lasts."""
    folder = open_store(settings.data_dir)
    with Holder(folder, kind, slots, after_beat) as holder:
        runtime = Runtime(settings, folder, holder, loop)
        try:
            yield runtime
        finally:
            runtime.close()


def rules_of(settings: Settings) -> Rules:
    return Rules(settings.host_delay, settings.host_concurrency)


async def _make_fetcher(settings: Settings) -> Fetcher:
    return Fetcher(
        FetchOptions(
            user_agent=settings.user_agent,
            connect_timeout=settings.connect_timeout,
            read_timeout=settings.read_timeout,
            total_timeout=settings.fetch_timeout,
            max_bytes=int(settings.max_page_mb * 1_000_000),
            max_redirects=10,
            obey_robots=settings.robots == "obey",
            allow_private=settings.allow_private_hosts,
        )
    )
