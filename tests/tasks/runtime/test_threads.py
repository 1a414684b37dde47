"""A function is applied to many arguments at the same time."""

import threading

import pytest

from tasks.runtime.threads import map_threads
from tests.waiting import DEAD_SECONDS


def test_results_come_in_the_order_of_the_arguments() -> None:
    later = threading.Event()

    def work(number: int) -> int:
        if number:
            later.set()
        else:
            assert later.wait(DEAD_SECONDS)
        return -number

    assert map_threads(work, range(4), at_once=2) == [0, -1, -2, -3]


@pytest.mark.parametrize("arguments", [[], [3]])
def test_a_single_call_needs_no_thread(arguments: list[int]) -> None:
    threads = map_threads(lambda _: threading.current_thread(), arguments, at_once=2)
    assert threads == [threading.current_thread()] * len(arguments)


def test_the_error_of_a_call_is_raised() -> None:
    def work(number: int) -> int:
        return 1 // number

    with pytest.raises(ZeroDivisionError):
        map_threads(work, [1, 0, 2], at_once=2)
