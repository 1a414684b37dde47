"""Traces as a source: their paths, and the redaction of their texts."""

import json
from pathlib import Path

import pytest

from flows.config.deploy_options import DeploySettings
from flows.config.loading import load_config
from flows.config.run_config import RunConfig
from flows.index_events.announced_dataset import check_dataset
from flows.planning.run_plan import locate
from tasks.sources import SourceOptions, read_samples
from tests.tasks.sources.test_redaction import SECRET, privacy  # noqa: F401 a fixture


def test_the_path_of_traces_is_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text('source = "traces:spans.jsonl"\n')
    assert load_config(tmp_path / "assay.toml", {}).source == f"traces:{tmp_path}/spans.jsonl"


def test_traces_on_this_machine_are_recorded_with_their_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate("traces:a") == f"traces:{tmp_path}/a"


def test_traces_lie_in_the_folder_of_the_source_of_a_deployment(tmp_path: Path) -> None:
    config = RunConfig(source=str(tmp_path / "a.jsonl"), deploy=DeploySettings())
    check_dataset(config, f"traces:{tmp_path}/b.jsonl")


def test_traces_are_redacted(privacy: str, tmp_path: Path) -> None:  # noqa: F811
    attributes = {"openinference.span.kind": "CHAIN", "input.value": f"Is {SECRET} mine?", "output.value": "No."}
    context = {"trace_id": "t1", "span_id": "s1"}
    spans = [{"name": "rag", "context": context, "attributes": {**attributes, "user.id": SECRET}}, {SECRET: 1}]
    (tmp_path / "spans.jsonl").write_text("".join(json.dumps(span) + "\n" for span in spans))
    reader = read_samples(f"traces:{tmp_path / 'spans.jsonl'}", SourceOptions(redact=f"{privacy}:redact"), {})
    (sample,) = [row for table in reader for row in table.to_pylist()]
    assert sample["user_input"] == "Is [card] mine?"
    assert SECRET not in json.dumps(sample)
    assert SECRET not in "".join([*map(str, reader.bad_rows), *reader.warnings])
