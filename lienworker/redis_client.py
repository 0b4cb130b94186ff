"""The one way to connect to Redis: every call has a deadline, and a server that does not answer is unreachable.

A half-open connection (a stopped server, a firewall that dropped the connection) accepts what is sent and answers
nothing. redis-py 5 waits for such an answer forever, newer versions retry ten times; both would block a worker's
thread.
"""

from __future__ import annotations

from typing import Any, cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

#: How long one call may take, s. We use no blocking commands, and Dramatiq's scripts take milliseconds on queues as
#: short as ours (a consumer's idle pauses are slept here, not in the server). A server whose disk is slow can be silent
#: for two seconds; longer than this is as bad as being unreachable.
CALL_SECONDS = 5.0
#: A connection that was idle for longer is tested with a PING before it is used, s.
_HEALTH_CHECK_SECONDS = 30


class RedisClient(redis.Redis):
    """A client whose calls fail in only one way when the server is unreachable, whether it refuses or says nothing.

    Dramatiq restarts a consumer after a `ConnectionError`. redis-py's `TimeoutError` is not one, so Dramatiq takes it
    for a bug of its own, with a stack trace, and gives up acknowledging the message.
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
        # Retry once at once, for a pooled connection that died with the last server; never after a timeout, which would
        # double the wait. The callers try again themselves.
        "retry": Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
    }
    if not url.startswith("unix:"):
        options["socket_keepalive"] = True  # a unix socket has no such option
    return cast(RedisClient, RedisClient.from_url(url, **options))
