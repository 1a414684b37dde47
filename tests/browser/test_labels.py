"""The page of labels in a browser: from a run to a gate by keyboard alone; hostile and long texts are harmless."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from metric_core.records import Score
from metric_core.stages import Stage
from tests.browser.conftest import OpenPage
from tests.deployments.cli.conftest import Outcome, assay  # noqa: F401 a fixture
from tests.tasks.reports import folders

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

Assay = Callable[..., Outcome]
ROWS = 12


def write_run(folder: Path, rows: int = ROWS, passage: str = folders.ATTACK) -> Path:
    """Write a run with two claims per row, all of which the judge supports; every second one is wrong for people."""
    ids = [f"row {number} {folders.HOSTILE_ID}" for number in range(rows)]
    answered = {"status": "answered"}
    claims = [
        {"row_id": row, "side": "response", "claim_id": f"response:{k}", "text": f"{text} {row}", **answered}
        for row in ids
        for k, text in enumerate(("right", f"wrong {folders.ATTACK}"))
    ]
    key = {"kind": "support", "premise": "contexts", **answered}
    verdicts = [
        {**key, "row_id": claim["row_id"], "claim_id": claim["claim_id"], "verdict": 1, "probability": 0.9}
        for claim in claims
    ]
    verdicts[0]["panel"] = [{"judge": name, "label": name} for name in ("yes", "no")]
    samples = [
        {
            "row_id": row,
            "row_number": number,
            "user_input": f"{row}? {folders.ATTACK}",
            "response": "An answer.",
            "retrieved_contexts": [f"{row}: {passage}", folders.RIGHT_TO_LEFT],
        }
        for number, row in enumerate(ids, start=1)
    ]
    stages: dict[Stage, list[dict[str, Any]]] = {
        Stage.SAMPLES: samples,
        Stage.CLAIMS: claims,
        Stage.VERDICTS: verdicts,
    }
    metrics = {"faithfulness": folders.METRICS["faithfulness"]}
    scores = {row: {"faithfulness": Score.scored(1.0)} for row in ids}
    of_stages = folders.build_manifest(rows, metrics, stages)["stages"]
    of_stages[Stage.SAMPLES]["digests"] = ["the texts of the rows"]
    return folders.write_run(folder, scores, stages, metrics, {"status": "completed", "stages": of_stages})


def begin(page: "Page", name: str) -> None:
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    page.wait_for_selector("#work:not([hidden])")


def progress(page: "Page") -> str:
    return page.inner_text("#progress-text")


def answer(page: "Page", *, is_careless: bool = False) -> None:
    """Label the item that is shown; a careless person errs on the first one."""
    is_error = is_careless and progress(page).startswith("1 of ")
    page.keyboard.press("n" if page.inner_text("#claim").startswith("wrong") != is_error else "y")


def export(page: "Page", file: Path) -> Path:
    with page.expect_download() as download:
        page.keyboard.press("e")
    download.value.save_as(file)
    return file


def label_twice(open_page: OpenPage, tmp_path: Path) -> list[Path]:
    """Label 16 items as two people, who load the page again and disagree once; return what they export."""
    files: list[Path] = []
    for name in ("anna", folders.ATTACK[:90]):
        page = open_page(tmp_path / "label.html")
        assert "0.9" not in page.content().partition('id="label-data"')[0]  # people do not see what the judge says
        begin(page, name)
        for _ in range(7):
            answer(page, is_careless=name != "anna")
        page.keyboard.press("ArrowLeft")
        assert progress(page) == "7 of 16, 7 labelled"
        page.reload()
        begin(page, name)
        assert progress(page) == "8 of 16, 7 labelled"
        for _ in range(9):
            answer(page)
        assert progress(page) == "16 of 16, 16 labelled: all labelled, export them"
        files.append(export(page, tmp_path / f"{len(files)}.jsonl"))
    return files


def check_work_lists(open_page: OpenPage, assay: Assay, tmp_path: Path) -> None:  # noqa: F811
    """Filter the report of a run by disagreement, and open the page of what the judges disagree on."""
    run, about = str(tmp_path / "run"), ("--metric", "faithfulness")
    page = open_page(tmp_path / "run" / "report.html")
    page.select_option("#disagreement", "judges")
    assert page.locator("tr.row").count() == 1
    page.select_option("#disagreement", "judge-people")
    assert 1 < page.locator("tr.row").count() < ROWS
    out = ("--out", str(tmp_path / "split.html"))
    assert assay("label", run, *about, "--claims", "--disagreement", "judges", *out).code == 0
    page = open_page(tmp_path / "split.html")
    begin(page, "anna")
    assert (progress(page), page.inner_text("#claim").split()[0]) == ("1 of 1, 0 labelled", "right")


def test_labels_of_two_people_reach_a_gate(
    open_page: OpenPage,
    assay: Assay,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    run, about = str(write_run(tmp_path / "run")), ("--metric", "faithfulness")
    drawn = assay("label", run, *about, "--budget", "16", "--claims", "--out", str(tmp_path / "label.html"))
    assert drawn.code == 0, drawn.err
    files = label_twice(open_page, tmp_path)
    done = assay("label", run, *about, "--import", str(files[0]), "--import", str(files[1]))
    assert done.code == 0, done.err
    assert "16 claims that several people labelled: Krippendorff's alpha 0.8" in done.out
    assert "1 claims to settle" in done.out
    early = assay("calibrate", "--run", run, *about, "--no-keep")
    assert (early.code, "people disagree on 1 labels" in early.err) == (3, True)
    settle = tmp_path / "settle.html"
    assert assay("label", run, *about, "--claims", "--disagreement", "people", "--out", str(settle)).code == 0
    page = open_page(settle)
    begin(page, "carl")
    assert "anna: " in page.inner_text("#claim")
    answer(page)
    third = export(page, tmp_path / "third.jsonl")
    done = assay("label", run, *about, "--import", str(third))
    assert "to settle" not in done.out

    done = assay("calibrate", "--run", run, *about, "--no-keep")
    assert done.code == 0, done.err
    truth = sum(line["label"] for line in map(json.loads, files[0].read_text(encoding="utf-8").splitlines())) / 16
    assert f"bias-corrected mean ('people') {100 * truth:.1f} %" in done.out
    assert "24 scored claims" in done.out
    gate = tmp_path / "gate.toml"
    gate.write_text("absolute = ['faithfulness.corrected >= 0.1']\n", encoding="utf-8")
    done = assay("compare", run, "--gate", str(gate))
    assert (done.code, "passed" in done.out) == (0, True), done.out + done.err
    gate.write_text("absolute = ['faithfulness.corrected >= 0.9']\n", encoding="utf-8")
    assert assay("compare", run, "--gate", str(gate)).code != 0

    check_work_lists(open_page, assay, tmp_path)

    later = write_run(tmp_path / "later")  # another run with the same texts
    done = assay("calibrate", "--run", str(later), *about, "--no-keep")
    assert f"bias-corrected mean ('people') {100 * truth:.1f} %" in done.out, done.err


def test_a_browser_that_ends_in_the_middle_loses_at_most_the_last_label(
    browser: "Browser",
    launching: dict[str, Any],
    assay: Assay,  # noqa: F811
    tmp_path: Path,
) -> None:
    out = tmp_path / "label.html"
    run = str(write_run(tmp_path / "run"))
    assert assay("label", run, "-m", "faithfulness", "-n", "8", "--claims", "--out", str(out)).code == 0

    def open_again() -> "Page":
        context = browser.browser_type.launch_persistent_context(str(tmp_path / "profile"), **launching)
        page = context.new_page()
        page.goto(out.as_uri())
        begin(page, "anna")
        return page

    def labelled(page: "Page") -> int:
        return int(progress(page).split()[3])

    page = open_again()
    for _ in range(4):
        answer(page)
    with suppress(Exception):  # the connection to the browser ends
        page.context.new_cdp_session(page).send("Browser.crash")
    page = open_again()
    known = labelled(page)
    assert known in {3, 4}
    answer(page)
    page.context.close()
    page = open_again()
    assert labelled(page) in {known, known + 1}
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_no_violation_on_the_page(
    open_page: OpenPage,
    assay: Assay,  # noqa: F811
    tmp_path: Path,
    scheme: str,
    width: int,
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    run = str(write_run(tmp_path / "run", passage=folders.LONG))
    out = tmp_path / "label.html"
    assert assay("label", run, "-m", "faithfulness", "-n", "8", "--claims", "--out", str(out)).code == 0
    page = open_page(out, width=width, scheme=scheme)
    for is_begun in (False, True):
        if is_begun:
            begin(page, "anna")
            answer(page)
            page.keyboard.press("ArrowLeft")
        violations = axe.Axe().run(page).response["violations"]
        assert [(found["impact"], found["id"], found["nodes"][0]["html"]) for found in violations] == []


def test_many_long_passages_are_shown_one_row_at_a_time(
    open_page: OpenPage,
    assay: Assay,  # noqa: F811
    tmp_path: Path,
) -> None:
    length = 200_000
    run = str(write_run(tmp_path / "run", rows=500, passage="Words without end. " * (length // 19)))
    out = tmp_path / "label.html"
    assert assay("label", run, "-m", "faithfulness", "-n", "500", "--out", str(out)).code == 0
    assert out.stat().st_size > 500 * length * 0.99
    page = open_page(out)
    begin(page, "anna")
    for number in range(1, 6):
        assert progress(page) == f"{number} of 500, {number - 1} labelled"
        assert page.locator("#texts .text").count() == 4
        page.evaluate("scrollTo(0, document.body.scrollHeight / 2)")
        bottom = page.locator("#answers button").first.evaluate("(node) => node.getBoundingClientRect().bottom")
        assert 0 < bottom <= 900  # of the window: the answers stay in sight beside the longest text
        page.keyboard.press("y")
