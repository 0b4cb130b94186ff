"""What a restored database must be told before workers go on: the world has moved on since it was copied."""

from __future__ import annotations

from lienworker.db.database import all_rows, write
from lienworker.outbox import transitions
from lienworker.outbox.leases import free
from lienworker.store.audit import note_action

#: Why uploads are held after a restore.
RESTORED = "restored"


def settle_in(what: str, *, hold_uploads: bool) -> int:
    """Frees what the processes of that time held, blaming nobody; gives how many uploads are held back.

    The Gateway may have had newer results since, and it would let an older one overwrite them. So what was still to be
    sent waits for a person, unless the backup is known to be the last state.
    """
    holders = {row[0] for row in all_rows("SELECT holder FROM workers UNION SELECT holder FROM turns")}
    tokens = all_rows("SELECT DISTINCT lease_token FROM outbox WHERE state = 'leased'")
    for holder in holders | {token.partition(".")[0] for (token,) in tokens}:
        free(holder, blame=False)
    with write("restored"):
        held = 0
        if hold_uploads:
            held = transitions.hold_all_uploads(RESTORED)
        # Delays of hosts and breakers are of that time, too: they end by themselves.
        note_action("restore", what, held)
    return held
