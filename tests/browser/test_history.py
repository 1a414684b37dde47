"""The page of a history in a browser: few and many runs, selection, comparison, hostile texts, accessibility."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tasks.history.availability import measure_availability
from tasks.reports.history.history_page import history_page
from tasks.reports.history.history_view import link_pages
from tests.browser.conftest import OpenPage, cut_off
from tests.tasks.history.recorded import METRICS, month, nights, open_incident, rebuilt
from tests.tasks.reports.folders import ATTACK

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

LINK = link_pages("https://reports.example/{name}")


def write_page(path: Path, count: int, text: str = "") -> Path:
    """Write the page of nights, and return its file."""
    metrics = METRICS if not text else (text, *METRICS[:2])
    runs = nights(count, metrics, text, slices=3)
    path.write_text(history_page("nightly", runs, [open_incident(text)], LINK), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def long_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of 1,000 runs."""
    return write_page(tmp_path_factory.mktemp("long") / "history.html", 1000)


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of 30 runs with texts that attack it."""
    return write_page(tmp_path_factory.mktemp("hostile") / "history.html", 30, ATTACK)


def overflow(page: "Page") -> int:
    width: int = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return width


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_runs_are_drawn_as_points_with_intervals(open_page: OpenPage, tmp_path: Path, count: int) -> None:
    page = open_page(write_page(tmp_path / "history.html", count))
    charts = page.locator("#charts .chart-row:not(.lanes):not(.cost) svg.chart:has(path.mean)")
    assert charts.count() == len(METRICS)
    assert charts.first.locator("circle.dot").count() == count
    assert charts.first.locator("line.whisker").count() == count
    assert page.locator("#run-rows tr").count() == count
    assert "faithfulness over" in (charts.first.get_attribute("aria-label") or "")


def test_runs_without_a_gate_show_no_strip_of_outcomes(open_page: OpenPage, tmp_path: Path) -> None:
    path = tmp_path / "history.html"
    runs = [replace(run, outcome=None) for run in nights(5, METRICS, "", slices=3)]
    path.write_text(history_page("nightly", runs, [open_incident("")], LINK), encoding="utf-8")
    lanes = open_page(path).locator(".lanes")
    assert lanes.locator("path.gate0").count() == 0
    assert lanes.locator(".lane-names span").first.inner_text() == "incidents"


def test_a_thousand_runs_are_drawn_as_a_line_with_a_band(open_page: OpenPage, long_page: Path) -> None:
    page = open_page(long_page)
    first = page.locator("#charts svg.chart:has(path.mean)").first
    assert first.locator("path.band").count() == 1
    assert first.locator("circle.dot:not(.alarmed):not(.accepted)").count() == 0
    assert first.locator("line.change").count() == 9
    assert len(first.locator("path.baseline").get_attribute("d") or "") > 100
    assert page.locator("#run-rows tr").count() == 50
    page.get_by_role("button", name="Show 200 earlier runs").click()
    assert page.locator("#run-rows tr").count() == 250
    page.get_by_role("button", name="last 30").click()
    assert (
        page.locator("#charts svg.chart:has(path.mean)").first.locator("circle.dot").count() == 29
    )  # the last one died
    loaded: float = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert loaded < 10_000  # the benchmark measures it; here the machine may be busy


def test_lines_break_where_the_questions_are_others_and_those_of_both_runs_have_a_line(
    open_page: OpenPage, tmp_path: Path
) -> None:
    path = tmp_path / "history.html"
    path.write_text(history_page("nightly", rebuilt(6), [], LINK), encoding="utf-8")
    page = open_page(path)
    first, second = (page.locator(f"#charts svg.chart:has(path.mean) >> nth={place}") for place in (0, 1))
    for chart in (first, second):
        assert (chart.locator("path.mean").get_attribute("d") or "").count("M") == 2
        assert (chart.locator("path.baseline").get_attribute("d") or "").count("M") == 1
    (line,) = first.locator("line.kept").all()
    assert float(line.get_attribute("y2") or 0) > float(line.get_attribute("y1") or 0)  # from 0.9 down to 0.5
    assert second.locator("line.kept").count() == 0
    assert page.locator("#charts line.kept").count() == 2  # the other is of key points
    assert "the same questions before and after" in page.locator("#legend li").all_inner_texts()
    assert (
        "\N{MINUS SIGN}0.400 over the same questions"
        in page.locator(".chart-row:has(path.mean) .facts-of").first.inner_text()
    )
    page.locator("#run-rows button", has_text="Compare").first.click()
    page.get_by_role("button", name="Compare with previous").click()
    changes = page.locator("#compared .changes").inner_text()
    assert "24 as in the run of 2026-03-05 06:00, 7 retired, 5 new; over the 24: faithfulness 0.900 -> 0.500" in changes


def test_a_click_selects_a_run_and_leads_to_its_report_and_comparisons(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(write_page(tmp_path / "history.html", 20))
    drawer = page.locator("#drawer")
    assert not drawer.is_visible()
    chart = page.locator("#charts svg.chart:has(path.mean)").first
    box = chart.bounding_box()
    assert box is not None
    chart.click(position={"x": box["width"] - 12, "y": 40})
    assert "20 Mar 2026" in drawer.inner_text()
    report = drawer.get_by_role("link", name="Report")
    assert report.get_attribute("href") == "https://reports.example/2026-0019-answers%20/report.html"
    assert "is worse" in drawer.inner_text()
    drawer.get_by_role("button", name="Compare with baseline, 1 Mar").click()
    compared = page.locator("#compared")
    assert "A: Sun, 1 Mar 2026" in compared.inner_text()
    assert "assay compare '/runs/2026-0000-answers ' '/runs/2026-0019-answers ' --html" in compared.inner_text()
    row = compared.locator("tr", has_text="faithfulness").inner_text()
    assert "0.600" in row
    assert "0.633" in row
    assert "+0.033" in row
    drawer.get_by_role("button", name="Compare with …").click()
    chart.click(position={"x": 60, "y": 40})
    assert "A: Sun, 1 Mar 2026" in compared.inner_text()
    page.locator("#run-rows button", has_text="Compare").nth(4).click()
    assert "16 Mar 2026" in drawer.inner_text()


def test_the_keyboard_selects_runs(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(write_page(tmp_path / "history.html", 20))
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert slider.get_attribute("aria-valuenow") == "20"
    page.keyboard.press("Home")
    assert "1 Mar 2026" in (slider.get_attribute("aria-valuetext") or "")
    assert "1 Mar 2026" in page.locator("#drawer").inner_text()


@pytest.fixture(scope="module")
def month_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a month with nights that have no results, and incidents that overlap."""
    path = tmp_path_factory.mktemp("month") / "history.html"
    runs, incidents = month()
    availability = measure_availability(runs, runs[-1].created)
    path.write_text(history_page("nightly", runs, incidents, LINK, availability=availability), encoding="utf-8")
    return path


def test_nights_without_results_have_cells_of_their_own_and_gaps(open_page: OpenPage, month_page: Path) -> None:
    page = open_page(month_page)
    cells = {tone: len(path_of(page, f".lanes path.gate{tone}").split("M")) - 1 for tone in (4, 5, 6)}
    assert cells == {4: 2, 5: 2, 6: 3}  # did not finish, did not start, missed
    lines = path_of(page, "#charts path.mean >> nth=0")
    assert lines.count("M") == 4  # a line between any two gaps
    assert {"did not start", "missed"} <= set(page.locator("#legend li").all_inner_texts())
    assert page.locator(".chart-row .now strong").first.inner_text() == "0.607"  # the latest run with results


def path_of(page: "Page", selector: str) -> str:
    return page.locator(selector).get_attribute("d") or ""


def test_tooltip_of_a_night_without_results_has_the_reason(open_page: OpenPage, month_page: Path) -> None:
    page = open_page(month_page)
    lanes = page.locator(".lanes svg")
    for place, *texts in (
        (5, "did not start", "no such file: answers.jsonl"),
        (
            18,
            "missed",
            "nothing ran it: no worker asked for work",
            "1 incident open:",
            "the answers have been the same",
        ),
        (22, "did not finish", "the judge is down"),
    ):
        lanes.hover(position={"x": float(page.evaluate(f"xs[{place}]")), "y": 7})
        tip = page.locator("#tip").inner_text()
        assert [text for text in texts if text not in tip] == []


def test_incidents_are_drawn_from_run_to_run(open_page: OpenPage, month_page: Path) -> None:
    page = open_page(month_page)
    cell = min(9.0, 0.8 * float(page.evaluate("(xs[29] - xs[0]) / 29")))
    bars = page.evaluate(
        "[...document.querySelectorAll('rect.incident')].map((bar) => bar.getBBox())"
        ".map(({ x, y, width }) => ({ x, y, width }))"
    )
    edge = [float(page.evaluate(f"xs[{place}]")) - cell / 2 for place in range(30)]
    right = float(page.evaluate("width - CHART.right"))
    found = [(bar["x"], bar["x"] + bar["width"]) for bar in bars]
    for bar, (first, last) in zip(found, ((5, 7), (11, 16), (14, 20), (22, 24), (29, None)), strict=True):
        assert bar == pytest.approx((edge[first], right if last is None else edge[last]), abs=0.2)
    assert bars[1]["y"] < bars[2]["y"]  # they overlap
    assert len({bar["y"] for place, bar in enumerate(bars) if place != 2}) == 1
    page.locator("#run-rows button").first.click()  # a missed run
    page.locator("#drawer button", has_text="Compare with previous").click()
    assert "A: Sun, 29 Mar 2026" in page.locator("#compared-content").inner_text()


def test_figures_beside_the_charts_follow_the_pointer(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(write_page(tmp_path / "history.html", 20))
    row = page.locator(".chart-row", has=page.locator("path.mean")).first
    before = row.locator(".now").inner_text()
    chart = row.locator("svg.chart").first
    box = chart.bounding_box()
    assert box is not None
    chart.hover(position={"x": 60, "y": 30})
    assert row.locator(".now").inner_text().startswith("0.600")
    assert row.locator(".now").inner_text() != before
    assert "Sun, 1 Mar 2026" in page.locator("#tip").inner_text()


def test_anchor_diagnosis_and_cost_have_charts(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(write_page(tmp_path / "history.html", 20))
    assert page.locator("#charts h3").all_inner_texts() == ["Anchor", "Diagnosis", "Key points", "Cost"]
    rows = page.locator("#charts .chart-row.cost")
    assert rows.nth(0).inner_text().split()[:2] == ["faithfulness", "0.710"]
    assert rows.nth(1).inner_text().split()[:5] == ["answered", "399", "rows", "80", "%"]
    assert rows.locator("path.other").count() == rows.count()


def test_slices_are_ordered_worst_first(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(write_page(tmp_path / "history.html", 5))
    assert page.locator("#slice-rows tr").count() == 3
    page.locator("#slice-metric").select_option("noise_sensitivity")
    assert page.locator("#slice-rows tr").count() == 3


def test_hostile_texts_are_inert(open_page: OpenPage, hostile_page: Path) -> None:
    page = open_page(hostile_page)
    page.locator("#run-rows button").first.click()
    page.locator("#drawer button", has_text="Compare with previous").click()
    assert page.locator("#charts .name").first.inner_text().startswith("</script>")
    assert page.locator("main img, main iframe").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", ["hostile_page", "month_page"])
def test_axe_finds_no_violation(
    open_page: OpenPage, request: pytest.FixtureRequest, name: str, scheme: str, width: int
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    page = open_page(request.getfixturevalue(name), width=width, scheme=scheme)
    page.locator("#run-rows button").first.click()
    page.locator("#drawer button", has_text="Compare with previous").click()
    violations = axe.Axe().run(page).response["violations"]
    assert [(found["impact"], found["id"], found["nodes"][0]["html"]) for found in violations] == []
    assert overflow(page) <= 0
    assert cut_off(page, ".runs-table, .compared-table") == []


def test_a_narrow_screen_names_the_bars_over_time(open_page: OpenPage, month_page: Path) -> None:
    names = open_page(month_page, width=390).locator(".lane-names")
    assert names.is_visible()
    assert names.locator("span").all_inner_texts() == ["outcome", "incidents"]
    before = names.evaluate("(node) => getComputedStyle(node, '::before').content")
    assert before == '"Bars from above: "'
