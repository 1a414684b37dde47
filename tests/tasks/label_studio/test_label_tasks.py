"""Tasks of Label Studio, and the labels of people there: each counts as one that was given on a page."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import SourceError
from tasks.calibration.label_imports import import_labels
from tasks.calibration.label_sampling import DrawnSample, SampleOptions, draw_sample
from tasks.label_studio.label_tasks import read_labels, write_labels, write_tasks
from tasks.reports.labels.label_page import LabelPage
from tasks.runs.finished_run import FinishedRun
from tests.tasks.calibration.test_stored_labels import home as home  # noqa: PLC0414 a fixture here too
from tests.tasks.calibration.test_stored_labels import write_run

ANNA, BEN = {"id": 1, "email": "anna@example.com"}, {"id": 2, "email": "ben@example.com"}


class Project:
    """A project of Label Studio with the tasks of a sample."""

    def __init__(self, folder: Path, span: tuple[float, float] | None = None, **options: Any) -> None:
        self.run: FinishedRun = write_run(folder / "run")
        self.sample: DrawnSample = draw_sample(self.run, SampleOptions(metric="faithfulness", budget=12, **options))
        self.tasks = folder / "tasks.json"
        self.interface = write_tasks(self.run, self.sample, LabelPage("faithfulness", "Good?", span), self.tasks)
        self.written: list[Any] = json.loads(self.tasks.read_text(encoding="utf-8"))
        self.file = folder / "export.json"

    def export(self, *given: Sequence[tuple[Any, str]]) -> Path:
        """Write what Label Studio exports: the tasks with a label, with their annotations."""
        exported = [
            {"id": number, **task, "annotations": [annotation(*each) for each in labels]}
            for number, (task, labels) in enumerate(zip(self.written, given, strict=False), start=1)
            if labels
        ]
        self.file.write_text(json.dumps(exported), encoding="utf-8")
        return self.file


def annotation(person: Any, choice: str, time: str = "2026-11-28T10:00:00.000000Z") -> dict[str, Any]:
    result = {"from_name": "label", "to_name": "answer", "type": "choices", "value": {"choices": [choice]}}
    return {
        "completed_by": person,
        "result": [result],
        "was_cancelled": False,
        "updated_at": time,
        "ground_truth": False,
    }


def test_labels_of_a_project_are_those_of_a_page(tmp_path: Path) -> None:
    project = Project(tmp_path)
    both = [(ANNA, "Yes"), (BEN, "No")]
    found = read_labels(project.tasks, [project.export(both, [], [(ANNA, "Unsure")], [(3, "No")])])
    assert found.people == {"anna@example.com": 2, "ben@example.com": 1, "user 3": 1}
    write_labels(found, tmp_path / "labels.jsonl")
    known = import_labels(project.run, "faithfulness", [tmp_path / "labels.jsonl"]).known
    assert known.settled.contested == (project.sample.items[0].digest,)
    assert known.settled.undecided == 1
    assert known.settled.values[project.sample.items[3].digest] == 0


def test_a_label_that_was_changed_counts_as_it_is_last(tmp_path: Path) -> None:
    project = Project(tmp_path)
    later = annotation(ANNA, "No", "2026-11-28T11:00:00.000000Z")
    skipped = {**annotation(BEN, "Yes"), "was_cancelled": True}
    path = project.export([(ANNA, "Yes")])
    (task,) = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps([{**task, "annotations": [later, *task["annotations"], skipped]}]), encoding="utf-8")
    found = read_labels(project.tasks, [path])
    assert found.people == {"anna@example.com": 1}
    assert found.lines[0]["label"] == 0


def test_tasks_show_what_a_page_shows(tmp_path: Path) -> None:
    project = Project(tmp_path, is_claims=True)
    data = project.written[0]["data"]
    assert data["claim"].startswith("Claim ")
    assert data["passages"] == "[1] Text."
    assert "score" not in json.dumps(project.written)
    interface = project.interface.read_text(encoding="utf-8")
    shown = [name for name in data if f'value="${name}"' in interface]
    assert shown == [name for name in data if data[name] and name != "assay"]


def test_grades_are_choices(tmp_path: Path) -> None:
    project = Project(tmp_path, (1.0, 3.0))
    assert '<Choice value="3" hotkey="3"/>' in project.interface.read_text(encoding="utf-8")
    assert read_labels(project.tasks, [project.export([(ANNA, "3")])]).lines[0]["label"] == 3


def test_a_sample_from_which_tasks_were_removed_is_refused(tmp_path: Path) -> None:
    project = Project(tmp_path)
    path = project.export([(ANNA, "Yes")])
    project.tasks.write_text(json.dumps(project.written[1:]), encoding="utf-8")
    with pytest.raises(SourceError, match="tasks were removed or changed"):
        read_labels(project.tasks, [path])


def test_an_export_of_other_tasks_is_refused(tmp_path: Path) -> None:
    project, other = Project(tmp_path / "one"), Project(tmp_path / "two", seed=5)
    with pytest.raises(SourceError, match="name the file that was imported there"):
        read_labels(other.tasks, [project.export([(ANNA, "Yes")])])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"id": 1, "label": "Yes", "annotator": 1}]', "format JSON: .*data"),
        ("{", "cannot be read"),
        ('{"tasks": []}', "format JSON"),
    ],
)
def test_another_format_is_named(tmp_path: Path, content: str, message: str) -> None:
    project = Project(tmp_path)
    project.file.write_text(content, encoding="utf-8")
    with pytest.raises(SourceError, match=message):
        read_labels(project.tasks, [project.file])


def test_an_answer_that_was_not_offered_is_named(tmp_path: Path) -> None:
    project = Project(tmp_path)
    with pytest.raises(SourceError, match="'Maybe', wanted one of Yes, No, Unsure"):
        read_labels(project.tasks, [project.export([(ANNA, "Maybe")])])
