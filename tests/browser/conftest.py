"""A browser that opens reports, and fails a test if a page sends requests or logs errors."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tasks.reports.run.report_page import write_report
from tests.browser.chromium import find_chromium
from tests.browser.foreign_pages import LOCAL_NETWORK_CHECKS, REBOUND
from tests.tasks.reports import folders

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

OpenPage = Callable[..., "Page"]


def cut_off(page: "Page", tables: str) -> list[str]:
    """Return the texts of cells that are shown only after scrolling sideways."""
    cells = ", ".join(f":is({tables}) {cell}" for cell in ("tbody th", "tbody td"))
    found: list[str] = page.locator(cells).evaluate_all(
        "(cells) => cells.filter((cell) => cell.getBoundingClientRect().right > innerWidth)"
        ".map((cell) => cell.innerText)"
    )
    return found


@pytest.fixture(scope="package")
def launching() -> dict[str, Any]:
    """Return the arguments with which Playwright starts a headless Chromium."""
    chromium = find_chromium()
    if chromium is None:
        pytest.skip("no Chromium is installed, and none is in the cache: apt-get install chromium, or just browser")
    return {
        "executable_path": str(chromium.program),
        "args": [
            "--no-sandbox",
            "--disable-gpu",
            "--allow-file-access-from-files",
            f"--disable-features={LOCAL_NETWORK_CHECKS}",
            f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1",
        ],
        "env": {**os.environ, **chromium.environment},
    }


@pytest.fixture(scope="package")
def browser(launching: dict[str, Any]) -> Iterator["Browser"]:
    """Yield a headless Chromium; its event loop runs in the thread of the tests."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e '.[browser]'")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(**launching)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of a small run with every kind of evidence and with texts that attack the page."""
    return write_report(folders.write_hostile_run(tmp_path_factory.mktemp("hostile") / "run"))


@pytest.fixture(scope="session")
def large_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of a run of 1,000 rows, with 450 rows on the page."""
    return write_report(folders.write_large_run(tmp_path_factory.mktemp("large") / "run", rows=1000), worst_rows=450)


@pytest.fixture
def open_page(browser: "Browser") -> Iterator[OpenPage]:
    """Yield a function that opens a report; afterwards, fail if a page sent requests or logged errors."""
    pages: list[Page] = []
    requests: list[str] = []
    errors: list[str] = []

    def open_report(
        report: Path, width: int = 1280, scheme: str = "light", fragment: str = "", before: str = ""
    ) -> "Page":
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        page.add_init_script(before)
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("dialog", lambda dialog: errors.append(dialog.message))
        page.goto(f"{report.as_uri()}{fragment}")
        pages.append(page)
        return page

    yield open_report
    broken = [page.evaluate("window.broken") for page in pages]
    addresses = {page.url.partition("#")[0] for page in pages}
    for page in pages:
        page.close()
    assert set(requests) <= addresses
    assert errors == []
    assert set(broken) <= {None}
