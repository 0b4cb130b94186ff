"""What one process works with, made once: each step gets from here what it needs, and no step gets all of it."""

from __future__ import annotations

import asyncio
import logging
import shlex
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lienworker.data_folder import DataFolder
from lienworker.db.database import fact, open_store, set_fact, write
from lienworker.errors import SettingsError
from lienworker.fetching import Fetcher, FetchOptions
from lienworker.fetching.turns import Pacer
from lienworker.hubs.gateway.client import GatewayClient
from lienworker.large_blocks import return_large_blocks
from lienworker.outbox.backoff import RetryPolicy
from lienworker.outbox.claims import Rules
from lienworker.outbox.leases import WorkerLease, anybody_alive
from lienworker.outbox.outcomes import configure
from lienworker.outbox.pacing import respell_hosts
from lienworker.platforms import Registry, registry_with
from lienworker.settings import Settings
from lienworker.steps.collect import CollectContext
from lienworker.steps.fetch import FetchContext
from lienworker.steps.flows import FlowWalker
from lienworker.steps.in_flight import OnLoop
from lienworker.steps.lane import LaneLease, Slots
from lienworker.steps.pacer import HostPacer
from lienworker.steps.relay import RelayContext
from lienworker.steps.scrape import ScrapeContext
from lienworker.steps.upload.context import MOST_REPORTS, Bounds, CallBound, ResultBound, UploadContext
from lienworker.steps.watchdog import Watchdog
from lienworker.store.counts import add_counts
from lienworker.store.pending import heal, show_undelivered
from lienworker.store.stale_files import remove_stale_files

#: The name under which this folder's worker was at the Gateway last.
_WORKER_ID = "gateway_worker_id"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Runtime:
    """What lives as long as the process. Actors and commands take from it; it is not passed on to steps."""

    settings: Settings
    folder: DataFolder
    holder: WorkerLease
    registry: Registry
    stopping: threading.Event
    slots: Slots
    watchdog: Watchdog
    gateway: OnLoop[GatewayClient]
    fetcher: OnLoop[Fetcher]
    walker: FlowWalker
    bounds: Bounds
    #: Held while a poll for work is under way, until its reply is stored.
    polling: threading.Lock
    #: Held by the one thread of this process that uploads.
    one_uploader: threading.Lock
    #: Held by the one thread of this process that has a heavy page parsed.
    one_heavy: threading.Lock

    @property
    def rules(self) -> Rules:
        return Rules(self.settings.host_delay, self.settings.host_concurrency)

    @contextmanager
    def lease_lane(self, message_id: str | None = None) -> Iterator[LaneLease | None]:
        """Lease rows of the fetch or scrape lane for one message; None where this process has no free slot."""
        with self.slots.slot() as free:
            if not free:
                yield None
                return
            with self.holder.lease() as token, self.holder.room_for_quarantined() as quarantined:
                yield self.lane(token, quarantined=quarantined, message_id=message_id)

    def lane(self, token: str, *, quarantined: bool = False, message_id: str | None = None) -> LaneLease:
        return LaneLease(
            holder=self.holder,
            token=token,
            rules=self.rules,
            batch=self.settings.batch,
            stopping=self.stopping,
            quarantined=quarantined,
            message_id=message_id,
        )

    @property
    def fetch(self) -> FetchContext:
        return FetchContext(
            folder=self.folder,
            fetcher=self.fetcher,
            proxy=self.settings.proxy,
            registry=self.registry,
            retries=self.retries,
            slots=self.slots,
            scrape=self.scrape,
            walker=self.walker,
        )

    @property
    def scrape(self) -> ScrapeContext:
        return ScrapeContext(
            folder=self.folder,
            registry=self.registry,
            retries=self.retries,
            watchdog=self.watchdog,
            shows_results=self.settings.mode != "ondemand",
            one_heavy=self.one_heavy,
        )

    @property
    def retries(self) -> RetryPolicy:
        return RetryPolicy(attempts=self.settings.fetch_attempts, first_delay=self.settings.retry_delay)

    @property
    def upload(self) -> UploadContext:
        return UploadContext(
            folder=self.folder,
            holder=self.holder,
            gateway=self.gateway,
            stopping=self.stopping,
            bounds=self.bounds,
            one_uploader=self.one_uploader,
            concurrency=self.settings.upload_concurrency,
            first_delay=self.settings.gateway_retry,
        )

    @property
    def collect(self) -> CollectContext:
        return CollectContext(
            holder=self.holder,
            gateway=self.gateway,
            registry=self.registry,
            stopping=self.stopping,
            polling=self.polling,
            max_waiting=self.settings.max_waiting,
            task_expiry=self.settings.task_expiry,
            first_delay=self.settings.gateway_retry,
        )

    @property
    def relay(self) -> RelayContext:
        return RelayContext(
            holder=self.holder,
            rules=self.rules,
            batch=self.settings.batch,
            is_ondemand=self.settings.mode == "ondemand",
            stopping=self.stopping,
        )


@contextmanager
def running(
    settings: Settings,
    kind: str,
    slots: int,
    loop: asyncio.AbstractEventLoop,
    after_beat: Callable[[], None] = lambda: None,
) -> Iterator[Runtime]:
    """Open the store and hold leases for the block."""
    return_large_blocks()
    folder = open_store(settings.data_dir)
    configure(settings.mode)
    if kind == "worker":
        heal(folder, lambda: anybody_alive(folder))
        remove_stale_files(folder)
        if settings.mode == "ondemand":
            warn_of_new_worker_id(_worker_id(settings, folder))
    pacer, walker = HostPacer(settings.host_delay), FlowWalker()
    fetcher = OnLoop(loop, lambda: make_fetcher(settings, pacer))
    gateway = OnLoop(loop, lambda: _make_gateway(settings, folder))

    def beat() -> None:
        after_beat()
        record_calls(gateway)

    with WorkerLease(folder, kind, slots, beat) as holder:
        if kind == "worker":
            respell_hosts()
        try:
            yield _runtime(settings, folder, holder, gateway, fetcher, walker)
        finally:
            record_calls(gateway)
            fetcher.close()
            gateway.close()
            walker.close()
            pacer.close()
            if kind == "worker" and settings.mode == "ondemand":
                show_undelivered(folder, "", is_last=True)


def _runtime(
    settings: Settings,
    folder: DataFolder,
    holder: WorkerLease,
    gateway: OnLoop[GatewayClient],
    fetcher: OnLoop[Fetcher],
    walker: FlowWalker,
) -> Runtime:
    stopping = threading.Event()
    return Runtime(
        settings=settings,
        folder=folder,
        holder=holder,
        registry=registry_with(settings.platforms_folder),
        stopping=stopping,
        slots=Slots(holder.slots, stopping),
        watchdog=Watchdog(),
        gateway=gateway,
        fetcher=fetcher,
        walker=walker,
        bounds=Bounds(raw=CallBound(settings.upload_concurrency), result=ResultBound(), report=CallBound(MOST_REPORTS)),
        polling=threading.Lock(),
        one_uploader=threading.Lock(),
        one_heavy=threading.Lock(),
    )


def record_calls(gateway: OnLoop[GatewayClient]) -> None:
    """Add the outcomes of calls to the Gateway to the figures."""
    if gateway.made is not None and (calls := gateway.made.calls.take()):
        add_counts("gateway", calls)


async def _make_gateway(settings: Settings, folder: DataFolder) -> GatewayClient:
    if not settings.gateway_url or not settings.gateway_token:
        raise SettingsError("GATEWAY_URL", "is not set (with GATEWAY_TOKEN): there is no Gateway to talk to.")
    return GatewayClient(settings.gateway_url, settings.gateway_token, _worker_id(settings, folder))


def _worker_id(settings: Settings, folder: DataFolder) -> str:
    return settings.worker_id or folder.worker_id()


def warn_of_new_worker_id(worker_id: str) -> None:
    """Say once, with the remedy, that this worker has another name than before: the Gateway books tasks by name."""
    if fact(_WORKER_ID) == worker_id:
        return
    with write("worker_id"):
        known = fact(_WORKER_ID)
        set_fact(_WORKER_ID, worker_id)
    if known and known != worker_id:
        keys = " ".join(shlex.quote(f"processing:{name}") for name in (known, worker_id))
        logger.warning(
            "WORKER_ID was %s and is %s now: tasks that are booked at the Gateway under the old one cannot be closed."
            " Set it back, or have the bookings moved in the Gateway's Redis: redis-cli RENAMENX %s"
            " (docs/operations.md, Tasks stay booked at the Gateway)",
            known,
            worker_id,
            keys,
            extra={"action": "worker_id"},
        )


async def make_fetcher(settings: Settings, pacer: Pacer | None = None) -> Fetcher:
    """Make a fetcher, on the event loop that will use it."""
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
