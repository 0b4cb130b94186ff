"""How a worker process stops: it takes nothing new, at once, and stores the reply of a poll that is under way.

The Gateway hands a task out once, so a reply that is not stored is lost for good. `polling` is held from the request of
a poll until its reply is stored; whoever ends the process sets `stopping` and waits for that lock.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from dataclasses import dataclass
from types import FrameType

#: How long a process that stops in good order waits for a reply, s: a poll has a time-out of 30 s.
_REPLY_PATIENCE = 36.0
#: The same for one that is to leave at once, s; less than the 5 s in which no process of a stack outlives it.
_LAST_REPLY = 4.0
#: How long such a process may take to commit what else it has in hand, s.
_LAST_WORDS = 2.0


@dataclass(frozen=True, slots=True)
class Stopping:
    """The stop of one process."""

    event: threading.Event
    polling: threading.Lock

    def take_nothing_new(self, patience: float = _REPLY_PATIENCE) -> None:
        """Stop, and wait until no reply is under way."""
        self.event.set()
        if self.polling.acquire(timeout=patience):
            self.polling.release()

    def leave(self) -> None:
        """End this process: commit what is in hand, then leave at once."""
        leave_at = time.monotonic() + _LAST_WORDS
        self.take_nothing_new(_LAST_REPLY)
        time.sleep(max(0.0, leave_at - time.monotonic()))
        os._exit(1)

    def on_signals(self) -> None:
        """Stop at the signal itself: Dramatiq's main thread looks once a second, and polls would go on meanwhile.

        At a second signal we leave as soon as no reply is under way; Dramatiq would raise SystemExit here, which waits
        for all that runs on the event loop. Another thread sets the event, for a signal may come while this one has the
        event's lock; a SimpleQueue has none.
        """
        if threading.current_thread() is not threading.main_thread():  # only the main thread gets signals
            return
        told: queue.SimpleQueue[int] = queue.SimpleQueue()
        usual = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
        signals = 0

        def stop(number: int, frame: FrameType | None) -> None:
            nonlocal signals
            signals += 1
            told.put(number)
            if signals > 1:
                self.polling.acquire(timeout=_LAST_REPLY)
                os._exit(1)
            handler = usual[signal.Signals(number)]
            if callable(handler):
                handler(number, frame)

        def wait() -> None:
            told.get()
            self.event.set()

        threading.Thread(target=wait, name="signals", daemon=True).start()
        for number in usual:
            signal.signal(number, stop)
