"""Slices in a comparison and its gate: terminal, Markdown, page, JUnit and table."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from deployments.cli._support.print_document import print_document
from flows.config.gate_file import GateSettings
from flows.results.comparison_result import ComparisonResult
from flows.results.gated_comparison import CompareOptions, apply_gate, compare_runs
from metric_core.gates.rules import Outcome
from metric_core.statistics.comparison import ChangeOutcome
from tasks.comparison.run_comparison import RunComparison, comparison_to_dict
from tasks.comparison.run_pair import Matching
from tasks.findings.slices.slices_comparison import slices_of
from tasks.findings.slices.slices_words import worst_slices_first
from tasks.reports.comparison.comparison_document import comparison_document, comparison_markdown
from tasks.reports.comparison.comparison_page import comparison_page
from tasks.reports.comparison.junit import gate_junit_xml
from tests.tasks import sliced

GATE = GateSettings.model_validate(
    {
        "absolute": ["faithfulness >= 0.7 for each topic"],
        "regression": {"max_drop": 0.1, "slices": {"topic": ["travel", "returns"]}, "metrics": ["faithfulness"]},
        "small_slices": "skip",
    }
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a good run, and one whose rows about travel are poor."""
    folder = tmp_path_factory.mktemp("sliced")
    return sliced.write_run(folder / "a", poor=()), sliced.write_run(folder / "b", seed=2)


@pytest.fixture(scope="module")
def comparison(runs: tuple[Path, Path]) -> RunComparison:
    return compare_runs(*runs, CompareOptions(gate=GATE))


def test_slices_of_the_run_are_compared_by_default(comparison: RunComparison, runs: tuple[Path, Path]) -> None:
    assert {part.slice.column for part in slices_of(comparison)} == {"topic", "customer"}
    worse = {str(part.slice) for part in slices_of(comparison) if part.comparison.verdict is ChangeOutcome.WORSE}
    assert "topic travel" in worse
    assert "topic vacation" not in worse
    own = compare_runs(*runs, CompareOptions(matching=Matching(slices=("customer",))))
    assert {part.slice.column for part in slices_of(own)} == {"customer"}


def test_the_worst_come_first_and_small_slices_last(comparison: RunComparison) -> None:
    topics = [part for part in slices_of(comparison) if part.slice.column == "topic"]
    parts = [part for part in topics if part.comparison.metric == "faithfulness"]
    ordered = [str(part.slice) for part in worst_slices_first(parts)]
    assert ordered[0] == "topic travel"
    assert ordered[-1] == "topic returns"
    assert set(ordered[-3:]) == {"topic returns", "topic on-call", "no topic"}
    assert {str(part.slice) for part in parts if part.is_small} == set(ordered[-3:])


def test_the_gate_fails_in_its_slice_and_names_what_it_leaves_out(comparison: RunComparison) -> None:
    assert comparison.gate is not None
    outcomes = {(check.kind.value, check.subject): check.outcome for check in comparison.gate.checks}
    assert outcomes["absolute", "faithfulness, topic travel"] is Outcome.FAILED
    assert outcomes["absolute", "faithfulness, topic vacation"] is Outcome.PASSED
    assert outcomes["regression", "faithfulness, topic travel"] is Outcome.FAILED
    assert [sentence.split(": ", 1)[1] for sentence in comparison.gate.left_out] == [
        "left out for too few rows: topic on-call (12), topic returns (3), no topic (20)",
        "left out for too few rows: topic returns (3)",
    ]


def test_every_form_of_output_has_the_slices(comparison: RunComparison) -> None:
    console = Console(width=130, record=True, file=None)
    with console.capture() as captured:
        print_document(console, comparison_document(comparison, 3))
    assert comparison.gate is not None
    texts = [
        captured.get(),
        comparison_markdown(comparison),
        comparison_page(comparison),
        gate_junit_xml(comparison.gate, "run"),
    ]
    for text in texts:
        assert "travel" in text
        assert "left out for too few rows: topic on-call (12)" in text
    for text in texts[:3]:
        assert "7 by topic, 4 by customer (3 with fewer than 30 rows)" in text
    cases = [case.get("name") for case in ET.fromstring(texts[3].encode()).iter("testcase")]
    assert "faithfulness, topic travel: mean at least 0.7" in cases
    assert "<b>Caro" not in texts[2]
    assert "`customer <b>Caro</b>`" in texts[1]  # in a code span markup has no effect


def test_json_and_table_have_a_row_per_slice_and_metric(comparison: RunComparison) -> None:
    content = comparison_to_dict(comparison)
    assert content["slices"][0]["slice"] == {"column": "topic", "value": "vacation"}
    table = ComparisonResult(comparison).slices().to_pylist()
    assert len(table) == len(content["slices"]) == 11 * len(sliced.METRICS)
    assert {"column", "value", "metric", "a", "b", "difference", "low", "high", "p", "rows", "outcome"} <= set(table[0])


def test_a_comparison_without_slices_says_nothing_of_them(runs: tuple[Path, Path], tmp_path: Path) -> None:
    plain = sliced.write_run(tmp_path / "plain", seed=2, config={})
    whole = compare_runs(runs[0], plain, CompareOptions())
    assert slices_of(whole) == ()
    assert "Slices" not in comparison_page(whole) + comparison_markdown(whole)


def test_one_run_alone_is_checked_slice_by_slice(runs: tuple[Path, Path]) -> None:
    gate = GateSettings.model_validate({"absolute": ["faithfulness >= 0.7 for each customer"]})
    checked = apply_gate(runs[0], CompareOptions(gate=gate))
    assert checked.gate is not None
    assert checked.gate.outcome is Outcome.PASSED
    assert len(checked.gate.checks) == 4
