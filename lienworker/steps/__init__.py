"""The way of one parcel: collect, fetch, scrape, upload; and what goes with it (relay, heartbeat).

The work itself, without the message broker: a worker's actors call these functions, and so does a person's command.
"""
