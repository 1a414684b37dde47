"""The columns of a sample, their types and the other names they are known by."""

from enum import StrEnum


class ColumnType(StrEnum):
    """What a column holds."""

    TEXT = "text"
    TEXTS = "list of texts"
    IDS = "list of ids"
    RUBRICS = "mapping of score<number>_description to text"


USER_INPUT = "user_input"
RESPONSE = "response"
RETRIEVED_CONTEXTS = "retrieved_contexts"
REFERENCE = "reference"
REFERENCE_CONTEXTS = "reference_contexts"
RETRIEVED_CONTEXT_IDS = "retrieved_context_ids"
REFERENCE_CONTEXT_IDS = "reference_context_ids"
RUBRICS = "rubrics"

COLUMNS: dict[str, ColumnType] = {
    USER_INPUT: ColumnType.TEXT,
    RESPONSE: ColumnType.TEXT,
    RETRIEVED_CONTEXTS: ColumnType.TEXTS,
    REFERENCE: ColumnType.TEXT,
    REFERENCE_CONTEXTS: ColumnType.TEXTS,
    RETRIEVED_CONTEXT_IDS: ColumnType.IDS,
    REFERENCE_CONTEXT_IDS: ColumnType.IDS,
    RUBRICS: ColumnType.RUBRICS,
}
"""Every column that a metric can ask for, in the order in which tables show them."""

COLUMN_ALIASES: dict[str, str] = {
    "question": USER_INPUT,
    "query": USER_INPUT,
    "user_query": USER_INPUT,
    "answer": RESPONSE,
    "contexts": RETRIEVED_CONTEXTS,
    "ground_truth": REFERENCE,
    "ground_truths": REFERENCE,
}
"""Names from older data sets -> the column they mean. A column under its own name wins over an alias."""

ID_COLUMNS = ("row_id", "id")
"""Columns taken as the row's id, first found first, unless the configuration names one."""
