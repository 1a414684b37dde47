"""Read the dates of references from a column of the source."""

import json
from collections.abc import Iterable, Sequence
from datetime import date, datetime

import pyarrow as pa

from metric_core import columns as c
from metric_core.declarations.metric import MetricRequest
from tasks.findings.reference_age.reference_age_options import DATES
from tasks.record.run_record import RunRecord
from tasks.runs.row_grouping import ROW_ID

COLUMNS = (ROW_ID, "extras")
"""Columns of the samples that are read."""
_OF_REFERENCES = frozenset(
    {
        c.REFERENCE,
        c.REFERENCE_CONTEXTS,
        c.REFERENCE_CONTEXT_IDS,
        c.RELEVANCE_JUDGMENTS,
        c.KEY_POINTS,
        c.EVIDENCE_SPANS,
        c.RUBRICS,
    }
)
_LEAST_DATED = 0.9
"""Share of the rows with a date from which on the dates are used."""


def date_column(record: RunRecord) -> str:
    """Return the column of a run with the dates of its references."""
    return str(record.config.options.get(DATES) or DATES)


def read_dates(shards: Iterable[pa.Table], column: str) -> dict[str, float]:
    """Return row -> date of its reference, as a number; none if fewer than nine of ten rows have one."""
    found, rows = dict[str, float](), 0
    for shard in shards:
        for row, extras in zip(*(shard[name].to_pylist() for name in COLUMNS), strict=True):
            rows += 1
            value = json.loads(extras).get(column) if extras else None
            if (day := parse_day(value)) is not None:
                found[row] = float(day)
    return found if len(found) >= _LEAST_DATED * rows else {}


def parse_day(value: object) -> int | None:
    """Return the number of a day given as an ISO 8601 date or time; None for anything else.

    >>> parse_day("2024-03-02") - parse_day("2024-03-01T23:00:00Z"), parse_day("spring"), parse_day(20240301)
    (1, None, None)
    """
    try:
        return datetime.fromisoformat(value.strip()).toordinal() if isinstance(value, str) else None
    except ValueError:
        return None


def format_day(day: float) -> str:
    """Return a day in words.

    >>> format_day(parse_day("2024-03-01"))
    '2024-03-01'
    """
    return date.fromordinal(int(day)).isoformat()


def about_references(requests: Sequence[MetricRequest]) -> list[MetricRequest]:
    """Return the metrics that read references."""
    return [each for each in requests if not _OF_REFERENCES.isdisjoint(each.columns)]
