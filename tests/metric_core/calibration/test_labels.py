"""Labels as numbers: every way in which files write yes and no, and unreadable labels."""

from typing import Any

import numpy as np
import pytest

from metric_core.calibration.labels import (
    GivenLabel,
    LabelRules,
    Scale,
    SettledLabels,
    describe_model_annotators,
    read_labels,
    settle_labels,
)
from metric_core.calibration.random_sample import describe_strictness
from metric_core.errors import ConfigError, SourceError


def read(*cells: Any, **rules: Any) -> tuple[Scale, list[float], int]:
    found = read_labels(dict(zip("abcdefgh", cells, strict=False)), LabelRules("label", **rules))
    return found.scale, list(found.values.values()), found.unlabelled


@pytest.mark.parametrize("cells", [(1, 0), (True, False), ("yes", "No "), ("TRUE", "false"), ("1", "0"), (1.0, "no")])
def test_yes_and_no_in_any_writing(cells: tuple[Any, Any]) -> None:
    assert read(*cells) == (Scale.BINARY, [1.0, 0.0], 0)


@pytest.mark.parametrize(
    ("positive", "cells"),
    [
        ("supported", ("Supported", "partly")),
        ("0", (0, 1)),
        ("false", (False, True)),
        ("1", (1.0, 3)),
        ("no", ("no", "yes")),
    ],
)
def test_the_label_that_means_yes_can_be_named(positive: str, cells: tuple[Any, Any]) -> None:
    assert read(*cells, positive=positive) == (Scale.BINARY, [1.0, 0.0], 0)


def test_grades_are_unchanged() -> None:
    assert read(1, "2.5", 4) == (Scale.GRADED, [1.0, 2.5, 4.0], 0)
    assert read(0, 1, span=(0, 2))[0] is Scale.GRADED


def test_empty_cells_are_no_labels() -> None:
    assert read(1, None, 0, "", " ", float("nan")) == (Scale.BINARY, [1.0, 0.0], 4)


@pytest.mark.parametrize(
    ("cells", "rules", "words"),
    [
        (("good", "bad"), {}, "the label 'good' in 'label' is neither a number nor yes, no, true or false"),
        (([1, 0], 1), {}, "is neither a number"),
        ((float("inf"), 1), {}, "is neither a number"),
        ((1, 1, 1), {}, "all 3 labels in 'label' are the same"),
        ((None, ""), {}, "has no labels: all 2 rows are empty there"),
    ],
)
def test_labels_that_cannot_be_used_say_why(cells: tuple[Any, ...], rules: dict[str, Any], words: str) -> None:
    with pytest.raises(SourceError, match=words.replace("[", r"\[")):
        read(*cells, **rules)


def test_invalid_rules_are_reported_with_the_labels() -> None:
    with pytest.raises(ConfigError, match="no label in 'label' is 'fine'; there are bad, good"):
        read("good", "bad", positive="fine")
    with pytest.raises(ConfigError, match="go from 1 to 5, which is outside of the range 1 to 4"):
        read(1, 5, span=(1, 4))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("model: our-tuned-one", "1 labels are by a model ('model: our-tuned-one')"),
        ("openai/gpt-4o-mini", "by a model"),
        ("claude-sonnet-4", "by a model"),
        ("Qwen3-8B", "by the judge itself"),
        ("model:qwen/qwen3-8b", "by the judge itself"),
        ("Claude", ""),
        ("Gemma Lee", ""),
        ("philippa 2", ""),
        ("annotator-7", ""),
    ],
)
def test_a_model_that_labels_is_recognized_by_its_name(name: str, words: str) -> None:
    found = describe_model_annotators({name: 1, "anna": 5}, "Qwen/Qwen3-8B")
    assert words in found
    assert bool(found) == bool(words)


def settle(*given: tuple[str, float | None] | tuple[str, float | None, str]) -> SettledLabels:
    """Labels of one item by several people, in the order of time; the third value marks the final one."""
    return settle_labels(
        GivenLabel("item", name, label, f"2026-11-26T00:00:{second:02}Z", bool(final))
        for second, (name, label, *final) in enumerate(given)
    )


@pytest.mark.parametrize(
    ("given", "label"),
    [
        ([("a", 1)], 1.0),
        ([("a", 1), ("b", 1), ("c", 0)], 1.0),
        ([("a", 1), ("b", 0)], None),
        ([("a", 1), ("b", 0), ("b", 1)], 1.0),  # b has changed their mind
        ([("a", 1), ("b", 0), ("c", 0, "final"), ("c", 1, "final")], 1.0),
        ([("c", 0, "final"), ("a", 1), ("b", 1)], 0.0),
        ([("a", 1), ("b", None)], 1.0),
        ([("a", 3), ("b", 4)], 3.5),
        ([("a", 2), ("b", 4)], None),
    ],
)
def test_several_people_settle_on_a_label_or_contest_it(given: list[Any], label: float | None) -> None:
    found = settle(*given)
    assert found.values == ({} if label is None else {"item": label})
    assert found.contested == (("item",) if label is None else ())
    assert found.undecided == 0


def test_what_nobody_can_decide_is_counted_and_a_final_label_is_no_agreement() -> None:
    found = settle(("a", None), ("b", None))
    assert (found.values, found.contested, found.undecided, found.annotators) == ({}, (), 1, {})
    found = settle(("a", 1), ("c", 1, "final"))
    assert (found.shared, found.alpha, found.annotators) == (0, None, {"a": [1], "c": [1]})


def test_people_of_different_strictness_are_told_apart_and_equal_ones_seldom() -> None:
    generator = np.random.default_rng(2)
    found, false = 0, 0
    for _ in range(300):
        strict, mild, other = ((generator.random(100) < share).astype(float).tolist() for share in (0.6, 0.85, 0.85))
        found += bool(describe_strictness({"anna": strict, "ben": mild}))
        false += bool(describe_strictness({"ben": mild, "cleo": other, "nobody": [1.0]}))
    assert found >= 280
    assert false <= 6
