"""Read the entry of a run in the history from its run folder."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.errors import RunFolderError
from metric_core.records import Direction
from metric_core.stages import Stage
from metric_core.statistics.summary import MetricSummary
from tasks.calibration.certificates import flips_of
from tasks.comparison.run_differences import TEST_COLUMNS
from tasks.findings.table import find_in, kept_entries
from tasks.history import recorded_run as keys
from tasks.history.recorded_run import RecordedMetric, RecordedRun, RunCost, RunDetails
from tasks.models.embedders.protocol import EmbedderIdentity
from tasks.models.judges.protocol import NO_JUDGE, JudgeIdentity
from tasks.record.judge_quality import Certificate
from tasks.record.outcome import RunOutcome
from tasks.record.run_record import AnsweringJudge, DeploymentRecord, RunRecord
from tasks.record.run_summary import RunSummary
from tasks.runs.outcome_file import read_outcome
from tasks.runs.run_folder import MANIFEST, STAGES, RunFolder
from tasks.runtime.stored_data import is_stored
from tasks.runtime.wording import NO_REVISION

_DIGITS = 12
_MOST_LABELS, _LONGEST_LABEL = 8, 60
_ROWS_AT_ONCE = 1000


def evaluation_name(name: str | None, deployment: str, source: str | None) -> str:
    """Return the name by which the history of an evaluation is kept.

    Args:
        deployment: Name of the deployment; empty for a run that was started manually.

    >>> evaluation_name(None, "evaluate-handbook", "answers.jsonl"), evaluation_name(None, "", "data/answers.jsonl")
    ('evaluate-handbook', 'answers')

    Data from Python have no name: no history is kept of them unless the configuration has one.

    >>> evaluation_name(None, "", "tables/sources/data-9f86d081884c7d65.parquet")
    ''
    """
    if is_stored(source or ""):
        return name or deployment
    stem = re.sub(r"\W+", "-", PurePosixPath(source or "").stem).strip("-").lower()
    return name or deployment or stem or "evaluation"


def read_run_entry(folder: Path) -> RecordedRun:
    """Return the entry of a run that finished, failed or stopped.

    Raises:
        RunFolderError: The folder is not a run folder, its run did not end, or a file in it is damaged.
    """
    run = RunFolder(folder.expanduser().absolute())
    record = run.read_record()
    if record.status not in keys.STARTED:
        raise RunFolderError(
            f"the run in {run.path} did not end (its status is {record.status!r}): it is in progress, or was killed"
        )
    summary = run.read_summary() if record.status == keys.COMPLETED else None
    outcome = read_outcome(run.path)
    try:
        return _build(run.path, record, summary, outcome)
    except ValueError as error:
        raise RunFolderError(f"{run.path / MANIFEST} cannot be read: {error}") from error


def _build(folder: Path, record: RunRecord, summary: RunSummary | None, outcome: RunOutcome | None) -> RecordedRun:
    deployment, start = record.deployment or DeploymentRecord(), record.start
    name = (outcome.name if outcome is not None else None) or record.name or record.config.name
    return RecordedRun(
        run_id=record.run_id,
        name=evaluation_name(name, deployment.name, record.source),
        created=_read_time(record.created),
        folder=str(folder),
        status=record.status,
        reason=record.reason or "",
        source=record.source,
        deployment=deployment.name,
        rows=record.rows,
        bad_rows=record.bad_row_count,
        versions={key: version for key, version in _versions(folder, record, deployment) if version},
        cost=_cost(record),
        failures=record.failures,
        metrics=() if summary is None else tuple(_metrics(record, summary)),
        outcome=outcome,
        details=_details(record, summary),
        trigger=start.trigger if start is not None else "" if outcome is None else outcome.trigger,
        due=None if start is None else _read_time(start.due),
    )


def _details(record: RunRecord, summary: RunSummary | None) -> RunDetails:
    of_summary = {} if summary is None else kept_entries(summary)
    return RunDetails(**of_summary | kept_entries(record))


def _read_time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _versions(folder: Path, record: RunRecord, deployment: DeploymentRecord) -> Iterator[tuple[str, Any]]:
    yield keys.SYSTEM, record.config.system_version
    yield keys.INDEX, " ".join(filter(None, (deployment.index, deployment.version)))
    if record.judge.backend != NO_JUDGE.backend:
        yield keys.JUDGE, describe_model(record.judge)
        yield keys.JUDGES, _judges(record.judges)
        served = dict.fromkeys(shorten_digest(each.served) for each in record.judges or [record.judge])
        yield keys.SERVED, " ".join(filter(None, served))
        yield keys.JUDGED, _answers_again(record)
        yield keys.CERTIFIED, _certified(record.certificate)
    for key, digests in ((keys.PROMPTS, record.prompts), (keys.ASKED, record.judge_fingerprints)):
        yield key, {kind: digest[:_DIGITS] for kind, digest in digests.items()}
    yield keys.EMBEDDER, "" if record.embedder is None else describe_model(record.embedder)
    if record.status == keys.COMPLETED:  # otherwise the tables are those of an earlier run in the folder
        yield keys.DATA, _digest_test(folder / STAGES / f"{Stage.SAMPLES}.parquet")
        digests_of_rows = "".join(record.stages[Stage.SAMPLES].digests) if Stage.SAMPLES in record.stages else ""
        yield keys.ANSWERS, digests_of_rows and hashlib.sha256(digests_of_rows.encode()).hexdigest()[:_DIGITS]
    yield keys.FORMULAS, (record.formulas or "")[:_DIGITS]
    yield keys.SOFTWARE, record.release


def _answers_again(record: RunRecord) -> str:
    """Return whether the judges answer as they did; empty if no finding knows."""
    found = (each.on_judge.version for each in find_in((record,)))
    return next((version for find in found if find is not None and (version := find(record))), "")


def _certified(certificate: Certificate | None) -> str:
    """Return the faults in the certificate of the judge; empty without a certificate."""
    return "" if certificate is None else ", ".join(flips_of(certificate).faults) or "no fault"


def _judges(judges: Sequence[AnsweringJudge]) -> dict[str, str]:
    """Return the judges of each group of questions as text."""
    groups: dict[str, list[str]] = {}
    for judge in judges:
        for group in judge.groups:
            groups.setdefault(group, []).append(describe_model(judge))
    return {group: " and ".join(names) for group, names in groups.items()}


def describe_model(model: JudgeIdentity | EmbedderIdentity) -> str:
    """Return the version of a model as runs are recorded with it: its name and its revision."""
    return " ".join(part for part in (model.model, model.revision) if part not in ("", NO_REVISION))


def shorten_digest(digest: str) -> str:
    """Return a digest as versions of recorded runs hold it."""
    return digest[:_DIGITS]


def _digest_test(samples: Path) -> str:
    """Return a digest of the columns that define the test, which does not depend on the order of the rows.

    Raises:
        RunFolderError: The table cannot be read.
    """
    total = 0
    try:
        with pq.ParquetFile(samples, page_checksum_verification=True) as file:
            columns = [name for name in ("row_id", *TEST_COLUMNS) if name in file.schema_arrow.names]
            for batch in file.iter_batches(_ROWS_AT_ONCE, columns=columns):
                for row in batch.to_pylist():
                    content = json.dumps(row, sort_keys=True, default=str).encode("utf-8", "replace")
                    total += int.from_bytes(hashlib.sha256(content).digest(), "big")
    except (pa.ArrowException, OSError) as error:
        raise RunFolderError(f"the table {samples} cannot be read ({error})") from error
    return f"{total % 2**256:064x}"[:_DIGITS]


def _cost(record: RunRecord) -> RunCost:
    usage = record.usage
    counts = ("questions", "stored", "requests", "prompt_tokens", "output_tokens")
    return RunCost(
        seconds=record.seconds,
        judge_seconds=round(usage.seconds, 3),
        **{name: getattr(usage, name) for name in counts},
    )


_Bounds: TypeAlias = Mapping[str, tuple[float, float] | None]


def _metrics(record: RunRecord, summary: RunSummary) -> Iterator[RecordedMetric]:
    bounds = {each.key: each.bounds for each in record.metrics if each.bounds and isfinite(each.bounds[1])}
    for metric in summary.metrics:
        yield from _all_rows(metric, bounds)
    for finding in find_in([summary]):
        for column, value, part in () if finding.recorded is None else finding.recorded(summary):
            yield _metric(part, bounds, (column, value))


def _all_rows(metric: MetricSummary, bounds: _Bounds) -> Iterator[RecordedMetric]:
    """Yield a metric over all rows; of one whose rows have different scales or labels, also each of them."""
    yield _metric(metric, bounds)
    for scale, distribution in metric.scales.items() if metric.distribution is None else ():
        name, whole = f"{metric.metric} on {scale}", replace(metric, undefined=0, failed=0)
        yield _metric(replace(whole, metric=name, scored=distribution.count, distribution=distribution), {})
    rows = sum(metric.categories.values())
    for label, count in sorted(metric.categories.items(), key=lambda item: -item[1])[:_MOST_LABELS]:
        name = f"{metric.metric} = {label[:_LONGEST_LABEL]}"
        whole = replace(metric, metric=name, direction=Direction.NEITHER, scored=rows, undefined=0, failed=0)
        share = replace(_metric(replace(whole, distribution=None), {name: (0.0, 1.0)}), mean=count / rows)
        yield share


def _metric(metric: MetricSummary, bounds: _Bounds, place: tuple[str, str] = ("", "")) -> RecordedMetric:
    distribution = metric.distribution
    interval = None if distribution is None else distribution.interval
    return RecordedMetric(
        metric=metric.metric,
        direction=metric.direction,
        mean=None if distribution is None else distribution.mean,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        deviation=None if distribution is None else distribution.deviation,
        scored=metric.scored,
        undefined=metric.undefined,
        failed=metric.failed,
        bounds=bounds.get(metric.metric),
        slice_column=place[0],
        slice=place[1],
    )
