"""Judge rows of a run again: with the answers that are kept, and with new ones."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from flows.execution.calibration_lookup import mapped_settings
from flows.execution.judged_rows import LABELLED, SCORED, judge_rows, scores_of
from flows.execution.run import Run
from flows.planning.capabilities import scoring_kinds
from flows.planning.run_plan import RunPlan
from metric_core.stages import Stage
from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.judge_variance import JudgeVariance, estimate_judge_variance
from tasks.findings.repeats.repeat_record import RepeatUsage
from tasks.findings.repeats.repeated_questions import RepeatedQuestions
from tasks.models.judges.protocol import IN_PROCESS
from tasks.opening.run_models import RunModels
from tasks.rows.computed_tables import RunTables
from tasks.rows.merge import select_rows
from tasks.runtime.usage import Usage
from tasks.stages.definition import Tables

Scores: TypeAlias = dict[str, dict[str, tuple[float, float]]]
"""Metric -> row -> score with the kept answers and with the new ones."""


def can_ask_again(plan: RunPlan) -> bool:
    """Return whether a run has judges that may answer differently when they are asked again."""
    served = any(judge.backend not in IN_PROCESS for judge in plan.models.judges)
    return served and not LABELLED.isdisjoint(plan.metrics.stages)


class RepeatedRows:
    """Rows of a run that are judged.

    Args:
        run: The evaluation of the rows.
        chosen: Ids of the rows; None for all.
    """

    def __init__(self, run: Run, tables: RunTables, chosen: Collection[str] | None = None) -> None:
        self.run = run
        self._shards = [
            {
                stage: table if chosen is None else select_rows(table, chosen)
                for stage, table in zip(tables.stages, shard, strict=True)
            }
            for shard in zip(*(tables.shards(stage) for stage in tables.stages), strict=True)
        ]
        self._digests = tables.digests(Stage.SAMPLES)
        self._settings = mapped_settings(run.plan, run.models)

    @property
    def ids(self) -> list[str]:
        """The ids of all rows."""
        return [row for shard in self._shards for row in shard[Stage.SAMPLES]["row_id"].to_pylist()]

    @property
    def reference(self) -> str:
        """The digest of the rows and the judges; only runs with the same digest are compared."""
        content = [self._digests, self.run.record.judge_fingerprints]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def note(self, questions: RepeatedQuestions, rows: Collection[str]) -> None:
        """Record the questions about some rows."""
        models = questions.models(note=True)
        for shard in self._shards:
            for row in [row for row in shard[Stage.SAMPLES]["row_id"].to_pylist() if row in rows]:
                questions.row = row
                self._judge({stage: select_rows(table, [row]) for stage, table in shard.items()}, models, LABELLED)

    def scores(self, questions: RepeatedQuestions, rows: Collection[str]) -> Scores:
        """Return metric -> row -> the score with the kept answers and that with the new ones."""
        found: Scores = {}
        models = questions.models(note=False)
        for shard in self._shards:
            tables = {stage: select_rows(table, rows) for stage, table in shard.items()}
            kept, again = scores_of(tables), scores_of(self._judge(tables, models, SCORED))
            for row, metric in kept.keys() & again.keys():
                found.setdefault(metric, {})[row] = (round(kept[row, metric], 4), round(again[row, metric], 4))
        return found

    def _judge(self, tables: Tables, models: RunModels, stages: Collection[Stage]) -> Tables:
        """Return the tables with those of some stages computed again."""
        return judge_rows(self.run.plan.metrics, self._settings, tables, models, stages)[0]


def repeat_usage(usage: Usage) -> RepeatUsage:
    """Return the cost of asking again for the record."""
    return RepeatUsage(**{name: getattr(usage, name) for name in RepeatUsage.model_fields})


def find_variances(
    runs: Sequence[Mapping[str, Mapping[str, Sequence[float]]]], questions: RepeatedQuestions, run: Run
) -> dict[str, JudgeVariance]:
    """Return the variance of the judge's scores, for the metrics whose scores are answers that were asked for again.

    Args:
        runs: Metric -> row -> kept and new score, for each run that asked again.
    """
    asked = {question.kind for judge in questions.judges.values() for question in judge.questions.values()}
    found = {}
    for request in run.plan.metrics.requests:
        scores = [each[request.key] for each in runs if request.key in each]
        if asked.issuperset(scoring_kinds(request)):
            variance = estimate_judge_variance(scores, Bounds.of_metric(request.bounds))
            if variance is not None:
                found[request.key] = variance
    return found
