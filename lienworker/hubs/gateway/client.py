"""The worker's side of the Gateway: one method a route.

Every method returns an outcome and never raises for what the network or the Gateway can do. The token is in no
message, no repr and no log, not even where the other side echoes it.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, TypeVar

import aiohttp
from yarl import URL

from lienworker.errors import OperatorError
from lienworker.failpoints import failpoint
from lienworker.hubs.gateway import wire
from lienworker.hubs.gateway.outcomes import Accepted, Kind, Outcome, Refused, Unavailable
from lienworker.hubs.gateway.sanitize import clean_text, results_body
from lienworker.hubs.gateway.transport import (
    ERROR_BODY,
    Calls,
    Exchange,
    Transport,
    UploadForm,
    counted,
    judge_status,
    log_call,
    said,
    upload_form,
)
from lienworker.hubs.gateway.wire import decode, scrubber
from lienworker.hubs.gateway.work import RETRY_WITHOUT_TASKS, WorkReply, is_large, parse_work, salvage_work

MEBIBYTE = 1024 * 1024
LARGEST_CAPACITY = 100
#: Bytes of a reply, by the name of its call; all others bring a word or two. A task is handed out once, so there is
#: room for 100 of them with 160 KB each, and of what is larger all that arrived whole is kept. Results may bring a
#: database's error for each of a batch.
_LARGEST_REPLIES = {"gateway_work": 16 * MEBIBYTE, "gateway_results": MEBIBYTE, "gateway_heartbeat": MEBIBYTE // 4}
_JSON = {"Content-Type": "application/json"}
_NOTHING: Mapping[str, str] = {}
_UNCLOSABLE = Refused(
    None,
    "a task cannot be closed by URL if its id is empty, is . or .., or has a / or half a character in it: it stays"
    " booked at the Gateway until it is taken out of its Redis by hand (see docs/operations.md)",
    "cannot_be_closed_by_url",
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. `connect` is for the connection alone, the others for a whole call of that kind."""

    connect: float = 5.0
    work: float = 30.0
    raw: float = 300.0  # a large file over a slow line
    results: float = 60.0
    task: float = 20.0
    heartbeat: float = 10.0
    health: float = 10.0
    idle: float = 60.0  # between two pieces of any reply


@dataclass(frozen=True, slots=True)
class HealthReply:
    """`/health` says 200 even when the Gateway's database is down: it proves that something listens, no more."""

    status: int
    words: str


@dataclass(frozen=True, slots=True)
class TokenReply:
    """The token was accepted. `date` is the Gateway's own `Date` header, for comparing clocks."""

    date: str | None


class GatewayClient:
    """Calls to one Gateway as one worker. Use it as an async context manager, or `close()` it."""

    def __init__(
        self,
        base_url: str,
        token: str,
        worker_id: str,
        *,
        timeouts: Timeouts | None = None,
        max_reply_bytes: int = 16 * MEBIBYTE,
    ) -> None:
        """Raise OperatorError for an address, token or worker id that cannot go into a request."""
        self._base = _checked_base(base_url)
        self._headers = {
            "X-Worker-Token": _header_value("the Gateway token", token),
            "X-Worker-ID": _header_value("the worker id", worker_id),
        }
        self._timeouts = timeouts or Timeouts()
        self.calls = Calls()
        #: The Gateway's clock as it said it when the token was last tried, accepted or not.
        self.date: str | None = None
        address = URL(self._base)
        self._scrub = scrubber((token, address.raw_password or "", address.password or ""))
        self._max_reply_bytes = max_reply_bytes
        self._transport = Transport(self._scrub)
        # Asking the system for each call would be a system call each, with the interpreter's lock let go in between.
        self._dice = random.Random(os.urandom(32))  # unique, and nobody can guess it  # noqa: S311 # nosec B311

    def _mark(self, bits: int) -> str:
        return f"{self._dice.getrandbits(bits):0{bits // 4}x}"

    def __repr__(self) -> str:
        return f"GatewayClient({str(URL(self._base).with_user(None))!r})"

    async def __aenter__(self) -> GatewayClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    @counted("work")
    async def work(self, capacity: int, platforms: Sequence[str]) -> Outcome[WorkReply]:
        """Take tasks; a platform that is named n times brings up to n tasks of each priority.

        With no capacity or no platform nothing is asked: the Gateway would hand out its own choice.
        """
        if capacity < 1 or not platforms:
            return Accepted(WorkReply((), RETRY_WITHOUT_TASKS))
        query = [("capacity", str(min(capacity, LARGEST_CAPACITY))), *(("platforms", name) for name in platforms)]
        url = self._url("/internal/work").with_query(query)
        exchange = await self._send("gateway_work", "GET", url, self._timeouts.work)
        if isinstance(exchange, Unavailable):
            return exchange
        if exchange.status == 200 and is_large(exchange.body):
            return await self._large_work(exchange)
        outcome = self._judge(exchange, parse_work)
        if isinstance(outcome, Unavailable) and exchange.status == 200:
            # The Gateway counts these as handed out. What arrived whole is kept.
            salvaged = salvage_work(exchange.body)
            return Accepted(salvaged) if salvaged else outcome
        return outcome

    async def _large_work(self, exchange: Exchange) -> Outcome[WorkReply]:
        """Read it in a thread, since the loop has other calls to attend to. What arrived whole is kept here, too."""
        is_cut = exchange.broken is not None
        reply = await asyncio.to_thread(salvage_work, exchange.body, cut=is_cut)
        return Accepted(reply) if reply else self._judged(exchange) or self._garbage(exchange)

    @counted("raw")
    async def upload_raw(
        self, source: bytes | str | Path, name: str, metadata: Mapping[str, Any]
    ) -> Outcome[wire.RawReply]:
        """Send a file under `name` (see `wire.raw_name`): its bytes, or from disk; a large one is streamed."""
        try:
            content = source if isinstance(source, bytes) else _content(source)
        except (FileNotFoundError, IsADirectoryError, PermissionError) as problem:
            return Refused(None, f"the raw file cannot be read: {problem.strerror}", "raw_file_unreadable")
        except OSError as problem:
            return Unavailable(Kind.LOCAL, f"the raw file cannot be opened now: {problem.strerror}")
        exchange = await self._send_file(content, upload_form(name, clean_text(metadata), self._mark(128)))
        if isinstance(exchange, Unavailable):
            return exchange
        outcome: Outcome[wire.RawReply | wire.RawFailure] = self._judge(exchange, wire.parse_raw)
        if not isinstance(outcome, Accepted):
            return outcome
        if isinstance(outcome.reply, wire.RawFailure):
            words = f"HTTP 200 with an error: {self._scrub(outcome.reply.message)}"
            return Unavailable(Kind.FAILED, words, request_id=exchange.request_id)
        return Accepted(replace(outcome.reply, name=name))

    @counted("results")
    async def submit_results(self, items: Sequence[Mapping[str, Any]]) -> Outcome[wire.ResultsReply]:
        """Send items that were made fit. Accepted means answered, not stored: the reply's counts decide."""
        if not items:
            return Accepted(wire.ResultsReply(0, 0, 0, 0))
        try:
            body = results_body(items)
        except (ValueError, TypeError, RecursionError) as problem:
            return Refused(None, f"cannot be written as JSON: {problem}", "unfit")

        def parse(value: Any) -> wire.ResultsReply | None:
            reply = wire.parse_results(value, len(items))
            return reply and replace(reply, errors=tuple(map(self._scrub, reply.errors)))

        outcome = await self._call("gateway_results", "POST", "/internal/results", self._timeouts.results, parse, body)
        if isinstance(outcome, Accepted) and not outcome.reply.all_stored:
            words = f"{len(items) - outcome.reply.stored} of {len(items)} results were not stored"
            log_call("results", ": ".join((words, *outcome.reply.errors[:1])), outcome.request_id)
        return outcome

    @counted("tasks")
    async def complete(self, task_id: str) -> Outcome[wire.ClosedReply]:
        """Close a task without a result. `success` false is an answer, too."""
        return await self._close_task(task_id, "complete", {})

    @counted("tasks")
    async def fail(self, task_id: str, error: str) -> Outcome[wire.ClosedReply]:
        """Report a task as failed; the Gateway drops it for good."""
        return await self._close_task(task_id, "fail", {"error": error})

    @counted("heartbeat")
    async def heartbeat(self, body: Mapping[str, Any]) -> Outcome[wire.HeartbeatReply]:
        """Tell the Gateway that this worker is alive; `wire.heartbeat_body` makes the body."""
        text = clean_text(body).encode("ascii")
        seconds, parse = self._timeouts.heartbeat, wire.parse_heartbeat
        return await self._call("gateway_heartbeat", "POST", "/internal/heartbeat", seconds, parse, text)

    async def health(self) -> Outcome[HealthReply]:
        """Ask whether something listens, without the token. That proves nothing about delivery."""
        url = self._url("/health")
        exchange = await self._send("gateway_health", "GET", url, self._timeouts.health, with_token=False)
        if isinstance(exchange, Unavailable):
            return exchange
        verdict = self._judged(exchange)
        return verdict or Accepted(HealthReply(exchange.status, said(exchange, self._scrub)))

    async def check_token(self) -> Outcome[TokenReply]:
        """Try the token and take nothing: an unknown path is 404 with a good token, 401 with a bad one or none.

        Any web server says 404, so a stranger's 401 is asked for first.
        """
        for with_token, expected in ((False, 401), (True, 404)):
            url = self._url("/internal/token-check")
            exchange = await self._send("gateway_token", "GET", url, self._timeouts.health, with_token=with_token)
            if isinstance(exchange, Unavailable):
                return exchange
            self.date = exchange.headers.get("Date")
            if exchange.status != expected:
                return self._judged(exchange) or _no_gateway(exchange, expected)
        return Accepted(TokenReply(self.date))

    async def _send_file(self, content: bytes | BinaryIO, form: UploadForm) -> Exchange | Unavailable:
        url, seconds = self._url("/internal/raw-files"), self._timeouts.raw
        headers = {"Content-Type": form.content_type}
        if isinstance(content, bytes):
            return await self._send("gateway_raw", "POST", url, seconds, data=form.around(content), headers=headers)
        with content:
            # Without a length it would be sent in chunks, which not every Gateway takes.
            headers["Content-Length"] = str(form.length(os.fstat(content.fileno()).st_size))
            data = form.around_file(content)
            return await self._send("gateway_raw", "POST", url, seconds, data=data, headers=headers)

    async def _close_task(self, task_id: str, verb: str, body: Mapping[str, str]) -> Outcome[wire.ClosedReply]:
        segment = wire.task_segment(task_id)
        if segment is None:
            return _UNCLOSABLE
        text = clean_text(body).encode("ascii")
        path = f"/internal/tasks/{segment}/{verb}"
        return await self._call("gateway_task", "POST", path, self._timeouts.task, wire.parse_closed, text)

    async def _call(
        self, point: str, method: str, path: str, seconds: float, parse: Callable[[Any], T | None], data: bytes
    ) -> Outcome[T]:
        exchange = await self._send(point, method, self._url(path), seconds, data=data, headers=_JSON)
        return exchange if isinstance(exchange, Unavailable) else self._judge(exchange, parse)

    async def _send(
        self,
        point: str,
        method: str,
        url: URL,
        seconds: float,
        *,
        data: bytes | AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] = _NOTHING,
        with_token: bool = True,
    ) -> Exchange | Unavailable:
        """Make one exchange; tests know the moments before and after it by the name of `point`."""
        limits = aiohttp.ClientTimeout(
            total=seconds, sock_connect=self._timeouts.connect, sock_read=min(seconds, self._timeouts.idle)
        )
        request_id = self._mark(64)
        sent = {**(self._headers if with_token else {}), **headers, "X-Request-ID": request_id}
        failpoint(point, "before_request")
        limit = min(_LARGEST_REPLIES.get(point, ERROR_BODY), self._max_reply_bytes)
        exchange = await self._transport.exchange(method, url, headers=sent, timeout=limits, limit=limit, data=data)
        failpoint(point, "after_reply")
        return replace(exchange, request_id=request_id)

    def _judged(self, exchange: Exchange) -> Refused | Unavailable | None:
        """Return who is to blame for a status or a broken reply; None where the body must tell."""
        verdict = judge_status(exchange, self._scrub) or exchange.broken
        return verdict and replace(verdict, request_id=exchange.request_id)

    def _judge(self, exchange: Exchange, parse: Callable[[Any], T | None]) -> Outcome[T]:
        verdict = self._judged(exchange)
        if verdict is not None:
            return verdict
        try:
            reply = parse(decode(exchange.body))
        except ValueError:
            reply = None
        if reply is not None:
            return Accepted(reply, exchange.request_id)
        return self._garbage(exchange)

    def _garbage(self, exchange: Exchange) -> Unavailable:
        words = said(exchange, self._scrub) or "empty"
        words = f"HTTP {exchange.status} that a Gateway does not send: {words}"
        return Unavailable(Kind.GARBAGE, words, request_id=exchange.request_id)

    def _url(self, path: str) -> URL:
        # Already encoded: a task id with `%2e` or `;` in it must arrive as it is.
        return URL(self._base + path, encoded=True)


def _checked_base(base_url: str) -> str:
    try:
        url = URL(base_url.strip())
        usable = url.scheme in {"http", "https"} and bool(url.host) and not url.query_string and not url.fragment
    except ValueError:
        usable = False
    if not usable:
        raise OperatorError("The Gateway's address must look like https://gateway.example, without a query.")
    return str(url).rstrip("/")


def _content(path: str | Path) -> bytes | BinaryIO:
    """Return a page's bytes, or a large file open: aiohttp sends files by way of threads, which is slow for pages."""
    file = open(path, "rb")  # noqa: SIM115  a large one is closed by `_send_file`
    if os.fstat(file.fileno()).st_size > MEBIBYTE:
        return file
    with file:
        return file.read()


def _no_gateway(exchange: Exchange, expected: int) -> Unavailable:
    words = f"HTTP {exchange.status} where a Gateway says {expected}: is this a Gateway?"
    return Unavailable(Kind.GARBAGE, words, request_id=exchange.request_id)


def _header_value(what: str, value: str) -> str:
    if not value or not value.isascii() or not value.isprintable() or value != value.strip():
        raise OperatorError(f"{what[0].upper()}{what[1:]} must be plain printable characters without blanks around it.")
    return value
