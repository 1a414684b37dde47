"""Evaluate the anchor of a run into its folder: rows that never change, judged by the judge of the day.

Answers about the anchor are cached; a few are asked for again, to see that the judge still answers as it did. A judge
that cannot answer about the anchor does not take the results of the run away: the anchor's entry then says why it has
none.
"""

import hashlib
import time
from dataclasses import replace

from flows.execution.engine import compute_rows
from flows.execution.read_source import read_source
from flows.execution.run import Run
from flows.execution.run_record import build_record
from flows.execution.run_writing import write_run_folder
from flows.execution.uniform_scores import is_suspiciously_uniform
from flows.findings.anchor.anchor_plan import AnchorPlan, anchor_of, plan_anchor
from flows.findings.anchor.anchor_repeats import EarlierRepeats, ask_again, keep_findings
from metric_core.calibration.calibrate import measure_human_agreement
from metric_core.errors import AssayError
from metric_core.stages import Stage
from metric_core.statistics.resampling import SEED
from metric_core.statistics.summary import MetricSummary
from tasks.calibration.label_pairing import pair_labels
from tasks.findings.anchor.anchor_record import ANCHOR, AnchorAgreement, AnchorMean, AnchorOf, AnchorRecord, AnchorUsage
from tasks.rows.computed_tables import RunTables
from tasks.runs.finished_run import FinishedRun
from tasks.runs.run_folder import RunFolder
from tasks.runtime.usage import QuestionUsage, StageUsage


def evaluate_anchor(run: Run, tables: RunTables) -> AnchorRecord:
    """Evaluate the anchor of a run, write its run folder below that of the run, and return the record of it.

    Args:
        tables: The tables of the run, whose stages are computed.

    Returns:
        The record; with a reason, the anchor has no scores.
    """
    try:
        return _evaluate(run, tables, plan_anchor(run.plan))
    except AssayError as error:
        reason = str(error)
        again = keep_findings(EarlierRepeats.of_run(run), reason)
        return AnchorRecord(source=anchor_of(run.plan).source, reason=reason, asked_again=again)


def anchor_warnings(anchor: AnchorRecord) -> tuple[str, ...]:
    """Return the warnings of a run about its anchor."""
    if anchor.missing_scores:
        return anchor.missing_scores
    found = [
        f"the judge is not compared with the labels of {key} in the anchor: {agreement.reason}"
        for key, agreement in anchor.agreement.items()
        if agreement.reason is not None
    ]
    if anchor.asked_again is not None and (reason := anchor.asked_again.reason) is not None:
        found.append(f"no anchor row was asked about again, so another judge of the same name will not show: {reason}")
    return tuple(found)


def _evaluate(run: Run, of_run: RunTables, anchor: AnchorPlan) -> AnchorRecord:
    started = time.monotonic()
    folder = RunFolder(run.folder.path / ANCHOR)
    entries = build_record(anchor.run, run.models).entries | {"run_id": f"{run.record.run_id}-{ANCHOR}"}
    origin = AnchorOf(run_id=run.record.run_id, folder=str(run.folder.path))
    own = replace(run, plan=anchor.run, folder=folder, record=run.record.extend(**entries).with_findings(origin))
    with folder.lock():
        read = read_source(anchor.run)
        tables = compute_rows(own, read.refs)
        write_run_folder(own, read, tables, own.record.extend(seconds=round(time.monotonic() - started, 3)))
    finished = FinishedRun(folder.path)
    usage = _usage(finished.record.usage)
    earlier = EarlierRepeats.of_run(run)
    is_uniform = is_suspiciously_uniform(of_run, earlier.last_metrics())
    is_new = usage.asked > usage.stored
    again = ask_again(own, anchor, tables, earlier, is_new=is_new, is_uniform=is_uniform)
    return AnchorRecord(
        source=anchor.settings.source,
        folder=ANCHOR,
        rows=finished.record.rows,
        digest=_digest(finished),
        seconds=round(time.monotonic() - started, 3),
        usage=usage,
        metrics={summary.metric: _mean(summary) for summary in finished.summary.metrics},
        left_out={metric: tuple(columns) for metric, columns in anchor.run.metrics.left_out.items()},
        agreement=_agreements(finished, anchor),
        asked_again=again,
    )


def _digest(anchor: FinishedRun) -> str:
    """Return the digest of the rows; anchors with the same digest are the same."""
    digests = anchor.record.stages[Stage.SAMPLES].digests
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def _usage(usage: StageUsage) -> AnchorUsage:
    counts = {name: getattr(usage, name) for name in QuestionUsage.model_fields}
    return AnchorUsage(asked=usage.questions - usage.stored, **counts)


def _mean(summary: MetricSummary) -> AnchorMean:
    distribution = summary.distribution
    interval = None if distribution is None else distribution.interval
    return AnchorMean(
        mean=None if distribution is None else distribution.mean,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        scored=summary.scored,
        undefined=summary.undefined,
        failed=summary.failed,
    )


def _agreements(finished: FinishedRun, anchor: AnchorPlan) -> dict[str, AnchorAgreement]:
    """Return the agreement of the judge with the labels of the anchor, by metric."""
    found: dict[str, AnchorAgreement] = {}
    for column, request in anchor.labelled.items():
        try:
            rows = pair_labels(finished, request, anchor.read_labels(column), anchor.rules(column))
        except AssayError as error:
            found[request.key] = AnchorAgreement(label=column, reason=str(error))
            continue
        figures = measure_human_agreement(rows.judged, SEED).figures
        found[request.key] = AnchorAgreement(label=column, compared=rows.counts.compared, figures=dict(figures))
    return found
