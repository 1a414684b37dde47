"""A replica with the requests that wait for it.

Texts are asked for first, because other questions wait for them. But a server writes many texts at once, for a second
or more, and reads no prompts meanwhile if all conversations that are allowed are texts. So half of the conversations
are kept for labels, as long as any wait: their prompts are read while texts are written.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from tasks.model_clients.flight_limit import FlightLimit
from tasks.model_clients.jobs import Job
from tasks.model_clients.replica import Replica

TEXTS_SHARE = 0.5
"""Share of the conversations in flight that may be texts while labels wait."""

_SEARCHED = 4
"""Waiting requests that are looked through for companions, as a multiple of those that are wanted."""


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
