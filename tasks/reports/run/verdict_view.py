"""Describe verdicts for a page, with votes, explanations and the judge's replies."""

from collections.abc import Iterable, Mapping
from typing import Any

from metric_core.records import AnswerStatus
from tasks.models.judges.highlights import read_spans
from tasks.reports.truncation import Row, truncate_text

Explanations = Mapping[tuple[str, str, str], Row]
"""Explanations by kind, claim and premise of the verdict that they explain."""


def explanations_by_verdict(rows: Iterable[Row]) -> Explanations:
    """Return the explanations of a sample, by verdict."""
    return {_key(row): row for row in rows}


def verdict_view(row: Row, explanations: Explanations) -> dict[str, Any]:
    """Return a verdict for the page; unknown fields are left out.

    Args:
        row: Row of the verdicts table.
        explanations: Explanations of the sample, by verdict.
    """
    view = {name: row[name] for name in ("verdict", "probability", "reason") if row[name] is not None}
    why = explanations.get(_key(row))
    if why is not None:
        answered = why["status"] == AnswerStatus.ANSWERED and why["text"]
        view["why"] = truncate_text(why["text"] if answered else f"no explanation: {why['reason'] or why['status']}")
        if why["reply"]:
            view["why_reply"] = truncate_text(why["reply"])
    if row.get("panel"):
        view["panel"] = panel_view(row["panel"])
    marked = read_spans(row["reply"])
    if marked:
        view["unsupported"] = [truncate_text(span["text"]) for span in marked]
    elif row["reply"] and marked is None:
        view["reply"] = truncate_text(row["reply"])
    return view


def panel_view(votes: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the votes of a panel."""
    return [{name: vote[name] for name in ("judge", "label", "probability")} for vote in votes]


def _key(row: Row) -> tuple[str, str, str]:
    return row["kind"], row["claim_id"] or "", row["premise"] or ""
