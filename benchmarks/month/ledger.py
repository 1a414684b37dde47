"""Count the messages of a month against what a story expected: silent, lost, doubled, false."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from benchmarks.month.receivers import Message

_LATE = re.compile(r"^.*could not be delivered.*$\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Expected:
    """A change of an incident that people must be told of.

    Args:
        key: Regular expression of the incident's key, without the name of the evaluation.
        change: `opened` or `resolved`.
    """

    key: str
    change: str


def begins(*keys: str) -> tuple[Expected, ...]:
    """Return that incidents must be told as begun."""
    return tuple(Expected(key, "opened") for key in keys)


def ends(*keys: str) -> tuple[Expected, ...]:
    """Return that incidents must be told as over."""
    return tuple(Expected(key, "resolved") for key in keys)


@dataclass
class Entry:
    """A fault of a story, or its end, with what must be told.

    Args:
        evaluation: Name of the evaluation.
        what: The fault in words.
        is_fault: True for a fault, false for its end.
        expected: Changes of incidents that people must be told of; none where nothing must be told.
        begun: Time from which they can be told.
        state: Name of the final state of the run; empty without a run.
        ended: Time at which the run ended.
        told: Messages in which they were told, to each recipient.
        run: Id of the flow run; empty of one that is not on a schedule.
        kind: Kind that the history must show of a run that is not on a schedule; empty if it must show none.
        mean: Mean that the scores must have; None if they are not known.
        is_reachable: True if all recipients accept messages.
        is_silenced: True if an incident that begins or ends is told to nobody.
    """

    evaluation: str
    what: str
    is_fault: bool
    expected: tuple[Expected, ...]
    begun: datetime
    state: str = ""
    ended: datetime | None = None
    told: list[Message] = field(default_factory=list)
    run: str = ""
    kind: str = ""
    mean: float | None = None
    is_reachable: bool = True
    is_silenced: bool = False


@dataclass
class Account:
    """The faults of the messages about an evaluation.

    Args:
        silent: Expected changes that no recipient was told of.
        lost: Messages that one recipient got and the other did not.
        doubled: Messages, or changes, that a recipient was told twice.
        false: Changes that were told and not expected.
    """

    silent: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)

    def add(self, other: "Account") -> None:
        """Add another account to this one."""
        for name in ("silent", "lost", "doubled", "false"):
            getattr(self, name).extend(getattr(other, name))


def settle(entries: Sequence[Entry], messages: Iterable[Message], recipients: Sequence[str]) -> Account:
    """Match the messages about an evaluation with its entries, and return what is wrong.

    Args:
        entries: Entries of one evaluation, in order; each gets the messages that told it.
        messages: Messages about it.
        recipients: Recipients that must have got each message.
    """
    account = Account()
    by_recipient = {each: [message for message in messages if message.by == each] for each in recipients}
    telling = by_recipient[recipients[0]]
    remaining = [(message, key, change) for message in telling for key, change in message.changes]
    for entry in entries:
        for wanted in entry.expected:
            found = next((each for each in remaining if _tells(each, wanted, entry)), None)
            if found is None:
                account.silent.append(f"{entry.evaluation}: {entry.what}: {wanted.change} {wanted.key}")
                continue
            remaining.remove(found)
            entry.told.append(found[0])
    told = {(key, change) for entry in entries for message in entry.told for key, change in message.changes}
    for message, key, change in remaining:
        if change in ("continuing", "replaced"):
            continue
        words = f"{message.time:%H:%M:%S} {change} {key}: {message.title}"
        (account.doubled if (key, change) in told else account.false).append(words)
    _compare(by_recipient, account)
    places = {by: _places(found) for by, found in by_recipient.items()}
    for entry in entries:
        own = {place for message in entry.told for place, found in places[recipients[0]].items() if found is message}
        entry.told = [found[place] for found in places.values() for place in sorted(own) if place in found]
    return account


def _tells(told: tuple[Message, str, str], wanted: Expected, entry: Entry) -> bool:
    message, key, change = told
    inner = key.partition("/")[2]
    return message.time >= entry.begun and change == wanted.change and re.fullmatch(wanted.key, inner) is not None


def _compare(by_recipient: dict[str, list[Message]], account: Account) -> None:
    counts = {by: Counter(map(_content, messages)) for by, messages in by_recipient.items()}
    for title, text in sorted({each for count in counts.values() for each in count}):
        # The first recipient is matched by incidents; the others must have got the same, as often.
        (_, first), *others = counts.items()
        for by, count in others:
            more = count[title, text] - first[title, text]
            if more > 0:
                account.doubled.append(f"{by} got {more} more: {title}")
            if more < 0:
                account.lost.append(f"{by} did not get {-more} of: {title}")


def _places(messages: Iterable[Message]) -> dict[tuple[tuple[str, str], int], Message]:
    """Return messages by their content and their number among those with the same."""
    counts: Counter[tuple[str, str]] = Counter()
    found = {}
    for message in messages:
        content = _content(message)
        found[content, counts[content]] = message
        counts[content] += 1
    return found


def _content(message: Message) -> tuple[str, str]:
    return message.title, " ".join(_LATE.sub("", message.text).split())
