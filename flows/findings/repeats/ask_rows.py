"""Ask about rows of a run again, past the cache, to measure how much its judge varies."""

from pathlib import Path

from flows.execution.run import Run
from flows.findings.repeats.repeated_rows import RepeatedRows, can_ask_again, find_variances, repeat_usage
from flows.planning.capabilities import scoring_kinds
from flows.results.gated_comparison import find_unsettled_rows
from metric_core.errors import AssayError
from metric_core.stages import Stage
from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.judge_variance import estimate_judge_variance
from tasks.findings.repeats.judge_drift import shuffle_rows
from tasks.findings.repeats.repeat_options import RepeatOptions
from tasks.findings.repeats.repeat_record import AskedAgain, RepeatUsage
from tasks.findings.repeats.repeated_questions import RepeatedQuestions
from tasks.prefect_support.run_log import run_logger
from tasks.rows.computed_tables import RunTables


def ask_rows_again(run: Run, tables: RunTables) -> AskedAgain | None:
    """Ask about rows of a run again, as many as its options say, and return the record of it.

    A judge that cannot be asked does not affect the run: the entry then has the reason.

    Returns:
        The record; None if nothing is to be asked, or only judges whose weights determine their answers.
    """
    count = run.plan.options(RepeatOptions).ask_again
    if not count or not can_ask_again(run.plan):
        return None
    ids = [row for shard in tables.shards(Stage.SAMPLES, ["row_id"]) for row in shard["row_id"].to_pylist()]
    chosen = shuffle_rows(ids)[:count]
    try:
        return _ask_rows(RepeatedRows(run, tables, chosen), RepeatedQuestions(run.models))
    except AssayError as error:
        return AskedAgain(reason=str(error))


def ask_unsettled_rows(run: Run, tables: RunTables, before: AskedAgain | None, *, is_noisy: bool) -> AskedAgain | None:
    """Ask again about the rows on which the judge's noise may turn the gate, once the run folder is written.

    The gate then takes the mean of both judgments, whose noise is smaller.

    Args:
        before: Rows that were asked about again so far; None without any.
        is_noisy: True if it is known how much the judge varies.

    Returns:
        The record with these rows; None if there are none, or the judge cannot be asked.
    """
    options, before = run.plan.monitoring.deploy, before or AskedAgain()
    if options.gate is None or not is_noisy or not can_ask_again(run.plan):
        return None
    known = before.scores
    baseline = run.plan.outputs.baseline
    try:
        folder = None if baseline is None else Path(baseline)
        unsettled = find_unsettled_rows(options.gate, run.folder.path, folder, options.match)
        chosen = {row for metric, rows in unsettled.items() for row in rows - known.get(metric, {}).keys()}
        kinds = {kind for each in run.plan.metrics.requests if each.key in unsettled for kind in scoring_kinds(each)}
        found = _ask_rows(RepeatedRows(run, tables, chosen), RepeatedQuestions(run.models, kinds)) if chosen else None
    except AssayError as error:
        run_logger().warning("rows that decide the gate could not be asked about again: %s", error)
        return None
    if found is None:
        return None
    scores = {metric: {**found.scores.get(metric, {}), **known.get(metric, {})} for metric in unsettled}
    bounds = {each.key: Bounds.of_metric(each.bounds) for each in run.plan.metrics.requests}
    estimated = ((metric, estimate_judge_variance([scores[metric]], bounds[metric])) for metric in found.variance)
    variance = {metric: each for metric, each in estimated if metric in unsettled and each is not None}
    usages = [dict(each.usage) for each in (before, found) if each.usage is not None]
    return AskedAgain(
        rows=len(set().union(*({**known, **scores}.values()))),
        questions=before.questions + found.questions,
        usage=RepeatUsage(**{name: sum(each[name] for each in usages) for name in RepeatUsage.model_fields}),
        scores={**known, **scores},
        variance={**before.variance, **variance},
    )


def _ask_rows(rows: RepeatedRows, questions: RepeatedQuestions) -> AskedAgain | None:
    """Ask about rows again, and return the record of it; None if their judges are not asked.

    Raises:
        AssayError: A judge cannot be asked.
    """
    chosen = rows.ids
    rows.note(questions, chosen)
    if not questions.judges:
        return None
    asked, usage = questions.ask()
    scores = rows.scores(questions, chosen)
    return AskedAgain(
        rows=len(chosen),
        questions=asked,
        usage=repeat_usage(usage),
        scores=scores,
        variance=find_variances([scores], questions, rows.run),
    )
