"""What the upload lanes need of their process."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from lienworker.data_folder import DataFolder
from lienworker.hubs.gateway.client import GatewayClient
from lienworker.outbox.leases import Holder
from lienworker.steps.on_loop import OnLoop
from lienworker.steps.upload.bounds import Bounds


@dataclass(frozen=True, slots=True)
class UploadContext:
    """The way to the Gateway, and how it is used."""

    folder: DataFolder
    holder: Holder
    gateway: OnLoop[GatewayClient]
    stopping: threading.Event
    bounds: Bounds
    #: Held by the one thread of this process that uploads: a Gateway that hangs holds one thread.
    one_uploader: threading.Lock
    #: Raw files under way at most, files that take long included.
    concurrency: int
    #: How long a row waits after its first failure, s; an outage waits so long at first.
    first_delay: float
