"""A doubtful batch of results, bisected until the outcome of each item is known.

Only `inserted + updated == sent` proves anything, and only for a batch as a whole. So items are sent again in other
groups until each is either in a group that was stored entirely, or has failed all by itself.

Which group comes next is a guess, and guesses may be wrong without harm. The parcel ids in the reply's errors say whom
to send alone first, the counts say where the Gateway stopped and how many failures are still owed. Without names a
group is halved. That is one or two calls a bad item with names, and about log2(n) without.

When items fail by themselves and nothing is stored in between, the Gateway's database may be down. Then the search is
for a sign of life: one item stored, anywhere. If there is none, the destination is blamed and not the items.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lienworker.hubs.gateway.outcomes import (
    DeliveryResult,
    FailedAlone,
    Kind,
    Outcome,
    Refused,
    RefusedAlone,
    Stored,
    Unavailable,
    Undecided,
)
from lienworker.hubs.gateway.wire import ResultsReply, plain_words

Item: TypeAlias = Mapping[str, Any]
Submit: TypeAlias = Callable[[list[Item]], Awaitable[Outcome[ResultsReply]]]

# So many different items that failed alone, with nothing stored in between, make the destination suspect.
COUPLE = 2
# So many that were very likely stored, and now fail, prove it: names may lie about some, not about all of these.
MANY_WITNESSES = 11
# So many answers in a row without one stored item end the search for a sign of life. With the Gateway's stop after
# 11 failures they cover 110 items: a batch of 100 is searched to its end.
MOST_LIFELESS = 10


async def deliver(items: Sequence[Item], submit: Submit) -> list[DeliveryResult]:
    """Send all items and return their outcomes, in their order. An item proven stored is never sent again."""
    delivery = _Delivery(items)
    while (group := delivery.next_group()) is not None:
        delivery.learn(group, await submit([items[n] for n in group.members]))
    return delivery.outcomes()


async def deliver_in_parts(items: Sequence[Item], submit: Submit) -> list[DeliveryResult]:
    """Deliver, and try the halves of a batch whose call broke in a way that one of its items could cause.

    A half that goes through shows that the destination lives; the other one is then looked into until the item is
    found. If neither goes through, it is the destination: three calls instead of one.
    """
    outcomes = await deliver(items, submit)
    if len(items) == 1 or not all(_perhaps_one_of_them(outcome) for outcome in outcomes):
        return outcomes
    middle = len(items) // 2
    first = await deliver(items[:middle], submit)
    second = await deliver(items[middle:], submit)
    if _lives(first) and not _lives(second):
        second = await _find_it(items[middle:], second, submit)
    elif _lives(second) and not _lives(first):
        first = await _find_it(items[:middle], first, submit)
    return [*first, *second]


async def _find_it(items: Sequence[Item], outcomes: list[DeliveryResult], submit: Submit) -> list[DeliveryResult]:
    """Find the item that breaks calls among these; the destination is known to answer."""
    if len(items) == 1:
        outcome = outcomes[0]
        is_it = isinstance(outcome, Undecided) and outcome.cause.perhaps_the_row
        return (
            [FailedAlone(outcome.cause.words, by_crash=True)] if is_it and isinstance(outcome, Undecided) else outcomes
        )
    return await deliver_in_parts(items, submit)


def _perhaps_one_of_them(outcome: DeliveryResult) -> bool:
    """Say whether one item could be the cause; not where the destination asked for a pause, which is for all."""
    return isinstance(outcome, Undecided) and outcome.cause.perhaps_the_row and outcome.cause.retry_after is None


def _lives(outcomes: Sequence[DeliveryResult]) -> bool:
    """Say whether any of these was answered as the contract says."""
    return any(not isinstance(outcome, Undecided) for outcome in outcomes)


@dataclass(frozen=True, slots=True)
class _Group:
    """Items (their positions) to be sent together. `owed`: failures among them by the counts of earlier replies."""

    members: list[int]
    owed: int = 0
    witness: bool = False  # should be stored already, and is sent to see whether anything still can be

    def __len__(self) -> int:
        return len(self.members)


class _Delivery:
    """What is known so far. Every unsettled item waits in exactly one of the places below."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._outcomes: dict[int, DeliveryResult] = {}
        self._unknown: deque[_Group] = deque()  # nothing known: to be sent together
        self._suspects: deque[int] = deque()  # named or counted in a reply that stored others: to be sent alone
        self._dirty: list[_Group] = []  # at least one is bad: to be halved
        self._other_half: _Group | None = None  # of the dirty group whose first half is on its way
        self._likely: list[int] = []  # very likely stored: the witnesses, and in the end one group to prove it
        self._lifeless: list[int] = []  # failed in an answer that stored nothing
        self._failed_alone: dict[int, str] = {}  # since the last sign of life
        self._cause: Unavailable | None = None  # why the delivery ended early
        self._alive = False
        self._lifeless_answers = 0
        self._witnesses_failed = 0
        self._named_once: set[int] = set()
        self._lifeless_once: set[int] = set()
        self._names_can_be_trusted = True
        self._largest = max(len(items), 1)  # of a group; halved by refusals, doubled by success
        self._wait(_Group(list(range(len(items)))))

    # Choosing whom to send

    def next_group(self) -> _Group | None:
        """Return the next group to send; None at the end."""
        if self._cause is not None:
            return None
        doubtful = len(self._failed_alone) >= COUPLE
        if not doubtful and (group := self._suspect_alone() or self._half_of_dirty()):
            return group
        if doubtful or self._lifeless:
            return self._sign_of_life_wanted(doubtful)
        return self._next_unknown() or self._all_likely()

    def _sign_of_life_wanted(self, doubtful: bool) -> _Group | None:
        """Choose the group that is likeliest to be stored, since nothing was stored lately."""
        if self._witnesses_failed >= MANY_WITNESSES:
            return self._blame_destination()
        if self._likely:
            return self._witness()
        if self._lifeless_answers < MOST_LIFELESS and (group := self._next_unknown() or self._half_of_dirty()):
            return group
        if self._lifeless and doubtful and self._lifeless_answers < MOST_LIFELESS and self._suspects:
            return self._all_suspects()
        if self._lifeless:
            return self._blame_destination() if doubtful else _Group([self._lifeless.pop()])
        # Only those are left whose failure was foretold by replies that stored others. Where all witnesses failed, too,
        # and they were few, nothing proves that the destination lives: better blame it than good items.
        if (group := self._suspect_alone()) or self._witnesses_failed < COUPLE:
            return group
        return self._blame_destination()

    def _witness(self) -> _Group:
        """Choose an item that is very likely stored; if even that fails, all of them: names lie about some, not all."""
        if not self._witnesses_failed:
            return _Group([self._likely.pop()], witness=True)
        members, self._likely = self._likely, []
        return _Group(members, witness=True)

    def _suspect_alone(self) -> _Group | None:
        return _Group([self._suspects.popleft()]) if self._suspects else None

    def _all_suspects(self) -> _Group:
        """Choose all suspects, the last place for a sign of life: names can lie, and not all of them need be bad."""
        members, self._suspects = list(self._suspects), deque()
        return _Group(members)

    def _half_of_dirty(self) -> _Group | None:
        if not self._dirty:
            return None
        group = self._dirty.pop()
        half = len(group) // 2
        self._other_half = _Group(group.members[half:], group.owed)
        return _Group(group.members[:half])

    def _next_unknown(self) -> _Group | None:
        if not self._unknown:
            return None
        group = self._unknown.popleft()
        if len(group) <= self._largest:
            return group
        self._unknown.appendleft(_Group(group.members[self._largest :]))
        return _Group(group.members[: self._largest])

    def _all_likely(self) -> _Group | None:
        members, self._likely = self._likely, []
        return _Group(members) if members else None

    def _blame_destination(self) -> _Group | None:
        words = next(reversed(self._failed_alone.values()), "")
        self._cause = Unavailable(Kind.FAILED, f"nothing is stored, whatever is sent: {words}")
        return None

    # Learning from what became of them

    def learn(self, group: _Group, outcome: Outcome[ResultsReply]) -> None:
        if isinstance(outcome, Unavailable):
            self._cause = outcome
            return
        other, self._other_half = self._other_half, None
        if isinstance(outcome, Refused):
            self._learn_refusal(group, outcome, halved=other is not None)
        else:
            self._learn_reply(group, outcome.reply)
        if other is not None:
            self._learn_about_other_half(other, None if isinstance(outcome, Refused) else outcome.reply)

    def _learn_refusal(self, group: _Group, refusal: Refused, *, halved: bool) -> None:
        if len(group) == 1:
            self._outcomes[group.members[0]] = RefusedAlone(refusal.words, refusal.status)
            return
        self._dirty.append(group)
        if not halved:  # a half was expected to be refused; this was not: there are more bad ones than we thought
            self._largest = max(len(group) // 2, 1)

    def _learn_about_other_half(self, other: _Group, reply: ResultsReply | None) -> None:
        if reply is not None and reply.all_stored:
            self._look_closer(other)
        else:
            self._wait(_Group(other.members, max(other.owed - (reply.failed if reply else 0), 0)))

    def _learn_reply(self, group: _Group, reply: ResultsReply) -> None:
        if reply.stored:
            self._sign_of_life()
        if reply.all_stored:
            self._outcomes.update((n, Stored()) for n in group.members)
            self._largest = min(self._largest * 2, len(self._items))
            if len(group) == 1:
                self._learn_innocence(group.members[0])
        elif len(group) == 1:
            self._failed_alone[group.members[0]] = plain_words(reply.errors[0]) if reply.errors else "no words"
            self._witnesses_failed += group.witness
        else:
            self._learn_doubt(group, reply)

    def _learn_doubt(self, group: _Group, reply: ResultsReply) -> None:
        seen, skipped = group.members[: reply.processed], group.members[reply.processed :]
        if skipped:
            self._wait(_Group(skipped))
        if reply.stored:
            self._learn_names(seen, reply)
        elif reply.failed <= group.owed:
            self._suspects.extend(seen)
        else:
            self._lifeless.extend(seen)
            self._lifeless_answers += 1
            self._witnesses_failed += len(seen) if group.witness else 0

    def _learn_names(self, seen: list[int], reply: ResultsReply) -> None:
        named = self._named(seen, reply.errors) if self._names_can_be_trusted else []
        rest = [n for n in seen if n not in set(named)]
        self._suspects.extend(named)
        self._named_once.update(named)
        if len(named) >= reply.failed:
            self._likely.extend(rest)
        else:
            self._look_closer(_Group(rest, reply.failed - len(named)))

    def _learn_innocence(self, n: int) -> None:
        """Clear those suspected for the same reason as an item that was stored when sent alone."""
        if n in self._named_once and self._names_can_be_trusted:
            self._names_can_be_trusted = False
            self._wait(_Group(self._likely))
            self._likely = []
        if n in self._lifeless_once:
            together = [m for m in self._suspects if m in self._lifeless_once]
            self._suspects = deque(m for m in self._suspects if m not in self._lifeless_once)
            self._lifeless_once.clear()
            self._wait(_Group(together))

    def _named(self, seen: list[int], errors: Sequence[str]) -> list[int]:
        prefixes = {n: f"{self._items[n].get('parcel_id')}: " for n in seen}
        return [n for n, prefix in prefixes.items() if any(error.startswith(prefix) for error in errors)]

    def _sign_of_life(self) -> None:
        """Blame what failed alone for it, and suspect what failed in company, now that something was stored."""
        self._alive = True
        self._outcomes.update((n, FailedAlone(words)) for n, words in self._failed_alone.items())
        self._failed_alone.clear()
        self._suspects.extend(self._lifeless)
        self._lifeless_once.update(self._lifeless)
        self._lifeless.clear()
        self._lifeless_answers = self._witnesses_failed = 0

    # Where unsettled items wait

    def _look_closer(self, group: _Group) -> None:
        """Put away a group of which at least one item is bad."""
        if group.owed >= len(group) or len(group) == 1:
            self._suspects.extend(group.members)
        else:
            self._dirty.append(group)

    def _wait(self, group: _Group) -> None:
        """Put away a group of which nothing is known; small ones are sent together, as far as refusals allow."""
        if group.members and group.owed >= len(group):
            self._suspects.extend(group.members)
        elif self._unknown and len(self._unknown[-1]) + len(group) <= self._largest:
            last = self._unknown.pop()
            self._unknown.append(_Group(last.members + group.members, last.owed + group.owed))
        elif group.members:
            self._unknown.append(group)

    def outcomes(self) -> list[DeliveryResult]:
        """Return one for each item; what was not settled is undecided."""
        alive_to_the_end = self._alive and self._cause is None
        words = next(iter(self._failed_alone.values()), "")
        cause = self._cause or Unavailable(Kind.FAILED, f"nothing was stored: {words}")
        return [self._outcome(n, cause, alive_to_the_end) for n in range(len(self._items))]

    def _outcome(self, n: int, cause: Unavailable, alive_to_the_end: bool) -> DeliveryResult:
        if n in self._failed_alone and alive_to_the_end:
            return FailedAlone(self._failed_alone[n])
        return self._outcomes.get(n) or Undecided(cause, n in self._failed_alone, self._failed_alone.get(n, ""))
