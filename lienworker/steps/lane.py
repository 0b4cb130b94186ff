"""One message's lease on a lane: how its rows are claimed, and when it has to stop."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from lienworker.outbox.claims import Rules
from lienworker.outbox.leases import Holder


@dataclass(frozen=True, slots=True)
class LaneLease:
    """Rows claimed under `token` are ours as long as `is_ours`; a process that was taken for dead has lost them."""

    holder: Holder
    token: str
    rules: Rules
    #: Rows in one claim.
    batch: int
    stopping: threading.Event
    #: Whether a row that outlived its holder may be claimed: one of them in a process at a time.
    suspects: bool = False
    #: The message that led to the claims.
    message_id: str | None = None

    @property
    def is_ours(self) -> bool:
        return self.holder.owns(self.token)
