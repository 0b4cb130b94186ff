"""The actors: `dramatiq lienworker.actors` runs them, `periodiq lienworker.actors` keeps their schedule.

Each is thin: claim rows, do the work, close the rows in one transaction. Messages carry no ids.
"""

from lienworker.actors.app import broker
from lienworker.actors.beat import relay
from lienworker.actors.collect import collect
from lienworker.actors.fetch import fetch
from lienworker.actors.heartbeat import heartbeat
from lienworker.actors.one_url import scrape_url
from lienworker.actors.scrape import scrape
from lienworker.actors.upkeep import upkeep
from lienworker.actors.upload import upload

__all__ = ["broker", "collect", "fetch", "heartbeat", "relay", "scrape", "scrape_url", "upkeep", "upload"]
