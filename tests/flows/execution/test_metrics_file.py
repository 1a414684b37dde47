"""The figures of a run as monitoring reads them."""

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from flows.execution.metrics_file import write_metrics_file
from flows.execution.run_subject import RunSubject
from tasks.runs.run_folder import RunFolder

SUBJECT = RunSubject("index-rebuilt-handbook", "hand/book", "1.42.0")
STAGE = {"questions": 10, "stored": 4, "requests": 7, "prompt_tokens": 900, "output_tokens": 80}
MANIFEST: dict[str, Any] = {
    "bad_row_count": 2,
    "seconds": 12.5,
    "failures": ["faithfulness: 3 of 4 cells failed"],
    "stages": {"verdicts": STAGE},
}
COUNTS = {"scored": 1, "undefined": 1, "failed": 3}
OTHERS = {"direction": "higher", "scales": {}, "categories": {}, "reasons": {}}
DISTRIBUTION = {"count": 1, "mean": 0.8, "interval": {"low": 0.7, "high": 0.9}}
METRICS: list[dict[str, Any]] = [
    {"metric": 'tone(words="a\\b")', "distribution": None, **COUNTS, **OTHERS},
    {"metric": "faithfulness", "distribution": DISTRIBUTION, **COUNTS, **OTHERS},
]


def parse(file: Path) -> dict[tuple[str, str], float]:
    """Return the values of a file by name and the labels besides the subject, after a check of the subject."""
    values: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(file.read_text(encoding="utf-8")):
        assert (family.type, bool(family.documentation)) == ("gauge", True)
        for sample in family.samples:
            labels = dict(sample.labels)
            labels.pop("deployment")
            labels.pop("index")
            values[sample.name, " ".join(labels.values())] = sample.value
    return values


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text(json.dumps(MANIFEST), encoding="utf-8")
    summary = {"rows": 5, "metrics": METRICS}
    (tmp_path / "run" / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return RunFolder(tmp_path / "run")


def test_file_has_the_figures_of_the_run(folder: RunFolder, tmp_path: Path) -> None:
    file = tmp_path / "new" / "assay-{deployment}-{index}.prom"
    assert write_metrics_file(str(file), folder, SUBJECT) == ()
    (written,) = (tmp_path / "new").iterdir()
    assert written.name == "assay-index-rebuilt-handbook-hand-book.prom"
    assert 'assay_rows{deployment="index-rebuilt-handbook",index="hand/book"} 5.0' in written.read_text()
    values = parse(written)
    assert values.pop(("assay_run_finished_timestamp_seconds", "")) > 1.7e9
    cells = {("assay_cells", f"{metric['metric']} {state}"): COUNTS[state] for metric in METRICS for state in COUNTS}
    assert values == cells | {
        ("assay_rows", ""): 5,
        ("assay_bad_rows", ""): 2,
        ("assay_run_seconds", ""): 12.5,
        ("assay_run_failed", ""): 1,
        ("assay_mean", "faithfulness"): 0.8,
        ("assay_mean_low", "faithfulness"): 0.7,
        ("assay_mean_high", "faithfulness"): 0.9,
        ("assay_questions", "verdicts"): 10,
        ("assay_cached_questions", "verdicts"): 4,
        ("assay_requests", "verdicts"): 7,
        ("assay_tokens", "prompt verdicts"): 900,
        ("assay_tokens", "output verdicts"): 80,
    }


def test_later_run_replaces_the_file(folder: RunFolder, tmp_path: Path) -> None:
    file = tmp_path / "assay.prom"
    file.write_text("assay_rows 99\n", encoding="utf-8")
    assert write_metrics_file(str(file), folder, RunSubject()) == ()
    assert parse(file)["assay_rows", ""] == 5


def test_file_that_cannot_be_written_is_a_warning(folder: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    (warning,) = write_metrics_file(str(tmp_path / "file" / "assay.prom"), folder, SUBJECT)
    assert warning.endswith("assay.prom cannot be written: Not a directory")
