"""Accessibility of the report, checked by axe-core."""

from pathlib import Path

import pytest

from tests.browser.conftest import OpenPage

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_no_violation(open_page: OpenPage, hostile_report: Path, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    page = open_page(hostile_report, width=width, scheme=scheme)
    page.locator("tr.row", has_text="When did the Taj Mahal").locator("button.toggle").click()
    page.locator("tr.row", has_text="</script>").locator("button.toggle").click()
    page.locator(".evidence").nth(1).wait_for()
    for details in page.locator("details").all():
        details.evaluate("details => details.open = true")
    page.locator("button.step").first.click()
    violations = axe.Axe().run(page).response["violations"]
    assert [(found["impact"], found["id"], found["nodes"][0]["html"]) for found in violations] == []
