"""lienworker: scrape county tax-lien parcels, keep everything locally first, deliver when the Gateway can take it.

How the whole hangs together, in one screen (docs/architecture.md follows one parcel through it):

    settings, errors          one frozen object from the environment; one tree of errors
    store/                    SQLite and files: tasks, pages, results. The truth.
    outbox/                   every step of a task's life is a row here; claims, leases, pacing, the relay
    fetching/ platforms/      page from the network; data from the page
    intake/ reports/          files of parcels in; exports, archives and figures out
    gateway/                  the client, the wire types, and the reference Gateway
    actors/                   Dramatiq actors, thin: claim, call, one transaction
    stack/                    Redis, workers and schedule under one supervisor
    cli/                      what an operator types
"""

__version__ = "0.1.0"
