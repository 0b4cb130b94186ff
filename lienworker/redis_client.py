"""The one way to connect to Redis: every call has a deadline, and a server that does not answer is one that is away.

A half-open connection (a stopped server, a firewall that forgot the connection) takes what is sent and answers nothing.
redis-py 5 waits for such an answer for ever, newer ones retry ten times; both would hold a worker's thread for as long.
"""

from __future__ import annotations

from typing import Any, cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

#: How long one call may take, s. We use no blocking commands, and Dramatiq's scripts take milliseconds on queues as
#: short as ours (the idle pauses of a consumer are slept here, not in the server). A server whose disk is slow can be
#: mute for two seconds; longer than this is as bad as being away.
CALL_SECONDS = 5.0
#: A connection that was idle for longer is tried with a PING before it is used, s.
_HEALTH_CHECK_SECONDS = 30


class RedisClient(redis.Redis):
    """A client whose calls fail in one way only when the server is away, whether it refuses or says nothing.

    Dramatiq restarts a consumer after a `ConnectionError`. A `TimeoutError` is none to redis-py, so Dramatiq takes it
    for a bug in itself, with a trace, and gives up acknowledging the message.
    """

    def execute_command(self, *args: Any, **options: Any) -> Any:
        try:
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call, unused-ignore]
        except redis.TimeoutError as problem:
            raise redis.ConnectionError(f"the server does not answer ({problem})") from None


def connect_redis(url: str, seconds: float = CALL_SECONDS) -> RedisClient:
    """Return a client for an address; nothing is connected yet. Options in the address win over ours."""
    options: dict[str, Any] = {
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        "health_check_interval": _HEALTH_CHECK_SECONDS,
        # Once more at once, for a pooled connection that died with the last server; never after a time-out, which would
        # double the wait. Whoever calls tries again by himself.
        "retry": Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
    }
    if not url.startswith("unix:"):
        options["socket_keepalive"] = True  # a unix socket takes no such option
    return cast(RedisClient, RedisClient.from_url(url, **options))
