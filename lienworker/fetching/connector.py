"""Connections to sites: to guarded addresses only, kept open for the next page, read in bites that cost little."""

from __future__ import annotations

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.tracing import Trace

from lienworker.fetching.guard import Guard, GuardedResolver
from lienworker.fetching.turns import InTurn

MAX_CONNECTIONS = 200

# asyncio asks the socket for 256 KB at a time, and the C library maps and unmaps that much memory for each read:
# 25 page faults for a page of 50 KB, against 11 with this.
_BITE = 64 * 1024


class Connector(InTurn, aiohttp.TCPConnector):
    """How many requests a site gets at a time is decided elsewhere, so there is no limit per host."""

    def __init__(self, guard: Guard) -> None:
        super().__init__(
            resolver=GuardedResolver(guard),
            use_dns_cache=False,  # the guard has one, for all connectors
            limit=MAX_CONNECTIONS,
            limit_per_host=0,
        )

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        protocol = await super()._create_connection(req, traces, timeout)
        transport = protocol.transport
        # Other event loops and TLS have no such attribute, nor the habit.
        if transport is not None and hasattr(transport, "max_size"):
            transport.max_size = _BITE
        return protocol
