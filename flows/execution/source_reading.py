"""Decide how the rows of a source are read, which may depend on the metrics."""

from typing import Any, Literal

from flows.config.run_config import RunConfig
from metric_core import columns as c
from metric_core.metric import MetricRequest
from tasks.options.narrow import narrow
from tasks.sources import SourceOptions

_OF_CONVERSATION = frozenset(
    {c.CONVERSATION, c.SESSION_ID, c.REFERENCE, c.REFERENCE_CONTEXTS, c.REFERENCE_CONTEXT_IDS, c.RUBRICS}
)
"""Columns that the row of a whole conversation can have."""


def source_options(config: RunConfig, **changes: Any) -> SourceOptions:
    """Return the options for reading the source of a run.

    Args:
        config: Configuration of the run.
        changes: Options that differ from the configuration.
    """
    return narrow(config, SourceOptions, conversations=rows_of_conversations(config), **changes)


def rows_of_conversations(config: RunConfig) -> Literal["turns", "whole"]:
    """Return what a row is in data that are conversations.

    Without the option, a conversation is one row if the configuration names metrics, and each of them can judge a
    conversation as one text.

    >>> [rows_of_conversations(RunConfig(metrics=names)) for names in (["rubrics"], ["rubrics", "faithfulness"])]
    ['whole', 'turns']
    """
    if config.conversations is not None:
        return config.conversations
    requests = config.requests() or ()
    return "whole" if requests and all(map(judges_conversations, requests)) else "turns"


def judges_conversations(request: MetricRequest) -> bool:
    """Return whether a metric can judge a conversation as one text: it reads one, and needs nothing of single turns."""
    needed = frozenset(request.columns)
    return c.CONVERSATION in needed.union(request.optional_columns) and needed <= _OF_CONVERSATION
