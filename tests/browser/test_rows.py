"""Use of the table of rows in a browser: search, sort, filter and open a row."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tasks.reports.run.report_page import write_report
from tests.browser.conftest import OpenPage
from tests.tasks import sliced
from tests.tasks.reports import folders

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

NOISE = list(folders.METRICS).index("noise_sensitivity")
IDLE = "table.rows > tbody:not([aria-busy])"
FAITHFULNESS = list(folders.METRICS).index("faithfulness")


def ids(page: "Page") -> list[str]:
    """Return the visible rows as the first words of their questions."""
    return [text.strip()[:12] for text in page.locator("tr.row .question").all_inner_texts()]


def chips(page: "Page", metric: int) -> list[str]:
    """Return the values of a metric in the visible rows that have one, from top to bottom."""
    return page.locator(f"tr.row td[data-metric='{metric}'] .chip").all_inner_texts()


def test_worst_row_comes_first(open_page: OpenPage, hostile_report: Path) -> None:
    page = open_page(hostile_report)
    assert page.locator("tr.row").count() == len(folders.SAMPLES)
    assert ids(page)[0] == folders.ATTACK[:12]
    assert ids(page)[-1] == "When did the"


def test_search_covers_all_texts_of_a_row(open_page: OpenPage, hostile_report: Path) -> None:
    page = open_page(hostile_report)
    for words in ("taj mahal open in", "it is WHITE", "Marble is white", "it is in agra.", "topic: history"):
        page.fill("#search", words)
        page.wait_for_selector(IDLE)
        assert ids(page) == ["When did the"], words
    page.fill("#search", "nowhere to be found")
    assert "No row matches" in page.inner_text("#shown")
    page.click("button[type=reset]")
    assert page.locator("tr.row").count() == len(folders.SAMPLES)


def test_click_on_a_column_sorts_its_worst_values_first(open_page: OpenPage, hostile_report: Path) -> None:
    page = open_page(hostile_report)
    head = page.locator(f"th[data-sort='{FAITHFULNESS}']")
    head.locator("button").click()
    assert chips(page, FAITHFULNESS) == ["0.00", "0.50", "1.00"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").click()
    assert chips(page, FAITHFULNESS) == ["1.00", "0.50", "0.00"]
    assert head.get_attribute("aria-sort") == "descending"
    page.click(f"th[data-sort='{NOISE}'] button")
    assert chips(page, NOISE) == ["1.00", "0.75", "0.00"]


def test_colors_follow_the_direction_of_a_metric(open_page: OpenPage, hostile_report: Path) -> None:
    page = open_page(hostile_report)
    row = page.locator("tr.row", has_text="When did the Taj Mahal")
    tones = {metric: row.locator(f"td[data-metric='{metric}'] .chip") for metric in (FAITHFULNESS, NOISE)}
    assert (tones[FAITHFULNESS].inner_text(), tones[NOISE].inner_text()) == ("1.00", "0.00")
    colours = {chip.evaluate("chip => getComputedStyle(chip).backgroundColor") for chip in tones.values()}
    assert len(colours) == 1


def test_rows_are_filtered_by_the_value_of_a_metric(open_page: OpenPage, hostile_report: Path) -> None:
    page = open_page(hostile_report)
    assert page.is_disabled("#least")
    page.select_option("#metric", str(FAITHFULNESS))
    page.fill("#least", "0.4")
    page.fill("#greatest", "0.6")
    assert chips(page, FAITHFULNESS) == ["0.50"]


def test_rows_are_filtered_by_status(open_page: OpenPage, hostile_report: Path) -> None:
    page = open_page(hostile_report)
    page.select_option("#status", "failed")
    assert ids(page) == ["not in the d"]
    page.select_option("#metric", str(NOISE))
    assert page.locator("tr.row").count() == 0


def test_summary_links_to_the_worst_rows_of_a_metric(open_page: OpenPage, hostile_report: Path) -> None:
    page = open_page(hostile_report)
    page.click(f"a[data-worst='{NOISE}']")
    assert chips(page, NOISE)[0] == "1.00"
    assert page.input_value("#metric") == page.input_value("#sort") == str(NOISE)


def test_a_row_opens_and_closes(open_page: OpenPage, hostile_report: Path) -> None:
    page = open_page(hostile_report)
    toggle = page.locator("tr.row", has_text="When did the Taj Mahal").locator("button.toggle")
    toggle.click()
    evidence = page.locator(".evidence")
    assert toggle.get_attribute("aria-expanded") == "true"
    for shown in ("It opened in 1653. It is white.", "Passage 2", "No passage names the year.", "Votes of 2 judges"):
        assert shown in evidence.inner_text()
    toggle.click()
    assert evidence.count() == 0


def test_the_address_of_a_row_opens_it(open_page: OpenPage, hostile_report: Path) -> None:
    page = open_page(hostile_report, fragment="#row-good")
    assert page.locator(".evidence header").inner_text().startswith("good")
    page.click("text=Link to this row")
    assert page.evaluate("location.hash") == "#row-good"


def test_a_browser_that_cannot_open_the_evidence_has_the_table_and_says_so(
    open_page: OpenPage, hostile_report: Path
) -> None:
    page = open_page(hostile_report, fragment="#row-good", before="delete window.DecompressionStream")
    assert "This browser cannot open the evidence" in page.inner_text("tr.detail")
    page.fill("#search", "it is WHITE")
    assert ids(page) == ["When did the"]
    assert page.locator("tr.row .chip").count() > 1


def test_long_table_is_shown_in_pages(open_page: OpenPage, large_report: Path) -> None:
    page = open_page(large_report)
    assert page.locator("tr.row").count() == 200
    assert "450 rows of 450 on this page, 200 shown" in page.inner_text("#shown")
    page.click("#more")
    page.click("#more")
    assert page.locator("tr.row").count() == 450
    assert page.is_hidden("#more")


def test_slices_are_sorted_by_a_metric_and_lead_to_their_rows(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(write_report(sliced.write_run(tmp_path / "run")))
    table = page.locator("table.slices").first
    first = table.locator("tbody tr").first
    assert first.locator("th").inner_text().startswith("travel")
    recall = table.locator("thead button").nth(2)
    recall.click()
    assert first.locator("th").inner_text().startswith("travel")
    recall.click()
    assert "returns" in first.locator("th").inner_text()
    assert recall.locator("..").get_attribute("aria-sort") == "descending"
    table.locator("a[data-slice]", has_text="on-call").click()
    assert page.input_value("#slice") != ""
    assert page.locator("tr.row").count() == sliced.SIZES["on-call"]
    assert all("on-call" in text for text in page.locator("tr.row .question").all_inner_texts())
    page.click("button[type=reset]")
    assert page.input_value("#slice") == ""


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_first_screen_says_how_good_the_answers_are(
    open_page: OpenPage, large_report: Path, width: int, height: int
) -> None:
    page = open_page(large_report, width=width)
    answer, judge = (page.locator(part).bounding_box() for part in (".worst-metrics", "#judge"))
    assert answer is not None
    assert judge is not None
    assert answer["y"] + answer["height"] < height < judge["y"] + judge["height"]
