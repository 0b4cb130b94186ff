"""The outbox: every step of a task is a row, and this package holds the only SQL that changes those rows.

    states         what a row is for, and where it stands
    transitions    every change of a row's state, with the state diagram
    rows           what a row is, when it is added and when it is claimed
    registration   a task and its first row, in one transaction
    claims         the best due rows for a worker, within what each host allows
    leases         who holds a row, for as long as that process lives; turns that one process takes at a time
    outcomes       what a step's outcome does to its row and its task
    pacing         each county host's next allowed time, cooling and failures
    backoff        when to try again: pure decisions
    breaker        whether calls to an endpoint of the Gateway go out
    uploads        the lanes to the Gateway: claiming within what the breakers allow
    pauses         paused lanes, and counties held for drift
    storage_watch  no fetching while pages cannot be stored
    relay          keeps tokens in Redis for the rows that are due
    balance        nothing is dropped: the counts must add up

A Dramatiq message is only a token, "there is due work in this lane". It carries no ids.
"""
