"""Pages that tell of several parcels one below the other, in pairs, without a table."""

from __future__ import annotations

from collections import Counter

from lienworker.platforms.reading import people
from lienworker.platforms.reading.labels import ID_RANK, meaning
from lienworker.platforms.reading.pairs import Pair


def repeated_parcels(pairs: list[Pair]) -> list[list[Pair]]:
    """The pairs of each parcel, where the page has several; empty where it has one, or where it cannot be told.

    The label of the id comes once for each parcel, with another value each time. A parcel's part begins with the
    first label that comes just as often.
    """
    words = [meaning(pair.label) for pair in pairs]
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
