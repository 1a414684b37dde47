"""Describe for a page what a row takes from the conversation that it belongs to."""

from typing import Any

from metric_core import columns as c
from metric_core.stages import Stage
from tasks.reports.run.row_tables import RowTables
from tasks.reports.truncation import Row, truncate_text

_NAMES = {
    c.EARLIER_CONTEXTS: "earlier passage",
    c.TOOL_RESULTS: "tool result",
    c.EARLIER_ANSWERS: "earlier answer",
}
"""Columns with texts that are premises, and the names of their texts, which are numbered."""


def conversation_view(tables: RowTables) -> dict[str, Any]:
    """Return what a row has of its conversation; nothing for a row that belongs to none."""
    sample = tables.sample
    view: dict[str, Any] = {}
    if sample.get(c.CONVERSATION):
        view["conversation"] = truncate_text(sample[c.CONVERSATION])
    if sample.get(c.EARLIER_TURNS):
        view["before"] = truncate_text(sample[c.EARLIER_TURNS])
    for row in tables.rows(Stage.FOLLOW_UPS):
        view["asked"] = {"question": truncate_text(row["question"]), "reason": row["reason"]}
    named = [*named_sources(sample), *_named(sample, c.EARLIER_ANSWERS)]
    if named:
        view["sources"] = [{"name": name, "text": truncate_text(text)} for name, text in named]
    return view


def named_sources(sample: Row) -> list[tuple[str, str]]:
    """Return the sources that a row has beside its own passages, each with its name."""
    return [*_named(sample, c.EARLIER_CONTEXTS), *_named(sample, c.TOOL_RESULTS)]


def _named(sample: Row, column: str) -> list[tuple[str, str]]:
    return [(f"{_NAMES[column]} {number}", text) for number, text in enumerate(sample.get(column) or (), start=1)]
