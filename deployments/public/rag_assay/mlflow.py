"""Score the rows of `mlflow.genai.evaluate` with the metrics of rag-assay.

    import mlflow
    import rag_assay.mlflow

    mlflow.genai.evaluate(data, scorers=[rag_assay.mlflow.scorer("faithfulness")])

Scores, keys and cached answers are those of a run of rag-assay over the same rows.
"""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from rag_assay._packages import open_packages

open_packages()

from deployments.notebook import evaluate  # noqa: E402 the packages are open only now
from metric_core.errors import FailedCellsError, MissingDependencyError  # noqa: E402
from tasks.mlflow_results.feedback import make_feedback, mlflow_name, sources_of  # noqa: E402
from tasks.mlflow_results.mlflow_sink import INSTALL, PACKAGE  # noqa: E402
from tasks.reports.exports.scored_rows import read_scored_rows  # noqa: E402
from tasks.runs.run_folder import RunFolder  # noqa: E402

if TYPE_CHECKING:
    from tasks.options.metric_options import MetricTable

__all__ = ["scorer"]

ReadRow: TypeAlias = Callable[[Any, Any, Mapping[str, Any], Any], Mapping[str, Any]]
"""A function from inputs, outputs, expectations and trace to the columns of a sample."""

_NAMES: Mapping[str, Sequence[str]] = {
    "user_input": ("user_input", "question", "query", "input"),
    "response": ("response", "answer", "output"),
    "retrieved_contexts": ("retrieved_contexts", "contexts", "retrieved_context", "documents"),
    "reference": ("reference", "expected_response"),
}
"""Column of a sample -> names that it may have in inputs, outputs and expectations."""

_PAUSE = 0.1
"""Seconds in which rows are collected that MLflow scores at the same time."""

_one_at_a_time = Lock()


def scorer(metric: "str | MetricTable", *, read: ReadRow | None = None, **options: Any) -> Any:
    """Return a scorer of MLflow for a metric.

    Args:
        metric: Metric, as `rag_assay.evaluate` takes it: a name, with parameters in parentheses, or a table.
        read: Function from inputs, outputs, expectations and trace of a row to the columns of a sample, where
            `read_row` does not find them.
        **options: Other fields of the configuration, such as `judge="http://localhost:8000/v1"`.

    Returns:
        The scorer, for `mlflow.genai.evaluate(scorers=[...])`.

    Raises:
        MissingDependencyError: MLflow is not installed.
    """
    try:
        from mlflow.genai.scorers import scorer as make_scorer  # noqa: PLC0415 of an extra, and takes seconds
    except ModuleNotFoundError as error:
        raise MissingDependencyError(error.name or PACKAGE, "scoring in MLflow", INSTALL) from error
    rows, take = _Rows(metric, options), read or read_row
    key = metric if isinstance(metric, str) else str(metric.get("key", metric["metric"]))

    def score(*, inputs: Any = None, outputs: Any = None, expectations: Any = None, trace: Any = None) -> Any:
        return rows.score(take(inputs, outputs, expectations or {}, trace))

    # The first rows wait for the Prefect server and the judge, which may start.
    return make_scorer(score, name=mlflow_name(key), timeout=0)


def read_row(inputs: Any, outputs: Any, expectations: Mapping[str, Any], trace: Any) -> dict[str, Any]:
    """Return the sample of a row of MLflow: by the usual names, or the only text; passages also from retriever spans.

    >>> read_row({"question": "Where?"}, "In Rome.", {"expected_response": "Rome."}, None)
    {'user_input': 'Where?', 'response': 'In Rome.', 'reference': 'Rome.'}
    """
    parts = [part for part in (inputs, outputs, expectations) if isinstance(part, Mapping)]
    found: dict[str, Any] = {}
    for column, names in _NAMES.items():
        values = [part[name] for part in parts for name in names if part.get(name) is not None]
        if values:
            found[column] = values[0]
    for column, part in (("user_input", inputs), ("response", outputs)):
        texts = [part] if isinstance(part, str) else list(part.values()) if isinstance(part, Mapping) else []
        if column not in found and len(texts) == 1 and isinstance(texts[0], str):
            found[column] = texts[0]
    if "retrieved_contexts" not in found and trace is not None and (passages := _retrieved(trace)):
        found["retrieved_contexts"] = passages
    return found


def _retrieved(trace: Any) -> list[str]:
    """Return the passages in the retriever spans of a trace, in order."""
    spans = trace.search_spans(span_type="RETRIEVER")
    documents = [each for span in spans for each in (span.outputs if isinstance(span.outputs, list) else [])]
    return [str(each.get("page_content", "")) if isinstance(each, Mapping) else str(each) for each in documents]


class _Rows:
    """Rows that wait to be scored: those that MLflow scores at the same time are one run of rag-assay."""

    def __init__(self, metric: "str | MetricTable", options: Mapping[str, Any]) -> None:
        self._metric, self._options = metric, options
        self._lock = Lock()
        self._waiting: list[tuple[Mapping[str, Any], Future[Any]]] = []

    def score(self, sample: Mapping[str, Any]) -> Any:
        """Return the feedback for a row."""
        feedback: Future[Any] = Future()
        with self._lock:
            self._waiting.append((sample, feedback))
        with _one_at_a_time:
            if not feedback.done():
                time.sleep(_PAUSE)
                self._score_waiting()
        return feedback.result()

    def _score_waiting(self) -> None:
        with self._lock:
            batch, self._waiting = self._waiting, []
        try:
            found = self._evaluate([dict(sample) for sample, _ in batch])
        except Exception as error:  # noqa: BLE001 each row raises it
            for _, feedback in batch:
                feedback.set_exception(error)
            return
        for number, (_, feedback) in enumerate(batch):
            feedback.set_result(found[str(number)])

    def _evaluate(self, samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return the feedback for each row by its number."""
        rows = [{**sample, "row_id": str(number)} for number, sample in enumerate(samples)]
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "run")
            with suppress(FailedCellsError):  # rows without a score say why
                evaluate(rows, metrics=[self._metric], **{"out": str(out), "id_column": "row_id", **self._options})
            record = RunFolder(out).read_finished_record()
            sources, (metric,) = sources_of(record), record.metrics
            name = mlflow_name(metric.key)
            return {
                row.row_id: make_feedback(name, row.cells[0], sources[metric.key], {"rag_assay.run_id": record.run_id})
                for row in read_scored_rows(out)
            }
