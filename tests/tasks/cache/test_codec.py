"""Values survive a round trip; bytes that are not a value are refused and never executed."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metric_core.records import AnswerStatus
from tasks.cache.codec import CHOICES, ENTITIES, GENERATED, vectors
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer
from tasks.models.recognizers.protocol import Entity
from tasks.runtime.usage import Usage

any_text = st.text(st.characters(codec=None))
numbers = st.floats(allow_nan=False, allow_infinity=False)
usages = st.builds(Usage, *[st.integers(0, 10**9)] * 4, numbers)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | numbers | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(any_text).map(tuple), st.none() | st.dictionaries(any_text, numbers), st.none() | any_text, usages)
def test_choices_survive(
    votes: tuple[str, ...], probabilities: dict[str, float] | None, reply: str | None, usage: Usage
) -> None:
    answer = ChoiceAnswer(AnswerStatus.ANSWERED, votes, probabilities, reply=reply, usage=usage)
    found = CHOICES.decode(CHOICES.encode(answer) or b"")
    assert found == ChoiceAnswer(AnswerStatus.ANSWERED, votes, probabilities, reply=reply, usage=usage, stored=True)


@given(json_values, st.none() | any_text, usages)
def test_generated_values_survive(value: object, reply: str | None, usage: Usage) -> None:
    answer = GenerateAnswer(AnswerStatus.ANSWERED, value, reply=reply, usage=usage)
    found = GENERATED.decode(GENERATED.encode(answer) or b"")
    assert found == GenerateAnswer(AnswerStatus.ANSWERED, value, reply=reply, usage=usage, stored=True)


@given(st.lists(st.builds(Entity, any_text, any_text)))
def test_entities_survive(entities: list[Entity]) -> None:
    assert ENTITIES.decode(ENTITIES.encode(entities) or b"") == entities


@given(st.lists(st.floats(width=32), min_size=3, max_size=3))
def test_vectors_survive_bit_by_bit(values: list[float]) -> None:
    vector = np.array(values, np.float32)
    codec = vectors(3)
    assert codec.decode(codec.encode(vector) or b"").tobytes() == vector.tobytes()


@pytest.mark.parametrize("status", [AnswerStatus.FAILED, AnswerStatus.UNDEFINED])
def test_a_result_without_an_answer_is_not_cached(status: AnswerStatus) -> None:
    assert CHOICES.encode(ChoiceAnswer(status, reason="cut off")) is None
    assert GENERATED.encode(GenerateAnswer(status, reason="cut off")) is None


def test_an_answer_that_lacks_a_vote_is_not_cached() -> None:
    assert CHOICES.encode(ChoiceAnswer(AnswerStatus.ANSWERED, ("yes", None, "yes"))) is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"bytes"])
def test_value_that_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        GENERATED.encode(GenerateAnswer(AnswerStatus.ANSWERED, value))


class _Trap:
    """An object that raises when it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return (_spring, ())


def _spring() -> None:
    raise AssertionError("a planted pickle was run")


def test_bytes_that_are_no_value() -> None:
    cases: list[object] = [CHOICES, GENERATED, ENTITIES, vectors(2)]
    for content in [
        b"",
        b"{",
        b"[]x",
        b"null",
        b"7",
        b"{}",
        b'[["a"]]',
        b'{"votes":[1],"probabilities":null}',
        pickle.dumps(_Trap()),
    ]:
        for codec in cases:
            with pytest.raises((ValueError, KeyError, TypeError)):
                codec.decode(content)  # type: ignore[attr-defined]


def test_keys_depend_on_the_boundaries_of_their_parts() -> None:
    keys = {
        CHOICES.key("ab", "c"),
        CHOICES.key("a", "bc"),
        CHOICES.key("abc"),
        GENERATED.key("abc"),
        CHOICES.key("abc", ""),
    }
    assert len(keys) == 5
    assert CHOICES.key("a", "b") == CHOICES.key("a", "b")
    assert all(len(key) == 32 for key in keys)
