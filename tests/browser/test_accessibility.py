"""Accessibility of the report, checked by axe-core, and its tables on a narrow screen."""

import json
from pathlib import Path

import pytest

from tasks.reports.run.report_page import write_report
from tests.browser.conftest import OpenPage, cut_off
from tests.tasks.reports import folders

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


def test_a_narrow_screen_shows_the_whole_diagnosis(open_page: OpenPage, tmp_path: Path) -> None:
    run = folders.write_hostile_run(tmp_path / "run")
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    found = {"name": "unsupported", "count": 2, "share": 0.5, "interval": {"low": 0.1, "high": 0.9}}
    classes = [{**found, "meaning": "The response makes a claim that no passage supports. " * 3, "part": "generator"}]
    refusals = {"rows": 0, "recognized_by": "forms"}
    summary["diagnosis"] = {"rows": 4, "classes": classes, "reasons": {}, "lacking": {}, "refusals": refusals}
    (run / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    page = open_page(write_report(run), width=360)
    assert page.locator(".diagnosis tbody td").count() == 4
    assert cut_off(page, ".diagnosis") == []
