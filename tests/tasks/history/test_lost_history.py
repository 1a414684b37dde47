"""Histories that cannot be read, or were lost: comparisons say so, and gates over many nights are not decided."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from flows.config.gate_file import parse_gate
from flows.monitoring.gating import judge_run
from flows.results.gated_comparison import CompareOptions, apply_gate, compare_runs
from metric_core.gates.rules import GateResult
from tasks.comparison.run_comparison import comparison_to_dict
from tasks.comparison.run_pair import Matching
from tasks.history.catalogue import Catalogue
from tasks.reports.comparison.comparison_document import comparison_markdown
from tests.tasks.history.test_nightly_rows import GATE, Evaluation

ADDRESS_OF_NO_SERVER = "postgresql://127.0.0.1:9/history?connect_timeout=1"


def remove(file: Path) -> None:
    file.unlink()


def make_unreadable(file: Path) -> None:
    file.unlink()
    file.mkdir()  # root may read any file


def damage(file: Path) -> None:
    file.write_bytes(b"this is no database " * 400)


def give_another_layout(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE assay_history_format SET version = 99")


LOSSES: dict[str, tuple[Callable[[Path], None], str]] = {
    "missing": (remove, "lacks the run in "),
    "unreadable": (make_unreadable, "cannot be read: "),
    "damaged": (damage, "The file is damaged: "),
    "another layout": (give_another_layout, "has format 99"),
}


@pytest.fixture(params=LOSSES)
def loss(request: pytest.FixtureRequest) -> tuple[Callable[[Path], None], str]:
    return LOSSES[request.param]


@pytest.fixture
def nights(tmp_path: Path) -> tuple[Evaluation, list[Path]]:
    """Return an evaluation with four nights of other rows each, whose last gate fails by all of them."""
    evaluation = Evaluation(tmp_path)
    return evaluation, [evaluation.run(day, 1000 * day) for day in range(1, 5)]


def check(run: Path, **options: object) -> GateResult:
    found = apply_gate(run, CompareOptions(gate=parse_gate({**GATE, **options}, "the gate"))).gate
    assert found is not None
    return found


def test_a_gate_that_fails_by_earlier_nights_is_not_decided_without_them(
    nights: tuple[Evaluation, list[Path]], loss: tuple[Callable[[Path], None], str]
) -> None:
    evaluation, runs = nights
    take_away, said = loss
    assert check(runs[-1]).outcome == "failed"
    take_away(Path(evaluation.history))
    result = check(runs[-1], inconclusive="passed")
    assert result.outcome == "inconclusive", "what is not known does not count as passed"
    assert check(runs[-1], inconclusive="failed").outcome == "failed"
    [found] = result.checks
    assert found.is_unknown
    assert "the nights before it are not known: the history" in found.reason
    assert said in found.reason
    gated = judge_run(parse_gate({**GATE, "inconclusive": "passed"}, "the gate"), None, runs[-1], Matching())
    assert (gated.gate, gated.may_be_undecided) == ("inconclusive", False)
    assert said in next(gated.refusals())


def test_a_single_night_does_not_fail_for_a_year_whose_nights_are_not_known(tmp_path: Path) -> None:
    evaluation = Evaluation(tmp_path)
    run = evaluation.run(1, 0)
    strict = {"absolute": ["faithfulness >= 0.98"]}
    assert check(run, **strict).outcome == "failed"
    damage(Path(evaluation.history))
    assert check(run, **strict).outcome == "inconclusive"


def test_rules_that_need_no_earlier_nights_are_decided(
    nights: tuple[Evaluation, list[Path]], loss: tuple[Callable[[Path], None], str]
) -> None:
    evaluation, runs = nights
    loss[0](Path(evaluation.history))
    assert check(runs[-1], absolute=["faithfulness >= 0.5"]).outcome == "passed"
    assert check(runs[-1], absolute=["faithfulness.least >= 0.5"]).outcome == "failed"
    assert check(runs[-1], absolute=["faithfulness >= 0.98"], looks=1).outcome == "failed"


def test_a_comparison_says_that_the_earlier_runs_are_not_known(
    tmp_path: Path, loss: tuple[Callable[[Path], None], str]
) -> None:
    evaluation = Evaluation(tmp_path)
    runs = [evaluation.run(day, 0) for day in range(1, 7)]
    take_away, said = loss
    known = compare_runs(runs[-2], runs[-1], CompareOptions())
    assert known.unknown_runs == ""
    assert "the 4 runs before" in comparison_markdown(known)
    take_away(Path(evaluation.history))
    found = compare_runs(runs[-2], runs[-1], CompareOptions())
    assert said in found.unknown_runs
    assert comparison_to_dict(found)["unknown_runs"] == found.unknown_runs
    text = comparison_markdown(found)
    assert "Earlier runs of these rows would show it, but are not known: the history" in text


def test_a_history_server_that_is_down_is_named(tmp_path: Path) -> None:
    evaluation = Evaluation(tmp_path)
    runs = [evaluation.run(day, 0) for day in (1, 2)]
    for run in runs:
        evaluation.change_history(run, ADDRESS_OF_NO_SERVER)
    assert "127.0.0.1:9" in compare_runs(runs[0], runs[1], CompareOptions()).unknown_runs
    assert "127.0.0.1:9" in check(runs[-1]).checks[0].reason


def test_runs_recorded_elsewhere_are_not_missed(tmp_path: Path) -> None:
    evaluation, other = Evaluation(tmp_path / "a"), Evaluation(tmp_path / "b")
    runs = evaluation.run(1, 0), other.run(2, 0)
    assert compare_runs(*runs, CompareOptions()).unknown_runs == ""


def test_a_run_before_whose_folder_is_gone_leaves_the_gate_to_this_run_and_it_says_so(
    nights: tuple[Evaluation, list[Path]],
) -> None:
    evaluation, runs = nights
    runs[-2].rename(evaluation.folder / "moved")
    result = check(runs[-1])
    assert result.outcome == "inconclusive"
    [sentence] = result.left_out
    assert sentence.startswith("The gate decides by this run alone, since it is not known whether its rows are new: ")
    (evaluation.folder / "moved").rename(runs[-2])
    runs[0].rename(evaluation.folder / "moved")
    Catalogue(evaluation.history).record(runs[1])
    assert check(runs[-1]).left_out, "the second night could not be compared with the first one when it was recorded"
