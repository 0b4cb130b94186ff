"""What a process needs to do steps: settings, store, holder, fetcher, platforms. One a process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lienworker.actors.pacer import HostPacer
from lienworker.actors.watchdog import Watchdog
from lienworker.errors import SettingsError
from lienworker.fetching import Fetcher, FetchOptions
from lienworker.fetching.turns import Pacer
from lienworker.gateway.client import GatewayClient
from lienworker.maintenance.hosts import respell_hosts
from lienworker.maintenance.stale_files import remove_leftovers
from lienworker.outbox.claims import Rules
from lienworker.outbox.deliveries import configure
from lienworker.outbox.leases import Holder, anybody_alive
from lienworker.platforms import Registry, registry_with
from lienworker.settings import Settings
from lienworker.store.database import open_store
from lienworker.store.folder import DataFolder
from lienworker.store.pending import heal
from lienworker.store.rollups import add_counts

#: Threads kept free for relay, polling, heartbeat and uploads, so that none of them ever waits for pages.
RESERVED_THREADS = 4
#: Reports of tasks that ended without a result, under way at a time.
MOST_REPORTS = 16
#: How long a step may compute before others go ahead beside it, s; longer is a page that a parser hangs in.
_COURTESY = 0.2


class CallBound:
    """How many calls of an endpoint are under way at a time: one more after so many went well, half after trouble.

    Two at least, where that is allowed: one of them may hang.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._went_well = 0
        self.now = min(4, most)

    def note(self, n: int, *, is_well: bool) -> None:
        self._went_well = self._went_well + n if is_well else 0
        if not is_well:
            self.now = max(min(2, self._most), self.now // 2)
        while self._went_well >= self.now:
            self._went_well -= self.now
            self.now = min(self._most, self.now + 1)


class ResultBound:
    """How many results go in one call: a quarter after trouble, twice as many after a full one that went well.

    So a result that brings the Gateway down is alone in the end, and its neighbours are through.
    """

    #: With the Gateway's stop after eleven failures, larger batches are harder to take apart.
    MOST = 100

    def __init__(self) -> None:
        self.now = self.MOST

    def note(self, size: int, *, is_well: bool) -> None:
        if not is_well:
            self.now = max(1, min(size, self.now) // 4)
        elif size >= self.now:
            self.now = min(self.MOST, 2 * self.now)


class Runtime:
    """The surroundings of the steps. `slots` is how many of them may run in this process at a time."""

    def __init__(self, settings: Settings, folder: DataFolder, holder: Holder, loop: asyncio.AbstractEventLoop) -> None:
        self.settings = settings
        self.folder = folder
        self.holder = holder
        self.loop = loop
        self.rules = rules_of(settings)
        self.registry: Registry = registry_with(settings.platforms_folder)
        self.stopping = threading.Event()
        self._computing = threading.Lock()
        self._computing_since = 0.0
        self._places = threading.BoundedSemaphore(max(1, holder.slots))
        self.uploading = threading.Lock()
        self.raw_bound = CallBound(settings.upload_concurrency)
        self.report_bound = CallBound(MOST_REPORTS)
        self.result_bound = ResultBound()
        self._gateway: GatewayClient | None = None
        self._pacer = HostPacer(settings.host_delay)
        self._fetcher: Fetcher | None = None
        self._making = threading.Lock()
        self.watchdog = Watchdog()
        self.one_heavy = threading.Lock()
        """Held while a heavy page is parsed in the child and its result stored."""

    @property
    def fetcher(self) -> Fetcher:
        """Made on the event loop when it is first needed."""
        with self._making:
            if self._fetcher is None:
                made = make_fetcher(self.settings, self._pacer)
                self._fetcher = asyncio.run_coroutine_threadsafe(made, self.loop).result()
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

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """One step of this process computes at a time, while the others wait for sites and disks.

        Threads that compute side by side get nothing more done: they fight for the interpreter's lock, and most of all
        in the middle of transactions. A courtesy, not a rule: a page that a parser hangs in holds up nobody for long.
        """
        patience = max(0.0, self._computing_since + _COURTESY - time.monotonic())
        mine = self._computing.acquire(timeout=patience)
        if mine:
            self._computing_since = time.monotonic()
        try:
            yield
        finally:
            if mine:
                self._computing.release()

    def open_gateway(self) -> None:
        """Makes the way to the Gateway; in standalone mode nobody does but a person who replays."""
        with self._making:
            if self._gateway is None:
                made = _make_gateway(self.settings, self.folder)
                self._gateway = asyncio.run_coroutine_threadsafe(made, self.loop).result()

    @property
    def gateway_on_loop(self) -> GatewayClient:
        """For coroutines; `open_gateway` comes first."""
        assert self._gateway is not None
        return self._gateway

    def note_calls(self) -> None:
        """What calls to the Gateway came to, into the figures."""
        if self._gateway is not None and (calls := self._gateway.calls.take()):
            add_counts("gateway", calls)

    def close(self) -> None:
        self.note_calls()
        for opened in (self._fetcher, self._gateway):
            if opened is not None:
                asyncio.run_coroutine_threadsafe(opened.close(), self.loop).result(timeout=5)
        self._pacer.close()


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
    configure(settings.mode)
    if kind == "worker":
        heal(folder, lambda: anybody_alive(folder))
        remove_leftovers(folder)
    runtime: Runtime | None = None

    def beat() -> None:
        after_beat()
        if runtime is not None:
            runtime.note_calls()

    with Holder(folder, kind, slots, beat) as holder:
        if kind == "worker":
            respell_hosts()
        runtime = Runtime(settings, folder, holder, loop)
        try:
            yield runtime
        finally:
            runtime.close()


def rules_of(settings: Settings) -> Rules:
    return Rules(settings.host_delay, settings.host_concurrency)


async def _make_gateway(settings: Settings, folder: DataFolder) -> GatewayClient:
    if not settings.gateway_url or not settings.gateway_token:
        raise SettingsError("GATEWAY_URL", "is not set (with GATEWAY_TOKEN): there is no Gateway to speak to.")
    return GatewayClient(settings.gateway_url, settings.gateway_token, settings.worker_id or folder.worker_id())


async def make_fetcher(settings: Settings, pacer: Pacer | None = None) -> Fetcher:
    """On the event loop that will use it."""
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
        ),
        pacer=pacer,
    )
