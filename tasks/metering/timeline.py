"""Record how long a server was asked, and how many conversations were in flight."""


class Timeline:
    """The time from the first request to a server to its last reply. Not thread-safe: its owner has the lock.

    Time after the last reply, in which nothing was in flight, does not count.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._last: float | None = None
        self._passed = 0.0
        self._in_flight = 0
        self._sum = 0.0  # of conversations in flight, over the time that has passed

    @property
    def is_empty(self) -> bool:
        """Whether no request was sent."""
        return self._last is None

    @property
    def in_flight(self) -> float:
        """Mean number of conversations in flight."""
        return self._sum / self.seconds if self.seconds else 0.0

    def start_request(self, now: float, conversations: int) -> None:
        """Record that conversations were sent.

        Args:
            now: Time in seconds, on any clock.
            conversations: Number of conversations in the request.
        """
        self._advance(now)
        self._in_flight += conversations

    def end_request(self, now: float, conversations: int) -> None:
        """Record that the reply to a request arrived, or that none will.

        Args:
            now: Time in seconds.
            conversations: Number of conversations in the request.
        """
        self._advance(now)
        self._in_flight -= conversations
        self.seconds = self._passed

    def _advance(self, now: float) -> None:
        if self._last is not None:
            self._passed += now - self._last
            self._sum += self._in_flight * (now - self._last)
        self._last = now
