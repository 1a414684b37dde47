"""Describe a run as MLflow keeps it: parameters, metrics, tags and files."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tasks.findings.finding import RunRecords
from tasks.findings.table import figures_of
from tasks.history.recorded_run import RecordedRun
from tasks.metering.cost import CostRecord
from tasks.mlflow_results.feedback import mlflow_name
from tasks.record.run_record import RunRecord
from tasks.reports.history.history_text import describe_outcome
from tasks.runs.run_folder import COMPARISON, MANIFEST, OUTCOME, REPORT, SUMMARY

RUN_ID = "rag_assay.run_id"
"""Tag with the id of a run, by which it is found again."""

FILES = (REPORT, COMPARISON, OUTCOME, SUMMARY, MANIFEST)
"""Files of a run folder that MLflow gets as artifacts, if they are there."""

SLICES = "slices.json"
"""Artifact with the metrics of slices."""

_LONGEST_PARAMETER, _LONGEST_TAG = 6000, 8000


@dataclass(frozen=True, slots=True)
class RunContent:
    """A run as MLflow keeps it, without its files.

    Args:
        slices: Rows with the metrics of each slice.
    """

    parameters: Mapping[str, str]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    slices: tuple[Mapping[str, Any], ...]


def describe_run(run: RecordedRun, records: RunRecords) -> RunContent:
    """Return a finished run as MLflow keeps it.

    Args:
        run: Its entry in the history, which has its figures and the identities and digests of what took part.
    """
    figures = {mlflow_name(name): value for name, value in _figures(run, records) if value is not None}
    return RunContent(
        {name: text[:_LONGEST_PARAMETER] for name, text in _parameters(run, records.record) if text},
        figures,
        {name: text[:_LONGEST_TAG] for name, text in _tags(run) if text},
        tuple(_slices(run)),
    )


def _parameters(run: RecordedRun, record: RunRecord) -> Iterator[tuple[str, str]]:
    yield "source", run.source
    yield "metrics", ", ".join(metric.key for metric in record.metrics)
    yield "verdict", record.config.verdict
    for name, version in run.versions.items():
        yield name, version if isinstance(version, str) else json.dumps(version)


def _figures(run: RecordedRun, records: RunRecords) -> Iterator[tuple[str, float | None]]:
    for metric in run.metrics:
        if not metric.slice_column:
            yield metric.metric, metric.mean
            for name in ("low", "high", "scored", "undefined", "failed"):
                yield f"{metric.metric}.{name}", getattr(metric, name)
    yield "rows", run.rows
    yield "bad_rows", run.bad_rows
    yield "seconds", run.cost.seconds
    yield "questions", run.cost.questions
    yield "questions.cached", run.cost.stored
    yield "requests", run.cost.requests
    yield "tokens.prompt", run.cost.prompt_tokens
    yield "tokens.output", run.cost.output_tokens
    if (cost := records.record.find(CostRecord)) is not None:
        yield "cost", cost.total
    for figure in figures_of(records):
        yield ".".join((figure.name, *figure.labels.values())), figure.value


def _tags(run: RecordedRun) -> Iterator[tuple[str, str]]:
    yield RUN_ID, run.run_id
    yield "rag_assay.evaluation", run.name
    yield "rag_assay.outcome", describe_outcome(run)
    yield "rag_assay.trigger", run.trigger
    yield "rag_assay.folder", run.folder
    message = "; ".join(run.failures) if run.outcome is None else run.outcome.message
    yield "mlflow.note.content", message  # the description on the page of the run
    yield "mlflow.source.name", "rag-assay"


def _slices(run: RecordedRun) -> Iterator[Mapping[str, Any]]:
    names = ("slice_column", "slice", "metric", "mean", "low", "high", "scored", "undefined", "failed")
    for metric in run.metrics:
        if metric.slice_column:
            yield {name: getattr(metric, name) for name in names}
