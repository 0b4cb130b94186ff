"""A call to the Gateway whose outcome is always a value."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import TypeVar

from lienworker.hubs.gateway.outcomes import Kind, Outcome, Unavailable

T = TypeVar("T")
logger = logging.getLogger(__name__)


async def guarded(call: Awaitable[Outcome[T]]) -> Outcome[T]:
    """Return what a call came to; a bug of our own is nobody's fault but ours, and costs no row."""
    try:
        return await call
    except Exception as problem:
        logger.exception("the Gateway client itself failed")
        return Unavailable(Kind.LOCAL, f"{type(problem).__name__}: {problem}")
