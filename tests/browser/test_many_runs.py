"""The page of several runs in a browser: nothing overflows, hostile names are inert, axe finds no violation."""

from pathlib import Path

import pytest

from tasks.comparison.run_pair import Matching
from tasks.many_runs.compared_runs import compare_many
from tasks.many_runs.many_page import many_page
from tests.browser.conftest import OpenPage
from tests.tasks import compared
from tests.tasks.reports import folders

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of six runs, two of which have names that attack the page or are long."""
    folder = tmp_path_factory.mktemp("many")
    names = ["<img src=x onerror=alert(1)>", folders.UNBROKEN[:200], *"abcd"]
    runs = [compared.write_run(folder / name, 0.4 + place / 20) for place, name in enumerate(names)]
    path = folder / "many.html"
    path.write_text(many_page(compare_many(runs, Matching())), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [360, 390, 768, 1280])
def test_nothing_is_wider_than_the_screen_and_no_name_is_markup(
    open_page: OpenPage, page_file: Path, width: int
) -> None:
    page = open_page(page_file, width=width)
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("script, img, [onerror]").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(open_page: OpenPage, page_file: Path, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    page = open_page(page_file, width=390, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    violations = axe.Axe().run(page).response["violations"]
    assert [(found["impact"], found["id"], found["nodes"][0]["html"]) for found in violations] == []
