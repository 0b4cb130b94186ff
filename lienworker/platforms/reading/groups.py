"""Which of a page's pairs are of which parcel: of the page's own, of another, of several one below the other."""

from __future__ import annotations

import re
from collections import Counter

from lienworker.platforms.core.bounds import remember_short
from lienworker.platforms.reading import people
from lienworker.platforms.reading.labels import ID_RANK
from lienworker.platforms.reading.pairs import Pair

# A pair, and the words by which its label is looked up.
Worded = tuple[Pair, str]
_OWNER_IDS = frozenset({"owner id", "owner number", "owner no"})
_ELSEWHERE = re.compile(
    r"related|nearby|adjacent|adjoining|neighbor|comparable|parent parcel|child parcel|split"
    # Of a service's answer: one of the lines of its land, one part of a building.
    r"|landlines?|subareas?|extrafeatures?",
    re.I,
)


def of_this_parcel(pairs: list[Pair], words: list[str]) -> list[Worded]:
    """Without what a title says of other parcels; a name beside an owner's id is the owner's."""
    own = list(zip(pairs, words, strict=True))
    if elsewhere := set(filter(is_elsewhere, {pair.section for pair in pairs})):
        own = _without(own, elsewhere)
    if "name" not in words or _OWNER_IDS.isdisjoint(words):
        return own
    words = [word for _, word in own]
    return [
        (pair._replace(section="Owner") if word == "name" and _is_beside_owner_id(words, at) else pair, word)
        for at, (pair, word) in enumerate(own)
    ]


def _is_beside_owner_id(words: list[str], at: int) -> bool:
    return not _OWNER_IDS.isdisjoint(words[max(at - 1, 0) : at + 2])


@remember_short(1024)
def is_elsewhere(section: str) -> bool:
    return _ELSEWHERE.search(section) is not None


def _without(worded: list[Worded], elsewhere: set[str]) -> list[Worded]:
    own = [(pair, word) for pair, word in worded if pair.section not in elsewhere]
    if any(word in ID_RANK for _, word in own):
        return own
    # The title may be the last one of the page. Of several ids below it none is surely this parcel's.
    ids = {pair.lines[0] for pair, word in worded if word in ID_RANK}
    return [(pair, word) for pair, word in worded if len(ids) < 2 or word not in ID_RANK]


def repeated_parcels(pairs: list[Pair], words: list[str]) -> list[list[Pair]]:
    """The pairs of each parcel, where the page has several; empty where it has one, or where it cannot be told.

    The label of the id comes once for each parcel, with another value each time. A parcel's part begins with the
    first label that comes just as often.
    """
    ids = [word for word in words if word in ID_RANK]
    if len(ids) == len(set(ids)):  # as on nearly all pages
        return []
    for word in sorted({word for word in ids if ids.count(word) > 1}, key=lambda word: ID_RANK[word]):
        named = [pair for pair, label in zip(pairs, words, strict=True) if label == word]
        shown = {(pair.lines[0], pair.first or pair.lines[0]) for pair in named}
        if len(shown) < len(named):
            continue  # the same id twice is one parcel
        found = {people.shown_id(*texts) for texts in shown}
        if None not in found and len(found) == len(named):
            return _split(pairs, words, word)
    return []


def shown_id(pair: Pair) -> str | None:
    return people.shown_id(pair.lines[0], pair.first or pair.lines[0])


def _split(pairs: list[Pair], words: list[str], id_word: str) -> list[list[Pair]]:
    times = Counter(words)
    first = next(word for word in words if times[word] == times[id_word])
    starts = [place for place, word in enumerate(words) if word == first]
    ends = [*starts[1:], len(pairs)]
    parts = [(words[start:end], pairs[start:end]) for start, end in zip(starts, ends, strict=True)]
    regular = all(labels.count(id_word) == 1 and len(labels) > 2 for labels, _ in parts)
    return [part for _, part in parts] if regular else []
