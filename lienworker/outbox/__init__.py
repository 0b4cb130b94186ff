"""The outbox: every step of a task's life is a row, and this package holds the only SQL on those rows.

    rows          what a row is, and adding rows
    registration  a task and its first row, in one transaction
    claims        the best due rows for a worker, within what each host allows
    leases        who holds a row, for as long as its process lives
    closing       ending a row, trying it again later, or giving it back
    pacing        each county host's next allowed time, cooling and failing
    backoff       when to try again: pure decisions
    relay         keeps tokens in Redis for the rows that are due
    leader        one relay at a time, whatever runs
    balance       nothing is dropped: the counts must add up

A Dramatiq message is only a token, "there is due work in this lane". It carries no ids.
"""
