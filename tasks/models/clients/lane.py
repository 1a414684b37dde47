"""A replica with the requests that wait for it, and the choice among replicas.

Texts are asked for first, because other questions wait for them. But a server writes many texts at once, for a second
or more, and reads no prompts meanwhile if all conversations that are allowed are texts. So half of the conversations
are kept for labels, as long as any wait: their prompts are read while texts are written.
"""

import hashlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tasks.models.clients.jobs import Job
from tasks.models.clients.replica import Replica

TEXTS_SHARE = 0.5
"""Share of the conversations in flight that may be texts while labels wait."""

_SEARCHED = 4
"""Waiting requests that are looked through for companions, as a multiple of those that are wanted."""

QUICK, SLOW = 0.5, 1.5
"""Seconds for a reply with labels: below the first, the limit rises; above the second, it falls."""

_TOKENS_OF_A_LABEL = 2


class FlightLimit:
    """The number of conversations that may be in flight at a replica: as many as it answers at once.

    A server that computes several requests together needs enough of them. How many depends on its speed: while a text
    is written, which takes a second, a fast one answers a thousand labels. So the limit rises while labels are answered
    soon although all conversations that are allowed are in flight, and falls back when they wait: more in flight would
    then only wait at the server, and be lost if the run is killed.

    Args:
        least: Number at the start, below which it does not fall.
        most: Number above which it does not rise.

    >>> limit = FlightLimit(128, 512)
    >>> limit.note_reply(0.1, conversations=16, output_tokens=16, is_full=True)
    >>> limit.value
    144
    """

    def __init__(self, least: int, most: int) -> None:
        self._least = least
        self._most = max(least, most)
        self.value = least
        """Number of conversations that may be in flight."""

    def note_reply(self, seconds: float, conversations: int, output_tokens: int, *, is_full: bool) -> None:
        """Learn from a reply to a request of several conversations.

        Args:
            seconds: Time that the reply took.
            conversations: Number of conversations in the request.
            output_tokens: Tokens of the reply; one with texts says nothing, because they take long to write.
            is_full: True if other requests wait because of the limit.
        """
        if output_tokens > _TOKENS_OF_A_LABEL * conversations:
            return
        if seconds > SLOW:
            self.value = max(self._least, self.value - conversations)
        elif seconds < QUICK and is_full:
            self.value = min(self._most, self.value + conversations)

    def note_refusal(self) -> None:
        """Learn that the server is overloaded."""
        self.value = max(self._least, self.value // 2)


class JobQueue:
    """Requests that wait, those for texts apart from those for labels."""

    def __init__(self) -> None:
        self._texts: deque[Job] = deque()
        self._labels: deque[Job] = deque()

    def __len__(self) -> int:
        return len(self._texts) + len(self._labels)

    def __iter__(self) -> Iterator[Job]:
        yield from self._texts
        yield from self._labels

    def append(self, job: Job) -> None:
        """Add a request behind those of its kind."""
        self._kind_of(job).append(job)

    def appendleft(self, job: Job) -> None:
        """Add a request before those of its kind."""
        self._kind_of(job).appendleft(job)

    def _kind_of(self, job: Job) -> deque[Job]:
        return self._texts if job.request.writes else self._labels

    def take(self, room: int, *, texts: bool, last: bool = False, together: bool = True) -> list[Job]:
        """Take a request, with the next ones that can be sent together with it.

        Args:
            room: Number of conversations that may be taken.
            texts: If true, take texts if any wait; else labels if any wait.
            last: If true, take requests from the end.
            together: If false, take a single request.
        """
        queues = (self._texts, self._labels) if texts else (self._labels, self._texts)
        for waiting in queues:
            while waiting:
                first = waiting.pop() if last else waiting.popleft()
                if not first.is_void:
                    companions = first.request.companions
                    if companions is None or first.is_alone or not together:
                        return [first]
                    return [first, *_take_like(first, waiting, min(companions.most, room) - 1, last)]
        return []


def _take_like(first: Job, waiting: deque[Job], wanted: int, last: bool) -> list[Job]:
    pop, put_back = (waiting.pop, waiting.append) if last else (waiting.popleft, waiting.appendleft)
    taken: list[Job] = []
    passed: list[Job] = []
    for _ in range(min(len(waiting), _SEARCHED * wanted)):
        if len(taken) == wanted:
            break
        job = pop()
        if job.may_join(first):
            taken.append(job)
        else:
            passed.append(job)
    for job in reversed(passed):
        put_back(job)
    return taken


@dataclass(eq=False, slots=True)
class Lane:
    """A replica with its queue.

    Args:
        limit: Number of conversations that may be in flight.
        waiting: Requests that wait for it.
        is_open: True if it can be reached.
        busy: Number of conversations in flight.
        writing: Number of these that are texts.
        takes_several: True unless it has shown that it lacks the endpoint of several conversations.
        last_answer: Time of the event loop when it last answered.
        down_since: Time of the event loop since when it cannot be reached.
    """

    replica: Replica
    limit: FlightLimit
    waiting: JobQueue = field(default_factory=JobQueue)
    is_open: bool = True
    busy: int = 0
    writing: int = 0
    takes_several: bool = True
    last_answer: float = float("-inf")
    down_since: float = 0.0

    @property
    def wants_texts(self) -> bool:
        """Whether the next conversation may be a text although labels wait."""
        return self.writing < TEXTS_SHARE * self.limit.value


def choose_replica(affinity: str, replicas: Sequence[str]) -> int:
    """Return the index of the replica that gets the requests with an affinity.

    Rendezvous hashing gives the same replica in every process and run. When a replica is added or removed, only the
    requests that it gains or loses move.

    Args:
        affinity: Text that related requests share: the beginning of their prompts.
        replicas: Names of the replicas, in any order.

    Returns:
        An index into `replicas`.

    >>> names = ["http://a/v1", "http://b/v1", "http://c/v1"]
    >>> homes = [names[choose_replica(f"context {i}", names)] for i in range(6)]
    >>> homes == [names[::-1][choose_replica(f"context {i}", names[::-1])] for i in range(6)]
    True
    >>> len(set(homes)) > 1
    True
    """
    if len(replicas) == 1:
        return 0
    key = hashlib.blake2b(affinity.encode("utf-8", "surrogatepass"), digest_size=16)
    weights = []
    for name in replicas:
        digest = key.copy()
        digest.update(name.encode())
        weights.append(digest.digest())
    return weights.index(max(weights))
