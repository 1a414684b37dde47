"""Warn about metrics that could have judged whole conversations, and about follow-up questions judged as they are."""

from collections import Counter

from flows.planning.metric_plan import MetricPlan, judges_conversations
from metric_core.columns import EARLIER_TURNS
from metric_core.stages import Stage
from tasks.options.conversation_options import ConversationOptions
from tasks.rows.computed_tables import RunTables


def warn_about_turns(options: ConversationOptions, metrics: MetricPlan, tables: RunTables) -> list[str]:
    """Return a sentence about metrics that judge answers, and would judge conversations without the others of the run.

    Args:
        options: Option that says what a row is.
        metrics: Metrics of the run.
        tables: Tables of the run.
    """
    able = [request.key for request in metrics.requests if judges_conversations(request)]
    if options.conversations is not None or not able or len(able) == len(metrics.requests):
        return []
    shards = tables.shards(Stage.SAMPLES, [EARLIER_TURNS])
    if not any(shard[EARLIER_TURNS].null_count < shard.num_rows for shard in shards):
        return []
    sentence = (
        f"the rows are answers of conversations, because other metrics need them: {', '.join(able)} would judge whole "
        'conversations alone, or with conversations = "whole"; "turns" leaves this warning out'
    )
    return [sentence]


def follow_up_warnings(tables: RunTables) -> list[str]:
    """Return a sentence about the follow-up questions of a run that are judged as they are, if there are any.

    Args:
        tables: Tables of the run.
    """
    rows, reasons = 0, Counter[str]()
    if Stage.FOLLOW_UPS not in tables.stages:
        return []
    for shard in tables.shards(Stage.FOLLOW_UPS, ["question", "reason"]):
        rows += shard.num_rows
        unasked = (row["reason"] for row in shard.to_pylist() if row["question"] is None)
        reasons.update(reason or "no reason given" for reason in unasked)
    kept = reasons.total()
    if not kept:
        return []
    why = "; ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common())
    sentence = (
        f"{kept:,} of {rows:,} questions that follow others are judged as they are, because the judge gave no "
        f"self-contained one: {why}"
    )
    return [sentence]
