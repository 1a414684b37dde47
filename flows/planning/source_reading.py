"""Decide how the rows of a source are read, which may depend on the metrics."""

from typing import Any, Literal

from metric_core import columns as c
from metric_core.metric import MetricRequest
from tasks.options.evaluation_options import EvaluationOptions
from tasks.options.narrow import narrow
from tasks.sources import SourceOptions

_OF_CONVERSATION = frozenset(
    {c.CONVERSATION, c.SESSION_ID, c.REFERENCE, c.REFERENCE_CONTEXTS, c.REFERENCE_CONTEXT_IDS, c.RUBRICS}
)
"""Columns that the row of a whole conversation can have."""


def source_options(options: EvaluationOptions, **changes: Any) -> SourceOptions:
    """Return the options for reading the source of an evaluation.

    Args:
        options: Options of the evaluation.
        changes: Options with other values.
    """
    return narrow(options, SourceOptions, conversations=rows_of_conversations(options), **changes)


def rows_of_conversations(options: EvaluationOptions) -> Literal["turns", "whole"]:
    """Return what a row is in data that are conversations.

    Without the option, a conversation is one row if metrics are named, and each of them can judge a conversation as one
    text.

    >>> named = (["rubrics"], ["rubrics", "faithfulness"])
    >>> [rows_of_conversations(EvaluationOptions(metrics=names)) for names in named]
    ['whole', 'turns']
    """
    if options.conversations is not None:
        return options.conversations
    requests = options.requests() or ()
    return "whole" if requests and all(map(judges_conversations, requests)) else "turns"


def judges_conversations(request: MetricRequest) -> bool:
    """Return whether a metric can judge a conversation as one text: it reads one, and needs nothing of single turns."""
    needed = frozenset(request.columns)
    return c.CONVERSATION in needed.union(request.optional_columns) and needed <= _OF_CONVERSATION
