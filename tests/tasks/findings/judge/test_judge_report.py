"""The judge in the report of a run."""

import json
from pathlib import Path

import pytest

from tasks.findings.finding import RunRecords
from tasks.findings.judge.judge_finding import judge_details, judged_by
from tasks.record.run_summary import RunSummary
from tasks.reports.page import open_templates
from tasks.reports.run.report_page import load_templates, write_report
from tests.run_records import make_record
from tests.tasks.reports import folders
from tests.tasks.reports.parsed_page import Page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = folders.write_hostile_run(tmp_path_factory.mktemp("report") / "run")
    return Page(write_report(folder).read_text(encoding="utf-8"))


def test_the_judge_is_named_a_baseline_with_its_note_word_for_word(page: Page) -> None:
    assert "Built-in judge" in page.text
    assert folders.NOTE in page.text


def test_a_language_model_is_not_called_a_baseline(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=2)
    manifest = json.loads((folder / "run.json").read_text())
    manifest["judge"] |= {"backend": "server", "language_model": True}
    folders.write_json(folder / "run.json", manifest)
    text = Page(write_report(folder).read_text(encoding="utf-8")).text
    assert "Baseline" not in text
    assert folders.NOTE in text


def test_a_cascade_is_named(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=2)
    manifest = json.loads((folder / "run.json").read_text())
    manifest["judge"] |= {"backend": "cascade"}
    folders.write_json(folder / "run.json", manifest)
    assert "Cascade of two judges" in Page(write_report(folder).read_text(encoding="utf-8")).text


def test_languages_of_rows_and_models_are_shown(tmp_path: Path) -> None:
    folder = folders.write_large_run(tmp_path / "run", rows=2)
    assert "Languages" not in Page(write_report(folder).read_text(encoding="utf-8")).text
    manifest = json.loads((folder / "run.json").read_text())
    manifest["judge"] |= {"languages": ["en"]}
    folders.write_json(folder / "run.json", {**manifest, "languages": {"en": 45, "zh": 3, "und": 1}})
    text = Page(write_report(folder).read_text(encoding="utf-8")).text
    assert "English 45, Chinese 3, not clear 1 judge measured on English" in text


def test_the_header_leads_to_the_judge_below_the_answer(page: Page) -> None:
    parts = ("Worst metrics", "More on the judge", "Summary", "Judge and provenance", "Rows are ordered by")
    places = [page.text.index(part) for part in parts]
    assert places == sorted(places)


def test_the_templates_of_the_room_are_loaded_before_the_report_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(open_templates(), "get_template", loaded.append)
    load_templates()
    assert {"judge/section.html.j2", "judge/subheader.html.j2"} <= set(loaded)


def test_the_judge_is_named_on_a_terminal_with_its_note_among_the_details() -> None:
    note = "It sees missing facts, not subtle distortions."
    record = make_record(judge={"backend": "builtin", "model": "m", "revision": "1", "note": note})
    run = RunRecords(record, RunSummary.model_validate({"rows": 1, "metrics": []}), Path("run"))
    said = "judge: the built-in judge (no language model), not calibrated (assay docs judge)"
    assert list(judged_by(run)) == [said]
    assert next(judge_details(run)) == note
