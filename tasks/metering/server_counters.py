"""Read the counters of tokens that vLLM offers at `/metrics`, in the text format of Prometheus.

They count what the server computed, for all its clients and since its start: the tokens of prompts, how many of these
were in the prefix cache, and the tokens it wrote. Differences of two readings say exactly what replies to several
conversations in one request do not.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Event, Lock
from typing import TypeAlias

from tasks.runtime.threads import ThreadLimitError, start_thread
from tasks.runtime.usage import Numbers

PATH = "/metrics"
"""Path at the root of the server."""

_PROMPT = "vllm:prompt_tokens_total"
_CACHED = ("vllm:prompt_tokens_cached_total", "vllm:prefix_cache_hits_total")
"""Counters of cached prompt tokens, newest name first; the second one is older, and counts preempted prompts again."""
_OUTPUT = "vllm:generation_tokens_total"
_LINE = re.compile(r"(vllm:[a-z_]+)(?:\{[^}]*\})? ([0-9.eE+-]+)(?: [0-9]+)?\s*")


@dataclass(frozen=True, slots=True)
class Counters(Numbers):
    """The tokens that servers counted since their start, added up over their engines.

    Args:
        prompt: Prompt tokens.
        cached: Number of these that were in the prefix cache.
        output: Generated tokens.
    """

    prompt: float
    cached: float
    output: float

    def __sub__(self, earlier: "Counters") -> "Counters":
        """Return what was counted between two readings."""
        return Counters(self.prompt - earlier.prompt, self.cached - earlier.cached, self.output - earlier.output)

    @property
    def is_increase(self) -> bool:
        """Whether no counter went back, as one does when its server starts again."""
        return min(self.prompt, self.cached, self.output) >= 0


NOTHING = Counters(0.0, 0.0, 0.0)

SECONDS = 1.0
"""Seconds between two readings: several times the time of a reply, and too seldom to be felt by the server."""

ReadCounters: TypeAlias = Callable[[], Counters | None]
"""Returns the counters of all replicas of a server; None if one of them has none, or cannot be reached."""


def parse_counters(text: str) -> Counters | None:
    """Return the counters of one server; None if the text lacks one of them.

    Args:
        text: Reply of `/metrics`.

    >>> parse_counters('''vllm:prompt_tokens_total{engine="0",model_name="m"} 120.0
    ... vllm:prompt_tokens_cached_total{engine="0",model_name="m"} 96.0
    ... vllm:generation_tokens_total{engine="0",model_name="m"} 1e+03''')
    Counters(prompt=120.0, cached=96.0, output=1000.0)
    """
    sums: dict[str, float] = {}
    for line in text.split("\n"):  # labels may hold other line separators
        found = _LINE.fullmatch(line)
        if found is not None:
            try:
                sums[found[1]] = sums.get(found[1], 0.0) + float(found[2])
            except ValueError:
                return None
    cached = next((name for name in _CACHED if name in sums), None)
    if cached is None or _PROMPT not in sums or _OUTPUT not in sums:
        return None
    return Counters(sums[_PROMPT], sums[cached], sums[_OUTPUT])


def add_counters(texts: Iterable[object]) -> Counters | None:
    """Return the counters of several servers together; None if one of them has none.

    Args:
        texts: Reply of `/metrics` of each.
    """
    found = [parse_counters(text) if isinstance(text, str) else None for text in texts]
    known = [counters for counters in found if counters is not None]
    return sum(known, NOTHING) if known and len(known) == len(found) else None


class CounterPoller:
    """Polls the counters of a server from a thread until it is closed.

    Args:
        read: Reads them. The first reading is taken at once.
        note: Called with what was counted since the reading before.
    """

    def __init__(self, read: ReadCounters, note: Callable[[Counters], None]) -> None:
        self._read = read
        self._note = note
        self._lock = Lock()
        self._end = Event()
        self._last = read()
        if self._last is not None:
            try:
                start_thread("server-counters", self._work)
            except ThreadLimitError:
                self._last = None

    @property
    def is_reliable(self) -> bool:
        """Whether every reading so far was more than the one before."""
        return self._last is not None

    def look(self) -> None:
        """Read the counters now; if that fails, or they went back, they are not read again."""
        with self._lock:
            if self._last is None:
                return
            before, now = self._last, self._read()
            counted = None if now is None else now - before
            self._last = now if counted is not None and counted.is_increase else None
            if counted is not None and self._last is not None:
                self._note(counted)

    def close(self) -> None:
        """End the thread."""
        self._end.set()

    def _work(self) -> None:
        while self.is_reliable and not self._end.wait(SECONDS):
            self.look()
