"""What other processes do in the tests: run as a script, spoken to in lines of JSON.

python players.py PART ROOT ARGUMENTS
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lienworker.db.database import open_store, write
from lienworker.outbox import claims, leases, transitions
from lienworker.outbox.claims import Rules, claim
from lienworker.outbox.leases import turn
from lienworker.outbox.registration import register_in_transaction, register_task
from lienworker.outbox.rows import Entry
from lienworker.outbox.states import Topic
from lienworker.outbox.transitions import end
from lienworker.store.tasks import NewTask


def say(what: Any) -> None:
    print(json.dumps(what), flush=True)


def hear() -> Any:
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    return json.loads(line)


def hold(root: Path, n: int, pulse: float = 3.0, lease_ms: int = 30_000) -> None:
    """A living holder: claims n rows, then does as told: `end` its rows, `claim` more, or leave when told nothing."""
    leases.PULSE_SECONDS = pulse
    leases.LEASE_MS = claims.LEASE_MS = lease_ms
    with leases.WorkerLease(open_store(root), "worker", 4) as holder, ExitStack() as in_hand:
        token = in_hand.enter_context(holder.lease())
        rows = claim("fetch", n, token, Rules(0.0, 1000))
        say({"holder": holder.id, "ids": [row.id for row in rows]})
        while order := hear():
            if order == "end":
                with write("late"):
                    ended = [end(row) for row in rows]
                say(ended)
            elif order == "claim":
                if not holder.owns(token):
                    token = in_hand.enter_context(holder.lease())
                rows = claim("fetch", n, token, Rules(0.0, 1000))
                say([row.id for row in rows])
            elif order == "beat":
                holder.beat()
                say("beaten")


def claim_all(root: Path, limit: int, delay: float, concurrency: int) -> None:
    """Claims until nothing is left, at a signal."""
    open_store(root)
    say("ready")
    token = hear()
    taken = []
    while rows := claim("fetch", limit, token, Rules(delay, concurrency)):
        taken += [[row.id, row.start_at] for row in rows]
    say(taken)


def take_turn(root: Path) -> None:
    """Tries to take a turn at a signal, says if it got it, and keeps it until told to end it."""
    with leases.WorkerLease(open_store(root), "worker", 1) as holder:
        say("ready")
        hear()
        with turn("relay", holder.id) as mine:
            say(mine)
            hear()
        say("ended")


def register(root: Path, n: int) -> None:
    """Registers n tasks: one as one task is registered, several as an import does."""
    open_store(root)
    new = [NewTask(source="cli", url=f"http://a.example/{k}") for k in range(n)]
    if n == 1:
        register_task(new[0])
    else:
        with write("register"):
            register_in_transaction(new)


def step(root: Path) -> None:
    """A step as actors do it: close the row and add the next, in one transaction."""
    open_store(root)
    (row,) = claim("fetch", 1, "me.1", Rules(0.0, 1))
    with write("step"):
        assert end(row)
        transitions.add([Entry(Topic.SCRAPE, row.task_id, row.generation, row.queue, row.priority)])


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]), *json.loads(sys.argv[3]))
