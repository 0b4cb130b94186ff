"""A page read as a person reads it, without knowing the site.

tokens      the texts of the page, in reading order
roles       which of them are labels and titles
grids       tables with a head; gridfacts: what they are about
pairs       labels and their values
labels      the words counties use, and the canonical field of each
choosing    which amount counts, where labels come again
people      owners, addresses and ids as pages write them
formats     the same for pages that are not HTML
page        all of it, once a page
"""

from lienworker.platforms.reading.canon import Names, record_of
from lienworker.platforms.reading.grids import Grid
from lienworker.platforms.reading.page import Reading, read, shows_parcel
from lienworker.platforms.reading.pairs import Pair

__all__ = ["Grid", "Names", "Pair", "Reading", "read", "record_of", "shows_parcel"]
