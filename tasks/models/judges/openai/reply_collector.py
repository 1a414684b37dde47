"""Collect the replies to each question and create its answer once the last of them has arrived."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from tasks.models.clients.replica import Reply

A = TypeVar("A")


class ReplyCollector(Generic[A]):
    """A collector of the replies to a batch of questions.

    Args:
        expected: Number of replies per question.
        make_answer: Creates the answer to the question at a position from its replies, in the order of its requests.
        on_answer: Called with each answer as soon as it is created.
    """

    def __init__(
        self,
        expected: Sequence[int],
        make_answer: Callable[[int, Sequence[Reply]], A],
        on_answer: Callable[[int, A], None] | None,
    ) -> None:
        self._missing = list(expected)
        self._replies: list[list[Reply | None]] = [[None] * number for number in expected]
        self._answers: list[A | None] = [None] * len(expected)
        self._make_answer = make_answer
        self._on_answer = on_answer

    @property
    def answers(self) -> list[A]:
        """The answers in the order of the questions; complete once all replies have arrived."""
        return [answer for answer in self._answers if answer is not None]

    def add(self, position: int, number: int, reply: Reply) -> None:
        """Add the reply to a question's request of this number."""
        replies = self._replies[position]
        replies[number] = reply
        self._missing[position] -= 1
        if self._missing[position] == 0:
            self.set_answer(position, self._make_answer(position, [one for one in replies if one is not None]))
            replies.clear()

    def set_answer(self, position: int, answer: A) -> None:
        """Set the answer to a question that needs no further reply."""
        self._answers[position] = answer
        if self._on_answer is not None:
            self._on_answer(position, answer)
