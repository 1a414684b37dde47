"""The certificate of a judge: how its questions are chosen, and which faults it names."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.judge_check import BUDGET, JUDGES, PlantedJudge, check, draw_claims
from metric_core.calibration.judge_check import JudgedClaim, Moved, assess, choose_questions, p_more_often
from metric_core.calibration.planted_changes import CheckedClaim, Effect


@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.name)
def test_the_certificate_names_the_fault_of_a_judge_and_no_other(judge: PlantedJudge) -> None:
    result, asked = check(replace(judge, noise=min(judge.noise, 1.0)), np.random.default_rng(12))
    named = {each.change for each in result.findings if each.is_fault}
    assert named <= set(judge.faults)
    assert named or not judge.faults
    assert asked <= judge.budget


def test_each_change_has_as_many_rows_half_of_them_supported_and_no_row_twice() -> None:
    claims = [replace(each, verdict=at % 2) for at, each in enumerate(draw_claims(np.random.default_rng(1)))]
    questions = choose_questions(claims, BUDGET, is_fixed=True)
    by_change = Counter(each.change.name for each in questions)
    assert set(by_change.values()) == {BUDGET // 11}
    for name in by_change:
        chosen = [each.judged for each in questions if each.change.name == name]
        assert len({each.row for each in chosen}) == len(chosen)
        effect = next(each.change.effect for each in questions if each.change.name == name)
        supported = sum(each.verdict for each in chosen)
        assert supported == (len(chosen) if effect is Effect.MOVE else len(chosen) // 2)


def test_rows_are_shared_by_changes_as_little_as_possible() -> None:
    claims = draw_claims(np.random.default_rng(1))
    uses = Counter(each.judged.row for each in choose_questions(claims, 150, is_fixed=True))
    assert max(uses.values()) == 1


def test_a_change_takes_the_next_claim_where_it_finds_nothing_to_change() -> None:
    texts = {"a": "It rains.", "b": "It was 7 degrees.", "c": "It is wet."}
    claims = [JudgedClaim(row, CheckedClaim(text, ("Rain.",)), 1) for row, text in texts.items()]
    chosen = choose_questions(claims, 11, is_fixed=True)
    assert [each.judged.row for each in chosen if each.change.name == "number"] == ["b"]


def move(name: str, moved: int, was: int | None = None) -> list[Moved]:
    """Verdicts after a change, of which the first have moved; every other one was yes, or all were the same."""
    return [Moved(name, f"{name} {at}", at < moved, at % 2 if was is None else was) for at in range(40)]


def find_faults(*verdicts: list[Moved]) -> list[str]:
    found = assess([each for part in verdicts for each in part], 0.5).findings
    return [each.change for each in found if each.is_fault]


def test_a_change_that_moves_no_more_verdicts_than_others_is_no_fault() -> None:
    assert find_faults(move("order", 14), move("format", 0), move("paraphrase", 1)) == ["order"]
    assert find_faults(move("order", 14), move("format", 12), move("paraphrase", 13)) == []


def test_a_change_that_moves_verdicts_in_both_directions_misleads_nobody() -> None:
    one_way = [Moved("injection", f"row {at}", at % 2 == 0 and at < 28, at % 2) for at in range(40)]
    calm = (move("order", 0), move("format", 1))
    assert find_faults(one_way, *calm) == ["injection"]
    assert find_faults(move("injection", 14), *calm) == []


def test_a_change_that_must_move_is_compared_with_idle_ones() -> None:
    calm = (move("order", 1), move("format", 1))
    assert find_faults(move("number", 25, 1), move("name", 39, 1), *calm) == ["number"]
    assert find_faults(move("number", 25, 1), move("name", 26, 1), *calm) == []
    assert find_faults(move("number", 4, 1), move("name", 3, 1), *calm) == ["number", "name"]
    assert (
        find_faults(
            move("number", 25, 1),
            move("name", 39, 1),
            move("order", 14),
            move("format", 14),
        )
        == []
    )


def test_the_flip_rate_is_over_the_changes_that_must_not_move() -> None:
    moved = [Moved("order", f"r{at}", at == 0, at % 2) for at in range(10)]
    moved += [Moved("number", f"s{at}", True, 1) for at in range(10)]
    result = assess(moved, 0.5)
    assert (result.flips.value, result.asked) == (0.1, 10)
    assert [(each.change, each.wrong) for each in result.findings] == [("order", 1), ("number", 0)]
    few = assess(moved[:4], 0.5)
    assert few.flips.interval is None
    assert [each.p for each in few.findings] == [1.0]


def test_more_often_is_the_tail_of_the_hypergeometric_distribution() -> None:
    stats = pytest.importorskip("scipy.stats")
    for counts in ((5, 21, 0, 42), (3, 10, 2, 20), (0, 5, 5, 5)):
        count, of, other, of_others = counts
        expected = stats.fisher_exact([[count, of - count], [other, of_others - other]], alternative="greater").pvalue
        assert p_more_often(*counts) == pytest.approx(expected)
