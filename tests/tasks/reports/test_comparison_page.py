"""Comparison pages: their content, and hostile data."""

import base64
import hashlib
import re
from pathlib import Path

import pytest

from flows.results.gated_comparison import CompareOptions, compare_runs
from metric_core.records import Score
from metric_core.stages import Stage
from tasks.comparison.run_pair import Matching
from tasks.reports.comparison.comparison_page import comparison_page
from tests.tasks import compared
from tests.tasks.reports import folders
from tests.tasks.reports.parsed_page import Page

OURS = {
    *("html", "head", "meta", "link", "title", "style", "body", "a", "main", "header", "footer", "section", "details"),
    *("summary", "div", "p", "h1", "h2", "h3", "span", "bdi", "b", "strong", "wbr", "ul", "li", "dl", "dt", "dd"),
    *("table", "thead", "tbody", "tr", "th", "td", "svg", "line", "rect", "circle", "del", "ins"),
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    a, b = compared.write_hostile_pair(tmp_path_factory.mktemp("hostile"))
    return comparison_page(compare_runs(a, b, CompareOptions()))


def test_hostile_data_stays_text(hostile: str) -> None:
    page = Page(hostile)
    assert {tag for tag, _ in page.elements} <= OURS
    attributes = {name for _, found in page.elements for name in found}
    assert not {name for name in attributes if name.startswith("on") or name in {"style", "srcdoc", "src"}}
    links = {found["href"] for tag, found in page.elements if tag in {"a", "link"}}
    assert links == {"#rows", "data:,"}
    assert '<img src="https://evil.example/x.png"' in page.text
    assert "{{ 7 * 7 }}" in page.text


def test_the_policy_allows_our_style_and_nothing_else(hostile: str) -> None:
    [style] = re.findall(r"<style>(.*?)</style>", hostile, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    metas = [found for tag, found in Page(hostile).elements if tag == "meta"]
    policy = next(found["content"] for found in metas if found.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
    assert "script-src" not in policy
    assert "url(" not in style


def test_differences_between_runs_are_shown_before_scores(hostile: str) -> None:
    text = Page(hostile).text
    assert 0 < text.index("Not like for like") < text.index("Scores Means over")
    assert "judge backend: a in A, b in B" in text


def test_both_sides_show_their_evidence(hostile: str) -> None:
    text = Page(hostile).text
    assert "It opened in 1653." in text
    assert "not supported by the passages (0.25)" in text
    assert "noncommittal answer" in text
    assert folders.HOSTILE_ID in text


def test_the_worst_row_comes_first(tmp_path: Path) -> None:
    a, b = compared.write_run(tmp_path / "a", 0.8), compared.write_run(tmp_path / "b", 0.2, answer="In Cork.")
    page = Page(comparison_page(compare_runs(a, b, CompareOptions(top=2))))
    assert "-0.600" in page.text
    assert [found for tag, found in page.elements if tag == "span" and found.get("class") == "badge worse"]
    assert sum(found.get("class") == "changed-row" for _, found in page.elements) == 2
    assert "In Cork." in page.text
    assert "Passage 1, the same in both" in page.text


def test_equal_runs_have_a_page_too(tmp_path: Path) -> None:
    a = compared.write_run(tmp_path / "a", 0.8)
    assert "No score changed." in Page(comparison_page(compare_runs(a, a, CompareOptions()))).text


def test_rows_that_lost_their_scores_are_not_called_unchanged(tmp_path: Path) -> None:
    metrics = {"faithfulness": compared.METRICS["faithfulness"]}
    cells = {"a": Score.scored(0.5), "b": Score.failed("no usable reply from the judge")}
    runs = [
        folders.write_run(
            tmp_path / name,
            {"row": {"faithfulness": cell}},
            {Stage.SAMPLES: [{"row_id": "row", "row_number": 1, "response": "x"}]},
            metrics,
            {"status": "completed"},
        )
        for name, cell in cells.items()
    ]
    text = Page(comparison_page(compare_runs(runs[0], runs[1], CompareOptions()))).text
    assert "No row is scored in both runs" in text
    assert "1 row in both" in text
    assert "data/handbook.jsonl, 1 row " in text


def test_rows_matched_by_a_column_are_found_again(tmp_path: Path) -> None:
    a, b = compared.write_run(tmp_path / "a", 0.8), compared.write_run(tmp_path / "b", 0.2)
    options = CompareOptions(matching=Matching(match="user_input"), top=1)
    assert "Where are bikes repaired, 0?" in Page(comparison_page(compare_runs(a, b, options))).text
