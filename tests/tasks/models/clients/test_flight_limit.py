"""More conversations are in flight while a server answers labels soon, and fewer when they wait."""

import pytest

from tasks.models.clients.lane import QUICK, SLOW, FlightLimit
from tasks.options.judge_server_options import ServerJudgeOptions


def reply(limit: FlightLimit, seconds: float, tokens: int = 16, *, is_full: bool = True, times: int = 1) -> int:
    for _ in range(times):
        limit.note_reply(seconds, 16, tokens, is_full=is_full)
    return limit.value


def test_the_limit_rises_while_a_full_server_answers_soon() -> None:
    limit = FlightLimit(128, 512)
    assert reply(limit, QUICK / 2) == 144
    assert reply(limit, QUICK / 2, is_full=False) == 144  # more would not be sent
    assert reply(limit, QUICK / 2, tokens=400) == 144  # texts take long anywhere
    assert reply(limit, (QUICK + SLOW) / 2) == 144
    assert reply(limit, QUICK / 2, times=100) == 512


def test_the_limit_falls_when_conversations_wait_but_not_below_its_start() -> None:
    limit = FlightLimit(128, 512)
    reply(limit, QUICK / 2, times=100)
    assert reply(limit, 2 * SLOW, times=2) == 480
    limit.note_refusal()
    assert limit.value == 240
    assert reply(limit, 2 * SLOW, times=100) == 128


@pytest.mark.parametrize(("given", "peak"), [({}, 512), ({"concurrency": 256}, 1024), ({"concurrency": 64}, 64)])
def test_who_asked_for_little_gets_no_more(given: dict[str, int], peak: int) -> None:
    assert ServerJudgeOptions.model_validate({"urls": ["http://localhost/v1"], **given}).peak_in_flight == peak
