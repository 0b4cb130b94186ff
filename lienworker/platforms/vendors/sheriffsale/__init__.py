"""Ohio's sheriff sales (sheriffsaleauction.ohio.gov), which RealAuction runs: its lists and calendars, by county."""

from __future__ import annotations

import re

from lienworker.platforms.core.base import Page, Record, Target
from lienworker.platforms.vendors.realauction import RealAuctionPlatform
from lienworker.platforms.vendors.realauction.lists import SHORT_ITEM, spelled_out


class SheriffSalePlatform(RealAuctionPlatform):
    """The same pages at another address; a list may be saved as the bare shorthand that the site's script is sent."""

    name = "sheriffsale"
    version = "1"
    evidence = "a real page"
    url_pattern = re.compile(r"//[\w-]+\.sheriffsaleauction\.ohio\.gov/", re.I)

    def recognises(self, page: Page) -> bool:
        return not page.is_json and SHORT_ITEM in page.text

    def parse(self, page: Page, target: Target) -> Record:
        return super().parse(spelled_out(page, page.text) if self.recognises(page) else page, target)


PLATFORM = SheriffSalePlatform()
