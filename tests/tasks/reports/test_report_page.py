"""Report pages: their content, and hostile data."""

import base64
import hashlib
import json
import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

from metric_core.errors import RunFolderError
from metric_core.stages import Stage
from tasks.reports.page import script_json
from tasks.reports.run import report_page, row_blocks
from tasks.reports.run.report_page import WORST_ROWS, write_report
from tests.tasks.reports import folders
from tests.tasks.reports.parsed_page import Page


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = folders.write_hostile_run(tmp_path_factory.mktemp("report") / "run")
    return write_report(folder).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(hostile: str) -> Page:
    return Page(hostile)


def test_the_report_is_written_into_the_run_folder(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=3)
    assert write_report(folder) == folder / "report.html"
    assert not list(folder.glob("*.tmp"))


def test_no_element_or_handler_comes_from_the_data(page: Page) -> None:
    assert {tag for tag, _ in page.elements}.isdisjoint({"img", "iframe", "b", "object", "embed", "base"})
    assert page.count("script") == 2
    assert page.count("style") == 1
    names = {name for _, attributes in page.elements for name in attributes}
    assert not {name for name in names if name.startswith("on")}
    assert "style" not in names


def test_nothing_in_the_page_points_outside_it(page: Page) -> None:
    for tag, attributes in page.elements:
        for name in ("src", "href", "srcset", "action", "data", "poster", "xlink:href"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:,")), (tag, name, value)
    style = next(text for tag, text in page.texts if tag == "style")
    assert "url(" not in style
    assert "@import" not in style


def test_the_policy_allows_nothing_but_the_page_s_own_style_and_script(page: Page) -> None:
    policy = next(a["content"] for tag, a in page.elements if tag == "meta" and a.get("http-equiv"))
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    style = next(text for tag, text in page.texts if tag == "style")
    script = [text for tag, text in page.texts if tag == "script"][1]
    assert rules == {
        "default-src": "'none'",
        "style-src": f"'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'",
        "script-src": f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_the_policy_comes_before_everything_it_governs(hostile: str) -> None:
    assert hostile.index("Content-Security-Policy") < min(hostile.index("<style"), hostile.index("<link"))


def test_the_script_makes_no_markup_of_data() -> None:
    folder = files("tasks.reports") / "templates"
    script = "".join((folder / name).read_text(encoding="utf-8") for name in ("dom.js", "evidence.js", "table.js"))
    for dangerous in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
        "</script",
    ):
        assert dangerous not in script


def test_row_data_survives_the_page(page: Page) -> None:
    rows = {row["id"]: row for row in page.data["rows"]}
    assert set(rows) == {sample["row_id"] for sample in folders.SAMPLES}
    assert rows[folders.HOSTILE_ID]["answer"] == {"text": folders.ATTACK}
    assert "".join(rows[folders.HOSTILE_ID]["passages"][1]["pieces"]) == folders.RIGHT_TO_LEFT
    assert page.data["metrics"] == list(folders.METRICS)


def test_the_data_block_holds_no_character_that_could_end_it(hostile: str) -> None:
    block = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', hostile, re.DOTALL)
    assert block is not None
    assert not set("<>&\u2028\u2029") & set(block[1])


def test_every_metric_has_a_row_in_the_summary_and_a_sortable_column(page: Page) -> None:
    for key in folders.METRICS:
        assert key in page.text
    heads = [attributes for tag, attributes in page.elements if tag == "th" and "data-sort" in attributes]
    assert [head["data-sort"] for head in heads] == ["", *map(str, range(len(folders.METRICS)))]
    assert heads[0]["aria-sort"] == "ascending"


def test_the_summary_gives_means_intervals_counts_and_reasons(page: Page) -> None:
    assert "0.500" in page.text
    assert "3 scored 0 undefined 1 failed" in page.text
    assert "4 needs a language-model judge" in page.text
    assert "higher is better" in page.text
    assert "lower is better" in page.text
    assert "neither high nor low is better" in page.text
    assert "on the scale 1-5, 1 row" in page.text


def test_values_are_drawn_beside_their_numbers(page: Page) -> None:
    drawings = Counter(
        (attributes.get("class") or "").split(" ")[0] for tag, attributes in page.elements if tag == "svg"
    )
    assert drawings["histogram"] == 3
    labels = [attributes["aria-label"] for tag, attributes in page.elements if attributes.get("class") == "histogram"]
    assert labels[0] == "3 values from 0 to 1; the fullest of 20 parts is 0 to 0.05 with 1"


def test_the_report_can_be_written_elsewhere(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=2)
    assert write_report(folder, out=tmp_path / "other.html") == tmp_path / "other.html"
    assert not (folder / "report.html").exists()
    assert write_report(folder, out=tmp_path / "new" / "other.html").exists()
    with pytest.raises(RunFolderError, match="cannot be written"):
        write_report(folder, out=tmp_path / "other.html" / "report.html")


def test_bad_rows_are_listed_with_their_problem(page: Page) -> None:
    assert "1 of 5 rows of the source could not be read as samples" in page.text
    cells = [text for tag, text in page.texts if tag == "bdi"]
    assert any(text.startswith("</script><script>window.broken=1") for text in cells)


def test_the_stage_table_adds_up(page: Page) -> None:
    stages = len(folders.STAGES)
    assert f"{3456 * stages:,}" in page.text
    assert f"{12 * stages}" in page.text
    assert "2 no usable reply from the judge" in page.text


def test_the_footer_says_where_the_tables_are(page: Page) -> None:
    assert "0f0e-run" in page.text
    assert "rag-assay 0.1.0" in page.text.replace("\xa0", " ")
    for stage in folders.STAGES:
        assert f"stages/{stage}.parquet" in page.text


def test_tables_and_controls_are_labelled(page: Page) -> None:
    assert all(a.get("scope") in {"col", "row"} for tag, a in page.elements if tag == "th")
    labelled = {a["for"] for tag, a in page.elements if tag == "label"}
    assert labelled == {a["id"] for tag, a in page.elements if tag in {"input", "select"}}
    ids = Counter(a["id"] for _, a in page.elements if "id" in a)
    assert max(ids.values()) == 1
    named = {name for _, a in page.elements for name in (a.get("aria-labelledby") or "").split()}
    assert named <= set(ids)


def test_page_with_all_rows_says_so(page: Page) -> None:
    assert "All 4 rows, the worst first." in page.text


def test_one_row_is_singular(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=1)
    assert "Rows The only row. Rows are" in Page(write_report(folder).read_text(encoding="utf-8")).text


def test_only_the_worst_rows_are_on_the_page_and_it_says_so(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=1200)
    page = Page(write_report(folder, worst_rows=2).read_text(encoding="utf-8"))
    assert [row["id"] for row in page.data["rows"]] == ["row-1199", "row-1198"]
    assert "This page has 2 of 1,200 rows with their evidence, the worst first; the other 1,198 count" in page.text
    assert "are in scores.parquet" in page.text
    assert f"has {WORST_ROWS} of 1,200" in Page(write_report(folder).read_text(encoding="utf-8")).text


def test_a_page_without_rows_is_a_summary(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=3)
    page = Page(write_report(folder, worst_rows=0).read_text(encoding="utf-8"))
    assert page.data["rows"] == []
    assert "0 of 3 rows" in page.text


def test_rows_that_would_make_the_page_too_large_stay_in_the_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folders.write_hostile_run(tmp_path / "run")
    monkeypatch.setattr(report_page, "LARGEST_DATA", 6_000)
    monkeypatch.setattr(row_blocks, "BLOCK", 1)
    page = Page(write_report(folder).read_text(encoding="utf-8"))
    assert "good" not in {row["id"] for row in page.data["rows"]}
    assert "page has 3 of 4 rows" in page.text
    assert "1 of the worst are left out because they are too large" in page.text


def test_rows_of_a_block_share_their_passages(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=100, text="Passage. " * 1000)
    page = write_report(folder)
    assert page.stat().st_size < 150_000
    assert {"".join(row["passages"][0]["pieces"]) for row in Page(page.read_text()).data["rows"]} == {
        "Passage. " * 1000
    }


def test_a_run_of_large_texts_stays_below_20_mb(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=250, text="\u4f60\u597d\uff0c\u4e16\u754c\u3002 " * 4_000)
    assert write_report(folder, worst_rows=250).stat().st_size < 20_000_000


def test_stages_that_were_not_needed_may_be_missing(tmp_path: Path) -> None:
    folder = folders.write_hostile_run(tmp_path / "run")
    for stage in (Stage.ENTITIES, Stage.QUESTIONS, Stage.RATINGS, Stage.VERDICTS, Stage.SIMILARITY, Stage.CLAIMS):
        (folder / "stages" / f"{stage}.parquet").unlink()
    page = Page(write_report(folder).read_text(encoding="utf-8"))
    assert all(row["claims"] == [] and row["entities"] is None for row in page.data["rows"])


@pytest.mark.parametrize("value", ["</script>", "<!--", "a & b", "\u2028\u2029", "\x00", "\ud7ff\U0001f600"])
def test_script_json_reads_back(value: str) -> None:
    text = script_json(value)
    assert json.loads(text) == value
    assert not set("<>&\u2028\u2029") & set(text)


def test_templates_are_packaged() -> None:
    names = {entry.name for entry in (files("tasks.reports") / "templates").iterdir()}
    assert {"page.html.j2", "report.html.j2", "comparison.html.j2", "report.css"} <= names
    assert {"dom.js", "evidence.js", "table.js"} <= names


def test_rows_that_repeat_a_text_are_named_with_the_option_that_allows_for_it(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=2)
    manifest = json.loads((folder / "run.json").read_text())
    said = "9 of 12 rows repeat a user_input: with --by user_input the interval of recall is 1.7 times as wide"
    folders.write_json(folder / "run.json", {**manifest, "repetition": said})
    assert f"{said}." in Page(write_report(folder).read_text(encoding="utf-8")).text


def test_the_answer_comes_first(page: Page) -> None:
    parts = ("Worst metrics", "Summary", "Rows are ordered by")
    places = [page.text.index(part) for part in parts]
    assert places == sorted(places)


@pytest.mark.parametrize(("verdict", "is_said"), [("probability", True), ("binary", False)])
def test_the_summary_says_what_scores_from_probabilities_are(tmp_path: Path, verdict: str, is_said: bool) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=2)
    manifest = json.loads((folder / "run.json").read_text())
    stages = {**manifest["stages"], "verdicts": manifest["stages"]["samples"]}
    folders.write_json(folder / "run.json", {**manifest, "config": {"verdict": verdict}, "stages": stages})
    text = Page(write_report(folder).read_text(encoding="utf-8")).text
    assert ("Verdicts count as the judge's probabilities: a score such as faithfulness is the mean" in text) is is_said
