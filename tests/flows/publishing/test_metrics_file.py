"""The figures of a run as monitoring reads them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from flows.config.run_config import RunConfig
from flows.publishing.metrics_file import failure_in_metrics_file, write_metrics_file
from flows.publishing.run_subject import RunSubject
from metric_core.errors import SourceError
from tasks.history.catalogue import Catalogue
from tasks.history.incident import IncidentFinding
from tasks.history.message_log import MessageLog
from tasks.history.recorded_run import RecordedRun
from tasks.runs.run_folder import RunFolder
from tests.run_records import distribution_json, record_json
from tests.tasks.history.run_folders import write_run

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
DISTRIBUTION = distribution_json(0.8, interval={"low": 0.7, "high": 0.9})
METRICS: list[dict[str, Any]] = [
    {"metric": 'tone(words="a\\b")', "distribution": None, **COUNTS, **OTHERS},
    {"metric": "faithfulness", "distribution": DISTRIBUTION, **COUNTS, **OTHERS},
]


STATES, DAYS = ("finished", "failed", "missed"), (7, 30, 90)


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
    (tmp_path / "run" / "run.json").write_text(json.dumps(record_json(MANIFEST)), encoding="utf-8")
    summary = {"rows": 5, "metrics": METRICS}
    (tmp_path / "run" / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return RunFolder(tmp_path / "run")


def config_of(file: Path, **options: Any) -> RunConfig:
    history = str(file.parent.parent / "history.db")
    return RunConfig.model_validate({"metrics_file": str(file), "history": history, "name": "nightly", **options})


def test_file_has_the_figures_of_the_run(folder: RunFolder, tmp_path: Path) -> None:
    file = tmp_path / "new" / "assay-{deployment}-{index}.prom"
    assert write_metrics_file(config_of(file), "nightly", SUBJECT, folder) == ()
    (written,) = (tmp_path / "new").iterdir()
    assert written.name == "assay-index-rebuilt-handbook-hand-book.prom"
    assert 'assay_rows{deployment="index-rebuilt-handbook",index="hand/book"} 5.0' in written.read_text()
    values = parse(written)
    finished = (folder.path / "summary.json").stat().st_mtime
    assert values.pop(("assay_run_finished_timestamp_seconds", "")) == finished
    assert values.pop(("assay_last_run_timestamp_seconds", "")) == finished
    assert values.pop(("assay_open_incidents", "")) == values.pop(("assay_undelivered_messages", "")) == 0
    assert {values.pop(("assay_scheduled_runs", f"{state} {days}d")) for state in STATES for days in DAYS} == {0}
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
    file = tmp_path / "new" / "assay.prom"
    file.parent.mkdir()
    file.write_text("assay_rows 99\n", encoding="utf-8")
    assert write_metrics_file(config_of(file), "nightly", RunSubject(), folder) == ()
    assert parse(file)["assay_rows", ""] == 5


def write_history(config: RunConfig, tmp_path: Path) -> datetime:
    """Record nights before now: finished, failed, finished with too few scores, missed; return the first one's time."""
    history, now = Catalogue(config.history), datetime.now(UTC).replace(microsecond=0)
    days = [now - timedelta(days=number) for number in (4, 3, 2, 1)]
    starts = [{"trigger": "schedule", "due": day.isoformat()} for day in days]
    entries: list[dict[str, Any]] = [{"created": start["due"], "start": start} for start in starts]
    history.record(write_run(tmp_path / "first", 0, **entries[0]))
    history.add(RecordedRun.without_results("flow-run", "nightly", days[1], "failed", "no file", "schedule"))
    history.record(write_run(tmp_path / "third", 2, failures=["too few scores"], **entries[2]))
    history.add(RecordedRun.without_results("lost", "nightly", days[3], "missed", "no worker", "schedule"))
    history.open_incident("nightly", IncidentFinding("error", "error", "no file"))
    log = MessageLog(config.history)
    log.put("nightly", [("webhook", str(number), {}) for number in range(3)], "waiting", days[0])
    log.note_try(1, 1.0)
    history.open_incident("weekly", IncidentFinding("error", "error", "no file"))
    return days[0]


@pytest.mark.parametrize("failures", [[], ["too few scores"]])
def test_file_has_the_figures_of_the_history(folder: RunFolder, tmp_path: Path, failures: list[str]) -> None:
    file = tmp_path / "new" / "assay.prom"
    config = config_of(file)
    first = write_history(config, tmp_path)
    (folder.path / "run.json").write_text(json.dumps(record_json(MANIFEST, failures=failures)), encoding="utf-8")
    assert write_metrics_file(config, "nightly", RunSubject(), folder) == ()
    values = parse(file)
    finished = (folder.path / "summary.json").stat().st_mtime
    assert values["assay_last_run_timestamp_seconds", ""] == finished
    succeeded = first.timestamp() + 12.5 if failures else finished
    assert values["assay_last_success_timestamp_seconds", ""] == succeeded
    assert values["assay_run_failed", ""] == len(failures)
    assert [values["assay_scheduled_runs", f"{state} 7d"] for state in STATES] == [1, 2, 1]
    assert [values["assay_availability", f"{days}d"] for days in DAYS] == [0.25] * 3
    assert (values["assay_open_incidents", ""], values["assay_undelivered_messages", ""]) == (1, 3)


def test_run_that_fails_leaves_no_old_figures(folder: RunFolder, tmp_path: Path) -> None:
    file = tmp_path / "new" / "assay-{deployment}.prom"
    config = config_of(file)
    write_metrics_file(config, "nightly", SUBJECT, folder)
    first = write_history(config, tmp_path)
    started = datetime.now(UTC).timestamp()
    with pytest.raises(SourceError), failure_in_metrics_file(config, SUBJECT):
        raise SourceError("no file")
    values = parse(tmp_path / "new" / "assay-index-rebuilt-handbook.prom")
    assert values.pop(("assay_last_run_timestamp_seconds", "")) >= started
    assert [values.pop(("assay_scheduled_runs", f"{state} 30d")) for state in STATES] == [1, 2, 1]
    assert {name for name, _ in values} == {
        *("assay_run_failed", "assay_last_success_timestamp_seconds", "assay_open_incidents"),
        *("assay_scheduled_runs", "assay_availability", "assay_undelivered_messages"),
    }
    assert values["assay_run_failed", ""] == 1
    assert values["assay_last_success_timestamp_seconds", ""] == first.timestamp() + 12.5


def test_history_that_cannot_be_read_is_a_warning(folder: RunFolder, tmp_path: Path) -> None:
    file = tmp_path / "new" / "assay.prom"
    config = config_of(file, history=str(folder.path))
    (warning,) = write_metrics_file(config, "nightly", RunSubject(), folder)
    assert warning.startswith(f"the metrics file has no figures of the history. the history sqlite:///{folder.path}")
    values = parse(file)
    assert values["assay_rows", ""] == 5
    assert ("assay_open_incidents", "") not in values


def test_run_without_a_metrics_file_writes_none(folder: RunFolder, tmp_path: Path) -> None:
    assert write_metrics_file(RunConfig(history=str(tmp_path / "history.db")), "nightly", SUBJECT, folder) == ()
    assert not (tmp_path / "history.db").exists()


def test_file_that_cannot_be_written_is_a_warning(folder: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    (warning,) = write_metrics_file(config_of(tmp_path / "file" / "assay.prom"), "nightly", SUBJECT, folder)
    assert warning.endswith("assay.prom cannot be written: Not a directory")
