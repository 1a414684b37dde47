"""Gathers the replies to each question and makes its answer as soon as the last of them is in."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from tasks.model_clients.replica import Reply

A = TypeVar("A")


class ReplyCollector(Generic[A]):
    """The answers of a batch of questions, each made once.

    Args:
        wanted: how many replies each question gets.
        answer: makes the answer to the question at a position from its replies, in the order of its requests.
        keep: hears of each answer as soon as it is made.
    """

    def __init__(
        self,
        wanted: Sequence[int],
        answer: Callable[[int, Sequence[Reply]], A],
        keep: Callable[[int, A], None] | None,
    ) -> None:
        self._missing = list(wanted)
        self._replies: list[list[Reply | None]] = [[None] * number for number in wanted]
        self._answers: list[A | None] = [None] * len(wanted)
        self._answer = answer
        self._keep = keep

    @property
    def answers(self) -> list[A]:
        """All answers, in the order of the questions. To be read when all replies are in."""
        return [answer for answer in self._answers if answer is not None]

    def add(self, position: int, number: int, reply: Reply) -> None:
        """Takes the reply to a question's request of this number."""
        replies = self._replies[position]
        replies[number] = reply
        self._missing[position] -= 1
        if self._missing[position] == 0:
            self.settle(position, self._answer(position, [one for one in replies if one is not None]))
            replies.clear()

    def settle(self, position: int, answer: A) -> None:
        """Takes the answer to a question that needs no further reply."""
        self._answers[position] = answer
        if self._keep is not None:
            self._keep(position, answer)
