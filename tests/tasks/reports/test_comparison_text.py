"""A comparison as Markdown, and a gate as JUnit XML."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from markdown_it import MarkdownIt

from flows.config.gate_file import GateSettings
from flows.results.gated_comparison import CompareOptions, compare_runs
from metric_core.gates.rules import Check, Gate, GateResult, Outcome, RuleKind
from tasks.comparison.run_pair import Matching
from tasks.documents.comparison.comparison_words import level_sentence
from tasks.reports.comparison.comparison_document import comparison_markdown
from tasks.reports.comparison.comparison_passages import passages_side_by_side
from tasks.reports.comparison.junit import gate_junit_xml
from tasks.reports.comparison.word_diff import diff_words
from tests.tasks import compared
from tests.tasks.reports import folders

GATE = GateSettings.model_validate({"absolute": ["faithfulness >= 0.5"], "regression": {"max_drop": 0.02}})


def text_of(tmp_path: Path, level: float) -> str:
    a, b = compared.write_run(tmp_path / "a", 0.8), compared.write_run(tmp_path / "b", level, answer="In Cork.")
    return comparison_markdown(compare_runs(a, b, CompareOptions(gate=GATE, top=1)))


def test_the_markdown_says_what_differs_then_the_gate_then_the_scores(tmp_path: Path) -> None:
    lines = text_of(tmp_path, 0.2).splitlines()
    assert lines[:3] == ["## Comparison of two runs", "", "**🔴 gate failed**"]
    assert "**2 metrics worse, 1 not compared**" in lines
    assert "- `40 rows in both (what differs: response in 40)`" in lines
    faithfulness = "0.849 | 0.249 | -0.600 | -0.617 to -0.509 | &lt;0.001 | 40 | 🔴 worse |"
    assert any(line.startswith("| `faithfulness` |") and line.endswith(faithfulness) for line in lines)
    noise = "0.051 | 0.651 | +0.600 | +0.510 to +0.617 | &lt;0.001 | 40 | 🔴 worse |"
    assert any(line.startswith("| `noise_sensitivity ↓` |") and line.endswith(noise) for line in lines)
    assert "| `row-00` | `faithfulness` 🔴 0.800→0.200, `noise_sensitivity` 🔴 0.100→0.700 |" in lines


def test_added_and_removed_rows_get_a_hint_to_match_by_a_column(tmp_path: Path) -> None:
    a, b = (compared.write_run(tmp_path / name, 0.8, first=first) for name, first in (("a", 0), ("b", 10)))
    text = comparison_markdown(compare_runs(a, b, CompareOptions()))
    assert "30 rows in both, 10 only in A, 10 only in B" in text
    assert "--match user_input" in text


def test_the_judgments_of_the_run_are_described(tmp_path: Path) -> None:
    a, b = (compared.write_run(tmp_path / name, 0.8) for name in "ab")
    manifest = json.loads((b / "run.json").read_text())
    change = {"row": "<q7>", "state": "edited", "text": "The fee is 40.", "change": "'40' became '45'"}
    counts = {"carried": 96, "edited": 1, "uncertain": 2, "lost": 1, "unseen": 0, "passages": 200, "new": 6}
    manifest["judgments"] = {**counts, "is_complete": True, "changes": [change]}
    (b / "run.json").write_text(json.dumps(manifest))
    text = comparison_markdown(compare_runs(a, b, CompareOptions()))
    assert (
        "`judgments of B: carried 96 %, lost 1 %, 2 uncertain, 1 whose evidence was edited: <q7> ('40' became '45'); "
        "3 % of passages have none`"
    ) in text


def test_questions_that_retired_and_new_ones_are_counted_apart(tmp_path: Path) -> None:
    written = {"question_kind": "single_fact", "since": "1", "written_from": ["d"]}
    a, b = (
        compared.write_run(tmp_path / name, 0.8, first=first, rows=rows, extras=written)
        for name, first, rows in (("a", 0, 40), ("b", 10, 35))
    )
    comparison = compare_runs(a, b, CompareOptions())
    text = comparison_markdown(comparison)
    assert (
        "30 rows in both, 10 only in A (retired questions from the index), 5 only in B (new questions from the index)"
    ) in text
    assert "questions that both versions of the index answer" in text
    assert "--match user_input" not in text
    assert {metric.rows.paired for metric in comparison.metrics if metric.difference} == {30}


def test_hostile_data_stays_in_code_spans(tmp_path: Path) -> None:
    a, b = compared.write_hostile_pair(tmp_path)
    text = comparison_markdown(compare_runs(a, b, CompareOptions()))
    assert "> [!WARNING]" in text
    outside = "".join(part for line in text.splitlines() for part in line.split("`")[::2])
    assert "<img" not in outside
    assert "<script" not in outside
    assert text.count("`") % 2 == 0


def compare_by_hostile_names(tmp_path: Path) -> str:
    """Return a comparison whose column of groups and slices, and values of it, have names that are markup."""
    attack = r"\|[x](https://evil.example) ![x](https://evil.example/x) @all \\| <b>" + "\x1b"
    runs: list[Path] = []
    for name, level in (("a", 0.8), ("b", 0.2)):
        run = compared.write_run(tmp_path / name, level)
        table = pq.read_table(run / "stages/samples.parquet")
        extras = pa.array([json.dumps({attack: f"{attack} {i % 2}", "row": i}) for i in range(table.num_rows)])
        position = table.column_names.index("extras")
        pq.write_table(table.set_column(position, table.schema.field("extras"), extras), run / "stages/samples.parquet")
        runs.append(run)
    matching = Matching(by=attack, slices=(attack,))
    return comparison_markdown(compare_runs(runs[0], runs[1], CompareOptions(matching=matching)))


def count_names(text: str) -> int:
    """Return how often the names of `compare_by_hostile_names` are in code spans; they are nowhere else."""
    tokens = [each for block in MarkdownIt("commonmark").enable("table").parse(text) for each in block.children or ()]
    assert not {token.type for token in tokens} & {"link_open", "image", "html_inline"}
    assert "@all" not in "".join(token.content for token in tokens if token.type != "code_inline")
    assert "\x1b" not in text
    return sum("@all" in token.content for token in tokens)


def test_names_of_columns_and_values_are_no_markup(tmp_path: Path) -> None:
    assert count_names(compare_by_hostile_names(tmp_path)) > 0


def test_a_command_of_a_reason_stays_in_a_code_span(tmp_path: Path) -> None:
    run = compared.write_run(tmp_path / "a", 0.8)
    hostile = "m`|<img>"
    reason = f"it was never measured <b>; measure it with `assay calibrate --metric '{hostile}'`, and <b>again"
    found = replace(
        compare_runs(run, run, CompareOptions(gate=GATE)),
        gate=GateResult.from_checks([check(Outcome.INCONCLUSIVE, reason)], Gate()),
    )
    [line] = [line for line in comparison_markdown(found).splitlines() if "never measured" in line]
    assert "measured &lt;b&gt;; measure it with `assay calibrate --metric 'm'\\|<img>'`, and &lt;b&gt;again" in line


def check(outcome: Outcome, reason: str = "why") -> Check:
    return Check(
        kind=RuleKind.ABSOLUTE,
        metric=f"m \x00 <{outcome}>",
        rule="mean at least 0.8",
        outcome=outcome,
        observed=0.5,
        interval=None,
        p=None,
        rows=9,
        reason=reason,
    )


def test_junit_has_a_case_a_rule() -> None:
    checks = [check(outcome, folders.ATTACK) for outcome in Outcome]
    root = ET.fromstring(gate_junit_xml(GateResult.from_checks(checks, Gate()), "runs/b"))
    [suite] = root
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "3", "failures": "1", "errors": "0", "skipped": "1"}
    assert [case.get("classname") for case in suite] == ["gate.absolute"] * 3
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "observed 0.500" in (failure.text or "")


def test_inconclusive_gate_that_counts_as_failed_is_a_failure() -> None:
    result = GateResult(Outcome.FAILED, (check(Outcome.INCONCLUSIVE),), 0.95)
    root = ET.fromstring(gate_junit_xml(result, "runs/b"))
    assert (root.get("failures"), root.get("skipped")) == ("1", "0")


def test_words_that_differ_are_marked_on_their_side() -> None:
    a, b = diff_words("You must use them by 31 May.", "You must use them by 31 March.")
    assert [piece.text for piece in a if piece.is_changed] == ["May"]
    assert [piece.text for piece in b if piece.is_changed] == ["March"]
    assert "".join(piece.text for piece in a) == "You must use them by 31 May."


@pytest.mark.parametrize(("a", "b"), [("same", "same"), ("", "new"), ("All of it is gone.", "x"), ("w " * 3000, "v")])
def test_texts_with_nothing_in_common_are_not_marked(a: str, b: str) -> None:
    assert [piece.is_changed for piece in diff_words(a, b)[0]] == [False]


def test_passages_stay_move_change_come_and_go() -> None:
    old = ["Stays where it is.", "Moves up.", "Was told in these few words.", "Goes away.", "Moves."]
    new = ["Stays where it is.", "Moves.", "Was told in these many words.", "Moves up.", "Something else entirely"]
    found = [(p["kind"], p["rank_a"], p["rank_b"]) for p in passages_side_by_side(old, new)]
    assert found == [
        ("same", 1, 1),
        ("moved", 5, 2),
        ("changed", 3, 3),
        ("moved", 2, 4),
        ("new", None, 5),
        ("gone", 4, None),
    ]


def test_a_gate_promises_nothing_of_rows_that_move_together() -> None:
    sentence = level_sentence(GateResult(Outcome.PASSED, (), 0.95))
    assert "If every true value meets its threshold, the gate fails in at most 5 % of runs; a rule whose" in sentence
    assert "fails in at most 5 % of runs; a rule whose true value misses its threshold passes in at most" in sentence
