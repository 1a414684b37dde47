"""Examples chosen among labels: balanced, the same ones whatever the order, and what is left is a random sample."""

from contextlib import suppress

import numpy as np
import pytest

from metric_core.errors import SourceError
from metric_core.prompts.judge_questions import CLAIM, NO, YES, ask_verdict
from tasks.calibration.label_items import LabelItem
from tasks.calibration.prompt_examples import LONGEST, LabelledClaim, choose_examples


def claim(number: int, answer: str, question: str = "", length: int = 20) -> LabelledClaim:
    """Return a labelled claim whose digest, and that of its question, are in the order of the numbers."""
    item = LabelItem(str(number), str(number), f"{number:04}", question or f"{number:04}", 1.0)
    return LabelledClaim(item, ask_verdict(str(number), "x" * length), answer)


def numbers(labelled: list[LabelledClaim], count: int = 4) -> list[int]:
    """Return the numbers of the chosen claims, in the order in which they are shown."""
    return [int(each.texts[CLAIM]) for each in choose_examples(labelled, count, "faithfulness").examples]


def test_the_first_of_each_answer_are_chosen_in_turn_one_per_question() -> None:
    labelled = [claim(number, NO if number % 3 == 2 else YES) for number in range(30)]
    assert numbers(labelled) == [0, 2, 1, 5]
    assert numbers(labelled[::-1]) == [0, 2, 1, 5]
    assert numbers(labelled, 3) == [0, 2, 1]
    found = choose_examples(labelled, 4, "faithfulness")
    assert [each.answer for each in found.examples] == [YES, NO, YES, NO]
    assert found.aside.items == {f"{number:04}" for number in range(6)}, (
        "those that were passed over are set aside, too"
    )
    labelled[1] = claim(1, YES, question="0000")
    assert numbers(labelled) == [0, 2, 3, 5]
    assert choose_examples(labelled, 4, "faithfulness").aside.holds("0001", "")


def test_long_texts_are_passed_over_and_too_few_labels_are_refused() -> None:
    labelled = [claim(number, (NO, YES)[number % 2], length=LONGEST if number < 4 else 20) for number in range(30)]
    assert numbers(labelled, 2) == [5, 4]
    assert choose_examples(labelled, 2, "faithfulness").aside.holds("0000", "")
    with pytest.raises(
        SourceError, match=r"30 labels .* \(15 yes, 15 no\) are too few for 8 examples.* 4 are too long"
    ):
        numbers(labelled, 8)
    with pytest.raises(SourceError, match=r"\(30 yes, 0 no\)"):
        numbers([claim(number, YES) for number in range(30)])


def test_labels_that_are_left_are_a_random_sample() -> None:
    """Leaving out nothing but three examples of each answer would move a share of 80 % by more than a point."""
    generator = np.random.default_rng(5)
    left, others = [], []
    for _ in range(800):
        order = generator.permutation(10_000)[:150]
        labelled = [claim(int(number), YES if generator.random() < 0.8 else NO) for number in order]
        with suppress(SourceError):  # decided by what was set aside alone
            examples = choose_examples(labelled, 6, "faithfulness")
            chosen = {each.texts[CLAIM] for each in examples.examples}
            kept = [each for each in labelled if not examples.aside.holds(each.item.digest, each.item.question)]
            left.append(np.mean([each.answer == YES for each in kept]))
            others.append(np.mean([each.answer == YES for each in labelled if each.item.key not in chosen]))
    assert np.mean(left) == pytest.approx(0.8, abs=4 * np.std(left) / len(left) ** 0.5)
    assert np.mean(others) > 0.81
