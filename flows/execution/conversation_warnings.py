"""Warn about metrics that could have judged whole conversations, and about follow-up questions judged as they are."""

from collections import Counter
from collections.abc import Iterable

from flows.planning.metric_plan import MetricPlan
from flows.planning.source_plan import judges_conversations
from metric_core.columns import EARLIER_TURNS
from metric_core.stages import Stage
from tasks.options.conversation_options import ConversationOptions
from tasks.tables.table_store import StageRef, read


def warn_about_turns(options: ConversationOptions, metrics: MetricPlan, refs: Iterable[StageRef]) -> list[str]:
    """Return a sentence about metrics that judge answers, and would judge conversations without the others of the run.

    Args:
        options: Option that says what a row is.
        metrics: Metrics of the run.
        refs: Tables of all stages and shards.
    """
    able = [request.key for request in metrics.requests if judges_conversations(request)]
    if options.conversations is not None or not able or len(able) == len(metrics.requests):
        return []
    tables = (read(ref, [EARLIER_TURNS]) for ref in refs if ref.stage is Stage.SAMPLES)
    if not any(table[EARLIER_TURNS].null_count < table.num_rows for table in tables):
        return []
    sentence = (
        f"the rows are answers of conversations, because other metrics need them: {', '.join(able)} would judge whole "
        'conversations alone, or with conversations = "whole"; "turns" leaves this warning out'
    )
    return [sentence]


def follow_up_warnings(refs: Iterable[StageRef]) -> list[str]:
    """Return a sentence about the follow-up questions of a run that are judged as they are, if there are any.

    Args:
        refs: Tables of all stages and shards.
    """
    rows, reasons = 0, Counter[str]()
    for ref in refs:
        if ref.stage is Stage.FOLLOW_UPS and ref.rows:
            found = read(ref, ["question", "reason"]).to_pylist()
            rows += len(found)
            reasons.update(row["reason"] or "no reason given" for row in found if row["question"] is None)
    kept = reasons.total()
    if not kept:
        return []
    why = "; ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common())
    sentence = (
        f"{kept:,} of {rows:,} questions that follow others are judged as they are, because the judge gave no "
        f"self-contained one: {why}"
    )
    return [sentence]
