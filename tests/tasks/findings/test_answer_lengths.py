"""A comparison warns of a difference that the lengths of the answers may explain."""

from pathlib import Path

from flows.results.gated_comparison import CompareOptions, compare_runs
from tasks.comparison.run_comparison import comparison_to_dict
from tasks.findings.answer_lengths.answer_lengths_finding import ComparedLengths
from tasks.reports.comparison.comparison_document import comparison_markdown
from tests.tasks.compared import ROWS, write_run

WORDS = [10 + 37 * i % 60 for i in range(ROWS)]


def write(folder: Path, times: int, *, by_length: bool) -> Path:
    levels = [0.9 - times * words / 250 if by_length else 0.9 - times / 5 - words % 7 / 50 for words in WORDS]
    return write_run(folder, levels, ["word " * (times * words) for words in WORDS])


def test_longer_answers_that_score_lower_are_named(tmp_path: Path) -> None:
    runs = [write(tmp_path / name, times, by_length=True) for name, times in (("a", 1), ("b", 2))]
    compared = compare_runs(runs[0], runs[1], CompareOptions())
    found = compared.find(ComparedLengths)
    assert found is not None
    assert found.effects.keys() == {"faithfulness", "noise_sensitivity"}
    assert found.effects["faithfulness"].explained < 0 < found.effects["noise_sensitivity"].explained
    text = comparison_markdown(compared)
    assert "answers of B are longer" in text
    assert "labels of rows of both runs can tell" in text
    assert comparison_to_dict(compared)["answer_lengths"]["faithfulness"]["after"] > 0


def test_scores_that_do_not_go_with_the_length_are_not(tmp_path: Path) -> None:
    runs = [write(tmp_path / name, times, by_length=False) for name, times in (("a", 1), ("b", 2))]
    assert compare_runs(runs[0], runs[1], CompareOptions()).find(ComparedLengths) is None
