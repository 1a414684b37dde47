"""Pages of the history server in a browser: they work under its content security policy, and a report is alone."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from deployments.history_server.history_pages import open_history
from tasks.history.catalogue import Catalogue
from tasks.reports.run.report_page import write_report
from tests.deployments.serving import serve_here
from tests.tasks import compared
from tests.tasks.reports import folders

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

ATTACKS = """<!doctype html><title>Foreign</title><script>
const tries = {
  fetch: async () => (await fetch('/history/nightly')).text(),
  page: async () => { const page = open('/history/nightly'); await new Promise(done => setTimeout(done, 500));
                      return page.document.title; },
  image: () => new Promise((done, fail) => { const image = new Image(); image.onload = done; image.onerror = fail;
                      image.src = '/history/nightly'; }),
  frame: () => new Promise((done) => { const frame = document.body.appendChild(document.createElement('iframe'));
                      frame.onload = () => done(frame.contentDocument ? frame.contentDocument.title : 'refused');
                      frame.src = '/history/nightly'; }),
};
(async () => {
  const got = {};
  for (const [name, attempt] of Object.entries(tries))
    try { got[name] = await attempt() } catch (error) { got[name] = 'refused' }
  window.got = got;
  document.body.dataset.done = 'yes';
})();
</script><body>text"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a history of three runs; the report of the last one is not one of rag-assay."""
    root = tmp_path_factory.mktemp("served")
    catalogue = Catalogue(str(root / "history.db"))
    compared.write_hostile_pair(root)
    folders.write_hostile_run(root / "foreign")
    for name in ("a", "b", "foreign"):
        folder = root / name
        manifest = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        (folder / "run.json").write_text(json.dumps(manifest | {"run_id": name, "name": "nightly"}), encoding="utf-8")
        write_report(folder)
        catalogue.record(folder)
    (root / "foreign" / "report.html").write_text(ATTACKS, encoding="utf-8")
    with open_history(catalogue) as server, serve_here(server) as address:
        yield address


@pytest.fixture
def page(browser: "Browser") -> Iterator["Page"]:
    """Yield a page that fails the test if it logs an error, or if an attack in a text had an effect."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    yield page
    assert page.evaluate("window.broken") is None
    page.close()
    assert [error for error in errors if "favicon" not in error] == []


def test_a_report_works(page: "Page", url: str) -> None:
    page.goto(f"{url}/report/a")
    page.locator("tr.row", has_text="When did the Taj Mahal").locator("button.toggle").click()
    page.locator("button.step").click()
    assert page.locator("mark").is_visible()
    assert page.locator("body").evaluate("body => getComputedStyle(body).fontFamily") != "serif"


def test_a_comparison_works(page: "Page", url: str) -> None:
    page.goto(f"{url}/compare/a/b")
    row = page.locator("details.changed-row").nth(1)
    row.locator("> summary").click()
    row.locator(".evidence").wait_for()


def test_the_history_leads_to_reports(page: "Page", url: str) -> None:
    """One metric has no value in any run, and its chart is drawn all the same."""
    page.goto(url)
    assert "no values in these runs" in page.locator("#charts").inner_text()
    with page.expect_popup() as opened:
        page.locator("#run-rows a[href='/report/a']").click()
    assert opened.value.url == f"{url}/report/a"
    assert opened.value.locator("tr.row").count() > 0
    opened.value.close()


def test_a_foreign_report_reads_no_other_page(browser: "Browser", url: str) -> None:
    page = browser.new_page()
    page.goto(f"{url}/report/foreign")
    page.locator("body[data-done]").wait_for()
    got = page.evaluate("window.got")
    page.close()
    assert got == dict.fromkeys(("fetch", "page", "image", "frame"), "refused")
