"""Evidence of a row in a browser: links between claims and passages, and hostile texts."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import OpenPage
from tests.tasks.reports import folders

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

HANDLERS = "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(name => /^on/.test(name))"
FOCUSED = "document.activeElement.textContent"


def open_row(page: "Page", question: str) -> None:
    page.locator("tr.row", has_text=question).locator("button.toggle").click()


@pytest.mark.parametrize("width", [360, 1280])
def test_a_claim_leads_to_its_passage_and_back(open_page: OpenPage, hostile_report: Path, width: int) -> None:
    page = open_page(hostile_report, width=width)
    open_row(page, "When did the Taj Mahal")
    step = page.locator("button.step")
    assert step.inner_text().startswith("supported by passage 1: show")
    step.click()
    assert str(page.text_content("mark")).endswith("The taj mahal\n  opened in 1653.")
    assert page.locator("mark").is_visible()
    assert page.locator("mark").evaluate("mark => mark.getBoundingClientRect().bottom <= innerHeight")
    assert page.text_content(".passage.current h4") == "Passage 1 of 2"
    assert page.evaluate(FOCUSED) == "Back to claim 1"
    page.keyboard.press("Enter")
    assert page.locator("mark").count() == 0
    assert str(page.evaluate(FOCUSED)).startswith("supported by passage 1")


def test_raw_answers_of_the_judge_are_collapsed(open_page: OpenPage, hostile_report: Path) -> None:
    page = open_page(hostile_report)
    open_row(page, "When did the Taj Mahal")
    page.wait_for_selector(".evidence")
    words = page.locator(".evidence details.own-words")
    summaries = [text.split(", ")[1] for text in words.locator("summary").all_inner_texts()]
    assert summaries == ["by the passages", "claims of the answer", "relevant sentences of all passages"]
    assert words.locator("summary:has-text('claims of the answer') + .text").is_visible() is False
    for number in range(words.count()):
        assert words.nth(number).get_attribute("open") is None
        words.nth(number).locator("summary").press("Enter")
    assert [text.strip() for text in words.locator(".text").all_inner_texts()] == [
        "I would rather not say.",
        folders.REPLY,
        '{"relevant": [2, 3]}',
    ]


def test_one_mark_at_a_time(open_page: OpenPage, hostile_report: Path) -> None:
    page = open_page(hostile_report)
    open_row(page, "When did the Taj Mahal")
    page.wait_for_selector(".evidence")
    for button in page.locator("button.step, .closest button").all():
        button.click()
        assert page.locator("mark").count() == 1
        assert page.locator(".evidence button[aria-pressed=true]").count() == 1
    page.locator(".evidence button[aria-pressed=true]").click()
    assert page.locator("mark").count() == 0


def test_everything_works_with_the_keyboard_alone(open_page: OpenPage, hostile_report: Path) -> None:
    page = open_page(hostile_report)
    press = page.keyboard.press

    def tab_to(selector: str) -> None:
        for _ in range(120):
            press("Tab")
            if page.evaluate("wanted => document.activeElement.matches(wanted)", selector):
                return
        raise AssertionError(f"the Tab key does not lead to {selector}")

    press("Tab")
    assert page.evaluate(FOCUSED) == "Skip to the rows"
    press("Enter")
    tab_to("#search")
    page.keyboard.type("taj mahal")
    tab_to("th[data-sort='0'] button")
    press("Enter")
    assert page.locator("th[data-sort='0']").get_attribute("aria-sort") == "ascending"
    tab_to("button.toggle")
    press("Enter")
    tab_to("button.step")
    press("Space")
    assert str(page.text_content("mark")).endswith("The taj mahal\n  opened in 1653.")
    press("Enter")
    assert page.evaluate("document.activeElement.matches('button.step')")


def test_hostile_texts_are_shown_as_inert_text(open_page: OpenPage, hostile_report: Path) -> None:
    page = open_page(hostile_report)
    for toggle in page.locator("button.toggle").all():
        toggle.click()
    page.locator(".evidence").nth(len(folders.SAMPLES) - 1).wait_for()
    for details in page.locator("details").all():
        details.evaluate("details => details.open = true")
    for button in page.locator(".evidence button").all():
        if button.is_visible():
            button.click()
    assert page.locator("tr.detail").count() == len(folders.SAMPLES)
    assert page.locator("main img, main iframe, main script, main b, main object").count() == 0
    assert page.evaluate(HANDLERS) == []
    answer = page.locator(".evidence section", has=page.locator("h3", has_text="Answer")).locator(".text")
    assert folders.ATTACK.replace("\x07", "") in {text.replace("\x07", "") for text in answer.all_text_contents()}


def test_long_text_is_truncated_with_a_note(open_page: OpenPage, hostile_report: Path) -> None:
    page = open_page(hostile_report, fragment="#row-long")
    shown = page.locator(".evidence").inner_text()
    assert f"Shortened: the first 20,000 of {len(folders.LONG):,} characters" in shown
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [320, 360, 800, 1280])
def test_the_page_never_scrolls_sideways(open_page: OpenPage, hostile_report: Path, width: int) -> None:
    page = open_page(hostile_report, width=width)
    for toggle in page.locator("button.toggle").all():
        toggle.click()
    page.locator(".evidence").nth(len(folders.SAMPLES) - 1).wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
