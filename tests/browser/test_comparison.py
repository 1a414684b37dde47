"""Comparison pages in a browser: hostile texts are inert, nothing overflows, axe finds no violation."""

from pathlib import Path

import pytest

from flows.config.gate_file import GateSettings
from flows.results.gated_comparison import CompareOptions, compare_runs
from metric_core.records import Score
from metric_core.stages import Stage
from tasks.reports.comparison.comparison_page import comparison_page
from tests.browser.conftest import OpenPage
from tests.tasks import compared
from tests.tasks.reports import folders

pytestmark = pytest.mark.browser

GATE = GateSettings.model_validate({"absolute": ["faithfulness >= 0.99"], "coverage": {"scored_at_least": 0.1}})


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a comparison with a gate, of two runs with texts that attack the page."""
    folder = tmp_path_factory.mktemp("compared")
    path = folder / "comparison.html"
    found = compare_runs(*compared.write_hostile_pair(folder), CompareOptions(gate=GATE))
    path.write_text(comparison_page(found), encoding="utf-8")
    return path


def test_hostile_rows_are_shown_as_inert_text(open_page: OpenPage, page_file: Path) -> None:
    page = open_page(page_file)
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    assert page.locator("script, img, iframe, object, form, [onerror], [onload], [onclick]").count() == 0
    assert folders.ATTACK[:40] in page.inner_text("body")
    assert page.title().endswith("rag-assay comparison")


def test_both_sides_of_a_row_open_by_keyboard(open_page: OpenPage, page_file: Path) -> None:
    page = open_page(page_file)
    row = page.locator("details.changed-row").nth(1)
    row.locator("> summary").focus()
    page.keyboard.press("Enter")
    row.locator(".evidence").wait_for()
    sides = row.locator(".pair").first.locator(".side").all_inner_texts()
    assert sides == ["A", "B"]


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nothing_is_wider_than_the_screen(open_page: OpenPage, page_file: Path, width: int) -> None:
    page = open_page(page_file, width=width)
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [360, 800, 1000, 1280])
def test_the_long_name_of_a_metric_leaves_room_for_its_numbers(open_page: OpenPage, tmp_path: Path, width: int) -> None:
    name = "acme_internal_retrieval_quality_program_weighted_citation_groundedness_with_recency_penalty"
    metrics = {name: folders.METRICS["faithfulness"]}
    samples = [{"row_id": row, "row_number": number} for number, row in enumerate("abc", start=1)]
    runs = [
        folders.write_run(
            tmp_path / run,
            {row: {name: Score.scored(value + number / 10)} for number, row in enumerate("abc")},
            {Stage.SAMPLES: samples},
            metrics,
            {"status": "completed"},
        )
        for run, value in (("first", 0.1), ("second", 0.4))
    ]
    path = tmp_path / "comparison.html"
    path.write_text(comparison_page(compare_runs(runs[0], runs[1], CompareOptions())), encoding="utf-8")
    assert open_page(path, width=width).evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 1280)])
def test_axe_finds_no_violation(open_page: OpenPage, page_file: Path, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    page = open_page(page_file, width=width, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    violations = axe.Axe().run(page).response["violations"]
    assert [(found["impact"], found["id"], found["nodes"][0]["html"]) for found in violations] == []
