"""Work is repeated while its errors may pass, after the pauses that each caller had measured."""

import asyncio

import pytest

from tasks.models.clients import replica_pool
from tasks.runtime import database
from tasks.runtime.retry import Backoff, retry, retry_async
from tasks.sources.retrievers import fetcher


class _Work:
    """Fails some times, then returns the number of its calls."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        if self.calls <= self.failures:
            raise ConnectionError(f"failure {self.calls}")
        return self.calls

    async def wait(self) -> int:
        return self()


def _twice(_error: Exception, attempt: int) -> float | None:
    return 0.25 * attempt if attempt <= 2 else None


def test_work_is_repeated_after_each_pause() -> None:
    pauses: list[float] = []
    assert retry(_Work(2), _twice, pauses.append) == 3
    assert pauses == [0.25, 0.5]


def test_the_last_error_is_raised() -> None:
    with pytest.raises(ConnectionError, match="failure 3"):
        retry(_Work(3), _twice, lambda _seconds: None)


def test_an_error_without_a_pause_is_raised_at_once() -> None:
    work = _Work(1)
    with pytest.raises(ConnectionError, match="failure 1"):
        asyncio.run(retry_async(work.wait, lambda _error, _attempt: None))
    assert work.calls == 1


def test_asynchronous_work_is_repeated() -> None:
    assert asyncio.run(retry_async(_Work(2).wait, lambda _error, _attempt: 0.0)) == 3


@pytest.mark.parametrize(
    ("backoff", "pauses"),
    [
        (fetcher._BACKOFF, [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]),
        (database._BACKOFF, [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5]),
        (replica_pool.PROBES, [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0]),
    ],
)
def test_the_longest_pauses_of_the_callers(backoff: Backoff, pauses: list[float]) -> None:
    assert [backoff.seconds(attempt, 1.0) for attempt in range(1, 9)] == pytest.approx(pauses)
    assert backoff.seconds(10_000, 1.0) == backoff.longest


def test_pauses_of_the_cache_are_random_down_to_none() -> None:
    assert database._BACKOFF.seconds(3, 0.0) == 0.0
    assert fetcher._BACKOFF.seconds(3, 0.0) == 0.8
