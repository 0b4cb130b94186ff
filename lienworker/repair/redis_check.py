"""`doctor`'s check of Redis: not whether it answers, but whether it accepts what we would write, and what it is."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any

import redis

from lienworker.broker import namespace, redis_url
from lienworker.data_folder import DataFolder, is_stack_running
from lienworker.errors import LienworkerError
from lienworker.logs import Redactor
from lienworker.redis_client import connect_redis
from lienworker.repair.report import Finding
from lienworker.settings import Settings

#: How long Redis may take to answer, s.
_SECONDS = 2.0
#: Should we be killed in between, the key expires.
_KEY_LIVES_MS = 10_000
#: The last three are what redis-py raises for an option in the address that it cannot use.
_TROUBLE = (redis.RedisError, OSError, ValueError, TypeError, AttributeError)


def redis_finding(settings: Settings, find_server: Callable[[], str]) -> Finding:
    """Check the Redis of REDIS_URL, the private one of a running stack, or the program that would be started."""
    if settings.redis_url:
        return _try_out(settings, "REDIS_URL", "start that Redis, or fix REDIS_URL")
    folder = DataFolder(settings.data_dir)
    if _has_private_server(folder):
        return _try_out(settings, "the private server", "the log folder's redis.log says more; restart the stack")
    try:
        return Finding("redis", True, f"private server: {find_server()}")
    except LienworkerError as problem:
        return Finding("redis", False, str(problem))


def _has_private_server(folder: DataFolder) -> bool:
    try:
        return folder.holders.is_dir() and is_stack_running(folder) and folder.redis_socket.exists()
    except OSError:  # a disk that is read-only or fails: the check of the database reports that
        return False


def _try_out(settings: Settings, who: str, remedy: str) -> Finding:
    try:
        with connect_redis(redis_url(settings), _SECONDS) as client:
            _write_and_read(client, f"{namespace(settings)}:doctor:{secrets.token_hex(8)}")
            words = f"{who} takes writes: {_identity(client)}"
    except _TROUBLE as problem:
        said = " ".join(Redactor(settings)(str(problem)).split())
        return Finding("redis", False, f"{who} cannot be used: {said}; {remedy}")
    return Finding("redis", True, words)


def _write_and_read(client: redis.Redis, key: str) -> None:
    """Write a key and read it back: a full, read-only or stopped server may still answer PING."""
    word = secrets.token_hex(8)
    client.set(key, word, px=_KEY_LIVES_MS)
    try:
        if client.get(key) not in (word, word.encode()):  # text where the address says decode_responses
            raise redis.RedisError("what was written cannot be read back")
    finally:
        client.delete(key)


def _identity(client: redis.Redis) -> str:
    """Return name, version and program. A server may withhold INFO; then it is only known that it works."""
    try:
        about: Mapping[str, Any] = client.info("server")  # type: ignore[assignment, unused-ignore]
    except redis.RedisError:
        return "a server that does not say which"
    is_valkey = about.get("server_name") == "valkey"
    version = about.get("valkey_version" if is_valkey else "redis_version", "of an unknown version")
    program = about.get("executable") or "an unknown program"
    return f"{'Valkey' if is_valkey else 'Redis'} {version} ({program})"
