"""Decide how many conversations may be in flight at a replica: as many as it answers at once.

A server that computes several requests together needs enough of them. How many depends on its speed: while a text is
written, which takes a second, a fast one answers a thousand labels. So the limit rises while labels are answered soon
although all conversations that are allowed are in flight, and falls back when they wait: more in flight would then only
wait at the server, and be lost if the run is killed.
"""

QUICK, SLOW = 0.5, 1.5
"""Seconds for a reply with labels: below the first, the limit rises; above the second, it falls."""

_TOKENS_OF_A_LABEL = 2


class FlightLimit:
    """The limit of one replica.

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
