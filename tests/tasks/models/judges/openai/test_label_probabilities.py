"""Tests of label probabilities: split labels, variants, ambiguous prefixes, missing labels."""

import pytest

from tasks.models.judges.openai.label_probabilities import TokenStep, label_probabilities
from tasks.models.judges.openai.request_body import ANSWER_FRAME, serialize_labels
from tasks.models.judges.openai.server_features import ChoiceConstraint

YES_NO = {"yes": "yes", "no": "no"}


def _step(text: str, **others: float) -> TokenStep:
    top = {name.replace("_", " "): p for name, p in others.items()}
    return TokenStep(text, top[text], list(top.items()))


def test_variants_and_prefixes_count_for_their_label() -> None:
    step = _step("yes", yes=0.3, y=0.1, ye=0.1, Yes=0.1, _YES=0.1, no=0.2, n=0.1)
    assert label_probabilities([step], YES_NO) == pytest.approx({"yes": 0.7, "no": 0.3})


def test_tokens_that_are_no_prefix_are_left_out() -> None:
    step = _step("yes", yes=0.3, no=0.1, not_=0.2, None_=0.2, The=0.2)
    assert label_probabilities([step], YES_NO) == pytest.approx({"yes": 0.75, "no": 0.25})


def test_labels_that_differ_only_in_case_are_distinguished() -> None:
    step = _step("A", A=0.6, a=0.4)
    assert label_probabilities([step], {"A": "A", "a": "a"}) == pytest.approx({"A": 0.6, "a": 0.4})


def test_a_label_in_several_tokens() -> None:
    labels = {name: name for name in ("score1_description", "score2_description", "none")}
    steps = [
        _step("score", score=0.8, none=0.1, s=0.1),  # "s" is a prefix of two labels: it counts for none
        _step("2", **{"2": 0.75, "1": 0.25}),
        TokenStep("_description", 1.0, [("_description", 1.0)]),
    ]
    total = 0.8 + 0.1
    expected = {"score1_description": 0.2 / total, "score2_description": 0.6 / total, "none": 0.1 / total}
    assert label_probabilities(steps, labels) == pytest.approx(expected)


def test_a_label_that_is_a_prefix_of_another_gets_the_rest() -> None:
    labels = {name: name for name in ("1", "10", "2")}
    first = _step("1", **{"1": 0.8, "2": 0.2})
    end = TokenStep("<|end|>", 0.75, [("<|end|>", 0.75), ("0", 0.25)])
    expected = pytest.approx({"1": 0.6, "10": 0.2, "2": 0.2})
    assert label_probabilities([first, end], labels) == expected
    continued = TokenStep("0", 0.25, [("<|end|>", 0.75), ("0", 0.25)])
    assert label_probabilities([first, continued], labels) == expected


def test_a_label_that_is_a_prefix_of_another_at_the_end_of_the_reply() -> None:
    labels = {name: name for name in ("1", "10")}
    assert label_probabilities([_step("1", **{"1": 1.0})], labels) == {"1": 1.0, "10": 0.0}


def test_a_token_of_spaces_before_the_label() -> None:
    steps = [TokenStep(" ", 0.5, [(" ", 0.5), ("yes", 0.5)]), _step("no", no=0.5, yes=0.5)]
    assert label_probabilities(steps, YES_NO) == pytest.approx({"yes": 0.75, "no": 0.25})


def test_a_missing_label_counts_as_0_only_if_negligible() -> None:
    sure = TokenStep("yes", 0.98, [("yes", 0.98), ("The", 0.0001)])
    unsure = TokenStep("yes", 0.02, [("The", 0.9), ("It", 0.05), ("yes", 0.02)])
    assert label_probabilities([sure], YES_NO) == {"yes": 1.0, "no": 0.0}
    assert label_probabilities([unsure], YES_NO) is None


def test_fewer_top_tokens_than_requested_leave_labels_unknown() -> None:
    alone = TokenStep("yes", 0.6)
    capped = TokenStep("yes", 0.6, [("yes", 0.6), ("Yes", 0.1)])
    for step in (alone, capped):
        assert label_probabilities([step], YES_NO) is None
    whole = TokenStep("yes", 0.6, [("yes", 0.6), ("The", 0.4)])
    assert label_probabilities([whole], YES_NO) == {"yes": 1.0, "no": 0.0}


def test_partial_characters_may_belong_to_any_label() -> None:
    labels = {"да": "да", "нет": "нет"}
    assert label_probabilities([TokenStep("\ufffd", 0.8, [("\ufffd", 0.8), ("да", 0.1), ("нет", 0.1)])], labels) is None
    assert label_probabilities([TokenStep("да", 0.8, [("да", 0.8), ("\ufffd", 0.1), ("нет", 0.1)])], labels) is None
    known = TokenStep("да", 0.75, [("да", 0.75), ("\ufffd", 0.001), ("нет", 0.249)])
    assert label_probabilities([known], labels) == pytest.approx({"да": 0.751, "нет": 0.249}, abs=0.001)


def test_no_label_no_probabilities() -> None:
    assert label_probabilities([_step("Well", Well=1.0)], YES_NO) is None
    assert label_probabilities([], YES_NO) is None


@pytest.mark.parametrize(
    "tokens",
    [
        ['{"', "answer", '":', ' "', "yes", '"}'],
        ['{"answer":"', "yes", '"', "}"],
        ['{"answer":', ' "yes', '"}'],
        ["{", '"answer"', ": ", '"', "y", "es", '"}'],
    ],
)
def test_labels_in_json(tokens: list[str]) -> None:
    steps = [
        TokenStep(token, 0.5, [(token, 0.5), (token.replace("y", "n").replace("es", "o"), 0.25)]) for token in tokens
    ]
    texts = serialize_labels(("yes", "no"), ChoiceConstraint.JSON_SCHEMA)
    found = label_probabilities(steps, texts, ANSWER_FRAME)
    assert found == pytest.approx({"yes": 2 / 3, "no": 1 / 3})


def test_labels_in_json_that_are_prefixes_of_each_other() -> None:
    steps = [
        TokenStep('{"answer": "', 1.0),
        TokenStep("1", 1.0, [("1", 1.0)]),
        TokenStep('"}', 0.75, [('"}', 0.75), ("0", 0.25)]),
    ]
    texts = serialize_labels(("1", "10"), ChoiceConstraint.JSON_SCHEMA)
    assert label_probabilities(steps, texts, ANSWER_FRAME) == pytest.approx({"1": 0.75, "10": 0.25})
