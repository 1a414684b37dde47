"""Plan how the rows of a source are read, which may depend on the metrics."""

from typing import Any, Literal

from metric_core import columns as c
from metric_core.metric import MetricRequest
from tasks.options.evaluation_options import EvaluationOptions
from tasks.options.grouping_options import GroupingOptions
from tasks.options.narrow import narrow
from tasks.options.retriever_options import RetrieverChoice
from tasks.options.slicing_options import SlicingOptions
from tasks.options.source_options import DataOptions, SourceOptions

_OF_CONVERSATION = frozenset(
    {c.CONVERSATION, c.SESSION_ID, c.REFERENCE, c.REFERENCE_CONTEXTS, c.REFERENCE_CONTEXT_IDS, c.RUBRICS}
)
"""Columns that the row of a whole conversation can have."""


class SourcePlan(RetrieverChoice, SlicingOptions, GroupingOptions, DataOptions):
    """The rows of a run, and how they are read.

    Args:
        rows: Kind of the rows of data that are conversations.
    """

    only_options = False

    rows: Literal["turns", "whole"] = "turns"

    def options(self, **changes: Any) -> SourceOptions:
        """Return the options for reading the source.

        Args:
            changes: Options with other values.
        """
        return narrow(self, SourceOptions, conversations=self.rows, **changes)


def plan_source(options: EvaluationOptions) -> SourcePlan:
    """Return the plan for reading the source of an evaluation.

    Without the option `conversations`, a conversation is one row if metrics are named, and each of them can judge a
    conversation as one text.

    Args:
        options: Options of the evaluation.

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


def judges_conversations(request: MetricRequest) -> bool:
    """Return whether a metric can judge a conversation as one text: it reads one, and needs nothing of single turns."""
    needed = frozenset(request.columns)
    return c.CONVERSATION in needed.union(request.optional_columns) and needed <= _OF_CONVERSATION
