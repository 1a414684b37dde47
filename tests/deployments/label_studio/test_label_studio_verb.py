"""`assay label-studio` writes tasks of a run, and turns what people labelled into a file that `assay label` imports."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deployments.cli.conftest import Outcome
from tests.deployments.cli.conftest import assay as assay  # noqa: PLC0414 a fixture here too
from tests.tasks.calibration.test_stored_labels import write_run
from tests.tasks.label_studio.test_label_tasks import ANNA, annotation

Assay = Callable[..., Outcome]


def test_labels_come_back_from_a_project(assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "run")
    done = assay("label-studio", "tasks", "run", "--metric", "faithfulness", "-n", "12")
    assert (done.code, done.out.strip()) == (0, "wrote 12 tasks to tasks.json, their interface to tasks.xml"), done.err
    tasks = json.loads(Path("tasks.json").read_text(encoding="utf-8"))
    labelled = [{**task, "annotations": [annotation(ANNA, "Yes")]} for task in tasks]
    Path("export.json").write_text(json.dumps(labelled), encoding="utf-8")
    done = assay("label-studio", "labels", "tasks.json", "export.json")
    assert done.out.strip() == "wrote the labels of anna@example.com (12), of 12 tasks, to labels.jsonl"
    done = assay("label", "run", "--metric", "faithfulness", "--import", "labels.jsonl")
    assert "12 rows of run are labelled for faithfulness, by anna@example.com (12)" in " ".join(done.out.split())


def test_tasks_are_not_written_over(assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "run")
    call = ("label-studio", "tasks", "run", "--metric", "faithfulness", "-n", "12")
    assert assay(*call).code == 0
    again = assay(*call)
    assert again.code == 2
    assert "tasks.json already exists" in again.err


def test_grades_that_have_no_key_are_refused(assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "run")
    done = assay("label-studio", "tasks", "run", "--metric", "faithfulness", "-n", "12", "--range", "0,20")
    assert (done.code, "keys from 0 to 9" in " ".join(done.err.split())) == (2, True), done.err
