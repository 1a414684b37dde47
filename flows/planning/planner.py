"""Plan a run, and check it, once: from here on its configuration is not needed."""

import re
from pathlib import PurePosixPath
from typing import Any

from flows.config.result_options import MonitoringOptions, ResultOptions
from flows.config.run_config import RunConfig
from flows.planning.checks import run_checks
from flows.planning.metric_plan import MetricPlan, judges_conversations, make_plan
from flows.planning.run_plan import FolderPlan, RunPlan, SourcePlan, StoragePlan, locate
from metric_core.errors import ConfigError
from tasks.calibration.cascade_thresholds import find_thresholds
from tasks.options.evaluation_options import EvaluationOptions
from tasks.options.metric_options import MetricOptions
from tasks.options.narrow import narrow
from tasks.options.option import find_secret_references
from tasks.options.run_model_options import RunModelOptions
from tasks.options.source_options import TRACES
from tasks.runtime.stored_data import is_stored


def plan_run(config: RunConfig) -> RunPlan:
    """Plan a run, and check everything that can be checked before it starts.

    Raises:
        AssayError: A check failed; the message says what to do.
    """
    plan = draft_plan(config)
    for each in run_checks(plan):
        each.check()
    return plan


def draft_plan(config: RunConfig) -> RunPlan:
    """Plan a run without checking it, for a dry run.

    Raises:
        ConfigError: No source is named, a metric or parameter is unknown, or the run lacks a stage to refresh.
        SourceError: The source cannot be read, or no metric can work on it.
    """
    if config.source is None:
        raise ConfigError(
            "there is nothing to evaluate: name a source, as an argument or as `source` in the configuration; "
            "`assay run --example` brings its own"
        )
    if config.traces is not None and not config.source.startswith(TRACES):
        raise ConfigError(
            f"traces (--since, --where, --deduplicate, --sample) selects traces, and the source {config.source} has "
            f"none; if it holds traces, write {TRACES} before its path"
        )
    source = plan_source(config)
    metrics = make_plan(config, source.columns())
    if idle := [stage for stage in config.refresh if stage not in metrics.stages]:
        raise ConfigError(
            f"refresh names {', '.join(idle)}, which this run does not compute; it has {', '.join(metrics.stages)}"
        )
    return compose_plan(config, source, metrics)


def plan_source(options: EvaluationOptions) -> SourcePlan:
    """Return the plan for reading the source of an evaluation.

    Without the option `conversations`, a conversation is one row if metrics are named, and each of them can judge a
    conversation as one text.

    Raises:
        ConfigError: A metric or parameter is unknown.

    >>> named = (["rubrics"], ["rubrics", "faithfulness"])
    >>> [plan_source(EvaluationOptions(metrics=names)).rows for names in named]
    ['whole', 'turns']
    """
    rows = options.conversations
    if rows is None:
        requests = options.requests() or ()
        rows = "whole" if requests and all(map(judges_conversations, requests)) else "turns"
    return narrow(options, SourcePlan, rows=rows)


def plan_without_data(config: RunConfig) -> RunPlan:
    """Plan a run whose source is not read, so that the plan has no metrics, to check its other options."""
    metrics = MetricPlan((), frozenset(), {}, options=narrow(config, MetricOptions))
    return compose_plan(config, narrow(config, SourcePlan), metrics)


def compose_plan(config: RunConfig, source: SourcePlan, metrics: MetricPlan, ending: str = "") -> RunPlan:
    """Divide the configuration of a run into the parts of its plan; a cascade gets the thresholds known by now.

    Args:
        ending: Suffix of the name of a new run folder.
    """
    if (cascade := config.cascade) is not None and cascade.thresholds is None:
        thresholds = find_thresholds(cascade.most_disagreement)
        config = config.model_copy(update={"cascade": cascade.model_copy(update={"thresholds": thresholds})})
    # A rerun reads the record: with another judge it counts verdicts as before, and it finds sources from any folder.
    own: dict[str, Any] = {"verdict": config.verdict_kind, "source": locate(config.source)}
    of_findings = config.of_findings
    for each in of_findings:
        own |= each.locate_sources(locate)
    return RunPlan(
        source=source,
        metrics=metrics,
        folder=FolderPlan(config.out, _stem(config.source), ending),
        stages=metrics.stage_settings(config, config.refresh),
        models=narrow(config, RunModelOptions),
        storage=narrow(
            config,
            StoragePlan,
            rows_a_shard=config.rows_a_shard(),
            rows_a_window=config.rows_a_window(),
            stages_at_once=config.stages_at_once(),
        ),
        outputs=narrow(config, ResultOptions),
        monitoring=narrow(config, MonitoringOptions),
        of_findings=of_findings,
        secrets=find_secret_references(config, without=("deploy",)),
        record=config.model_copy(update=own).model_dump(mode="json", exclude={"deploy"}),
    )


def _stem(source: str | None) -> str:
    return (
        re.sub(r"\W+", "-", PurePosixPath("data" if is_stored(source or "") else source or "").stem).strip("-").lower()
        or "run"
    )
