"""The verbs that read a finished run: report and export."""

import json
import webbrowser
from collections.abc import Callable
from pathlib import Path

import pytest

from deployments.cli.export import export
from tests.deployments.cli.conftest import Outcome
from tests.tasks.reports import folders

Assay = Callable[..., Outcome]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folders.write_hostile_run(tmp_path_factory.mktemp("reading") / "run")


def test_report_makes_the_page_and_says_where(assay: Assay, run: Path) -> None:
    outcome = assay("report", str(run))
    assert (outcome.code, outcome.out.strip()) == (0, str(run / "report.html"))
    assert (run / "report.html").exists()


def test_report_has_the_requested_number_of_rows(assay: Assay, run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert assay("report", str(run), "--rows", "2", "--out", str(page)).code == 0
    assert "This page has 2 of 4 rows" in page.read_text(encoding="utf-8")


def test_report_opens_the_page(assay: Assay, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def fake_open(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", fake_open)
    assert assay("report", str(run), "--open").code == 0
    assert opened == [(run / "report.html").as_uri()]


@pytest.mark.parametrize("verb", ["report", "export"])
def test_a_folder_that_is_no_run_is_a_message(assay: Assay, tmp_path: Path, verb: str) -> None:
    outcome = assay(verb, str(tmp_path))
    assert outcome.code == 5
    assert outcome.err.startswith("error: ")


def test_export_takes_the_format_from_the_file_name(assay: Assay, run: Path, tmp_path: Path) -> None:
    target = tmp_path / "scores.jsonl"
    outcome = assay("export", str(run), "--shape", "wide", "--out", str(target))
    assert (outcome.code, outcome.out) == (0, "")
    assert json.loads(target.read_text(encoding="utf-8").splitlines()[0])["faithfulness"] == 1.0


def test_export_writes_csv_to_stdout(run: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    export(run)
    assert capfdbinary.readouterr().out.startswith(b'"row_id","metric","value","status","reason","label"')


@pytest.mark.parametrize(
    ("option", "value", "meant"), [("--shape", "wid", "wide"), ("--format", "json", "jsonl"), ("--format", "x", "")]
)
def test_misspelled_choice_gets_a_suggestion(assay: Assay, run: Path, option: str, value: str, meant: str) -> None:
    outcome = assay("export", str(run), option, value)
    assert outcome.code == 2
    assert f"got '{value}'" in outcome.err
    assert (f"Did you mean {meant}?" in outcome.err) == bool(meant)
