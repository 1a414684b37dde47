"""The files of a record: read and written back equal, refused by the name of the entry, described by a schema."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from metric_core.errors import RunFolderError
from tasks.findings.schemas import record_schemas
from tasks.record.record_files import parse_finished, parse_record, parse_summary
from tasks.record.run_summary import RunSummary
from tests.run_records import anchor_json, distribution_json, make_record, metric_json, record_json

DOCS = Path(__file__).parents[3] / "docs"
CALIBRATION = {"metrics": {"faithfulness": {"figures": {"kappa": {"value": 0.5, "low": None, "high": None}}}}}
ENTRIES: dict[str, Any] = {
    "metrics": [{"key": "faithfulness", "bounds": [0.0, 1.0]}],
    "judge_fingerprints": {"verdict": "12"},
    "calibration": CALIBRATION,
    "anchor": anchor_json(asked_again={"reason": "it is down", "judges": [{"judge": "m", "change": {"rows": 9}}]}),
    "bad_rows": [{"number": 3, "column": None, "problem": "no text: \udcff"}],
    "warnings": ["a warning"],
    "repetition": None,
    "config": {"verdict": "binary", "source": "a.jsonl", "limit": None},
}


def as_written(content: Any) -> Any:
    return json.loads(json.dumps(content))


def test_a_record_is_written_as_it_was_read() -> None:
    content = as_written(make_record(ENTRIES).to_json())
    assert {name: content[name] for name in ("anchor", "bad_rows", "config")} == {
        name: ENTRIES[name] for name in ("anchor", "bad_rows", "config")
    }
    assert as_written(parse_record(content, Path("run.json")).to_json()) == content
    running = {name: content[name] for name in content.keys() - {"rows", "metrics", "stages"}} | {"status": "running"}
    assert as_written(parse_record(running, Path("run.json")).to_json()) == running


def test_a_summary_is_written_as_it_was_read_without_empty_entries() -> None:
    sliced = {name: value for name, value in metric_json("faithfulness").items() if name != "reasons"}
    one = {"value": "x", "rows": 9, "is_small": True, "metrics": [{**sliced, "rest": None}]}
    content: dict[str, Any] = {
        "rows": 9,
        "metrics": [metric_json("faithfulness", distribution=distribution_json(0.5, groups=None, note=None))],
        "slices": [{"column": "topic", "values": 1, "merged": 0, "slices": [one]}],
        "cascade": {"claims": {"asked": 9, "alone": 4}},
    }
    defaults = {"independent_groups": None, "mean_of_groups": None, "mean_of_rows": None}
    content["metrics"][0]["distribution"] |= defaults
    summary = RunSummary.model_validate(content)
    assert as_written(summary.to_json()) == content
    assert as_written(summary.extend(slices=(), cascade={}).to_json()) == {
        name: content[name] for name in ("rows", "metrics")
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "has the format 2, this rag-assay reads 1"),
        ({"status": "failed"}, "is not finished .its status is 'failed'"),
        ({"rows": -1}, r"run.json cannot be read: rows: .*, got -1. Evaluate"),
    ],
)
def test_a_record_that_is_not_ours_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RunFolderError, match=message):
        parse_finished(record_json(ENTRIES, **changes), Path("run") / "run.json")


def test_a_finished_run_has_rows_metrics_stages_and_usage() -> None:
    content = record_json(ENTRIES)
    del content["stages"]
    with pytest.raises(RunFolderError, match="a finished run has stages"):
        parse_finished(content, Path("run.json"))
    with pytest.raises(RunFolderError, match=r"summary.json cannot be read: rows: Field required\. Evaluate"):
        parse_summary({"metrics": []}, Path("summary.json"))


@pytest.mark.parametrize("name", record_schemas())
def test_the_published_schemas_are_those_of_the_types(name: str) -> None:
    published = json.loads((DOCS / name).read_text(encoding="utf-8"))
    assert published == record_schemas()[name], f"`python -m tasks.findings.schemas docs` writes docs/{name}"


def test_the_published_schema_accepts_a_record() -> None:
    content = {**record_json(ENTRIES), "bad_rows": []}
    Draft202012Validator(record_schemas()["run.schema.json"]).validate(content)
