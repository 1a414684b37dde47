"""Count the requests of a run to one judge server, with their tokens and their time."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tasks.metering.prefix_forecast import PrefixForecast
from tasks.metering.server_counters import NOTHING, CounterPoller, Counters
from tasks.metering.timeline import Timeline
from tasks.runtime.usage import Usage

_MOST_FOREIGN = 0.02
"""Share of the prompt tokens of replies by which a server may have counted more or fewer: others asked it, too."""


@dataclass(frozen=True, slots=True)
class ReplyTokens:
    """The tokens of a request that was answered.

    Args:
        prompt: Number of prompt tokens.
        cached: Number of these that were in the prefix cache; None if the server does not say.
        output: Number of generated tokens.
    """

    prompt: int
    cached: int | None
    output: int


@dataclass(frozen=True, slots=True)
class ServerRequests:
    """The requests of a run to one judge server.

    Args:
        name: URLs of the server.
        slots: Number of conversations that it may have in flight.
        usage: Requests and tokens; its seconds are those from the first request to the last reply.
        tells_cached: True if all replies said how many of their prompt tokens were cached.
        estimated_cached: Number of cached prompt tokens, estimated from the order of the prompts where a reply did not
            say it.
        in_flight: Mean number of conversations in flight.
        counted: Tokens that the servers counted themselves; None if they offer no counters, or counted those of others,
            too.
    """

    name: str
    slots: int
    usage: Usage
    tells_cached: bool
    estimated_cached: int
    in_flight: float
    counted: Counters | None = None


@dataclass(slots=True)
class ServerCounts:
    """The timeline and the counts of one server."""

    slots: int
    timeline: Timeline
    usage: Usage = field(default_factory=Usage)
    tells_cached: bool = True
    estimated_cached: int = 0
    prefixes: PrefixForecast = field(default_factory=PrefixForecast)
    cached_share: float = 0.0
    poller: CounterPoller | None = None
    counted: Counters = NOTHING
    _recent: tuple[float, float] = (0.0, 0.0)

    def own_counts(self) -> Counters | None:
        """Return what the servers counted, if that is about what the replies to this run say."""
        reported, counted = self.usage.prompt_tokens, self.counted
        is_own = abs(counted.prompt - reported) <= _MOST_FOREIGN * reported
        return counted if self.poller is not None and self.poller.is_reliable and is_own else None

    def expect(self, prompts: Iterable[tuple[str, int]]) -> None:
        """Estimate the share of the tokens of the next prompts that will be in the prefix cache.

        Several threads send prompts of different kinds at the same time, so that the share is that of the latest calls.
        """
        characters = cached = 0
        for prompt, shared in prompts:
            characters += len(prompt)
            cached += self.prefixes.count_cached(prompt, shared)
        before_characters, before_cached = self._recent
        self._recent = (before_characters / 2 + characters, before_cached / 2 + cached)
        self.cached_share = self._recent[1] / self._recent[0] if self._recent[0] else 0.0
