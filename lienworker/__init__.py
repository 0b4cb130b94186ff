"""lienworker: scrape county tax-lien parcels, keep everything locally first, deliver when the Gateway can take it.

How the parts fit together, in one screen (docs/architecture.md follows one parcel through them). A folder uses what is
below it, never what is above:

    cli/ web/       what people type and see
    stack/          Redis, workers, schedule and monitor under one supervisor
    actors/         the Dramatiq actors: decorated functions that call steps/ and maintenance/
    operator/       what a person does: retry, cancel, replay, hold, release, discard, pause, archive, scrape now
    queries/        what is only read, for people: counts, lists, backlog, export, analysis, health
    repair/         doctor, salvage, requeue
    maintenance/    relay and heartbeat, retention, disk limits, backup, restore, hosts and clocks
    steps/          the path of one parcel: register, collect, fetch, scrape, follow, drift, upload
    hubs/           where work comes from and results go: the Gateway
    fetching/       a page from the network                                      no database
    platforms/      the data on a page                                           pure
    intake/         files of parcels into rows
    outbox/         every step of a task is a row here; claims, leases, pacing, the relay
    store/          tasks, pages, results and their files: authoritative
    broker          Dramatiq's broker as we use it; redis_client: how to connect
    db/             connection, write transaction, clock, small values, migrations, schema
    data_folder, logs, settings, failpoints, errors, …
    testing/        the reference Gateway and the demo county, for cli/ and tests
"""

__version__ = "0.1.0"
