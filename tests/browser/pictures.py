"""Create the screenshots in the documentation from evaluations of the two examples.

    python -m tests.browser.pictures

Screenshots are never edited, so they show what a user of the examples sees.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import history_page as history
from flows.config.run_config import RunConfig
from flows.index_events.index_event import FROM_INDEX
from flows.index_rebuilt import index_rebuilt
from tasks.history.catalogue import Catalogue
from tasks.reports.history.history_page import write_history_page
from tests.browser.chromium import build, find_chromium
from tests.deployments.served import rebuilt_index
from tests.prefect_stub import use_stub

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
WIDTH = 1280
COMPARED = "faithfulness,context_recall,answer_correctness,noise_sensitivity"
"""Metrics of the screenshot of the comparison: few, to leave space for a row."""


def _assay(folder: Path, *arguments: str) -> None:
    program = Path(sys.executable).with_name("assay")
    environment = {**os.environ, "ASSAY_HOME": str(folder / "home")}
    subprocess.run([program, *arguments], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)


def _evaluate(folder: Path) -> None:
    """Evaluate into `folder`, with relative paths so that pages show the paths of the documentation."""
    (folder / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    try:
        _assay(folder, "run", "examples/handbook.jsonl", "--out", "runs/all")
        for name, source in (("first", "handbook"), ("second", "handbook_v2")):
            _assay(folder, "run", f"examples/{source}.jsonl", "--metrics", COMPARED, "--out", f"runs/{name}")
    finally:
        _assay(folder, "server", "stop")
    _assay(folder, "compare", "runs/first", "runs/second", "--html", "comparison.html")


def _rebuild_index(folder: Path) -> None:
    """Evaluate versions of an index of the handbook, of which later ones have other chunks and two documents fewer."""
    folder.mkdir()
    module = rebuilt_index.__name__
    config = RunConfig.model_validate(
        {
            "source": rebuilt_index.QUESTIONS,
            "chunks": rebuilt_index.CHUNKS,
            "retriever": {"index": f"{module}:Search", "generator": f"{module}:Quoting"},
            "metrics": ["key_point_recall", "retrieval_recall"],
            "history_page": "history.html",
            "deploy": {"alerts": {"file": "alerts.jsonl"}},
        }
    )
    with pytest.MonkeyPatch.context() as patch, use_stub():
        patch.setenv("ASSAY_HOME", str(folder / "home"))
        patch.setenv("PREFECT_LOGGING_LEVEL", "CRITICAL")
        patch.chdir(folder)
        for version in rebuilt_index.VERSIONS:
            rebuilt_index.build(ROOT / "examples" / "handbook", folder, version)
            index_rebuilt(config, index="handbook", version=version, dataset=FROM_INDEX, return_state=True)
    _, rebuilt, _ = sorted(folder.glob("runs/*/comparison.html"))
    (folder / "comparison.html").symlink_to(rebuilt)


def _write_history(folder: Path) -> None:
    """Write the page of a year of simulated nights, because the examples have no history."""
    history.write_runs(folder / "nights", 365)
    catalogue = Catalogue(str(folder / "history.db"))
    report = catalogue.rebuild([folder / "nights"])
    assert not report.skipped, report.skipped[0].problem
    history.record_missed(catalogue, 365)
    history.open_incidents(catalogue, 365)
    write_history_page(catalogue, history.NAME, folder / "history.html")


def _find_metrics(page: "Page") -> int:
    """Return the top offset of the metrics over time."""
    return int(page.evaluate("document.querySelector('.over-time').getBoundingClientRect().top + scrollY - 24"))


def _select_run(page: "Page") -> int:
    """Select the run of a night during the drop."""
    page.evaluate("pick(215)")
    return 0


def _open_row(page: "Page") -> int:
    """Open a row whose response has a wrong name, go to the passage of a claim, and return the row's top offset."""
    row = page.locator("tr.row", has_text="Whom do I have to tell about my parental leave")
    row.first.locator("button.toggle").click()
    page.locator("button.step").first.click()
    return int(page.evaluate("document.querySelector('tr.detail').getBoundingClientRect().top + scrollY - 24"))


def main() -> None:
    """Create all screenshots."""
    from playwright.sync_api import sync_playwright

    pictures: tuple[tuple[str, str, int, Callable[[Page], int]], ...] = (
        ("report.png", "runs/all/report.html", 1010, lambda _: 0),
        ("report-row.png", "runs/all/report.html", 1010, _open_row),
        ("comparison.png", "comparison.html", 1560, lambda _: 0),
        ("history.png", "history.html", 900, _select_run),
        ("rebuilt-comparison.png", "rebuilt/comparison.html", 1240, lambda _: 0),
        ("rebuilt-history.png", "rebuilt/history.html", 430, _find_metrics),
    )
    chromium = find_chromium() or build()
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        _evaluate(folder)
        _write_history(folder)
        _rebuild_index(folder / "rebuilt")
        browser = playwright.chromium.launch(
            executable_path=str(chromium.program),
            args=["--no-sandbox", "--disable-gpu"],
            env={**os.environ, **chromium.environment},
        )
        for name, source, height, prepare in pictures:
            page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
            page.goto((folder / source).as_uri())
            top = prepare(page)
            clip = {"x": 0.0, "y": float(top), "width": float(WIDTH), "height": float(height)}
            page.screenshot(path=IMAGES / name, clip=clip, full_page=True)  # type: ignore[arg-type]
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
