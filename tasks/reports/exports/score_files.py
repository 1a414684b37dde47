"""Shape the scores of a run as the score objects of observability products, for import through their clients."""

import hashlib
from collections.abc import Iterable

import pyarrow as pa

from metric_core.errors import ConfigError
from tasks.reports.exports.scored_rows import Cell, ScoredRow

LANGFUSE = pa.schema(
    [
        ("id", pa.string()),
        ("traceId", pa.string()),
        ("observationId", pa.string()),
        ("sessionId", pa.string()),
        ("name", pa.string()),
        ("value", pa.float64()),
        ("stringValue", pa.string()),
        ("dataType", pa.string()),
        ("comment", pa.string()),
    ]
)
"""The fields of a score of Langfuse."""

LANGSMITH = pa.schema(
    [
        ("id", pa.string()),
        ("run_id", pa.string()),
        ("trace_id", pa.string()),
        ("key", pa.string()),
        ("score", pa.float64()),
        ("value", pa.string()),
        ("comment", pa.string()),
    ]
)
"""The fields of a feedback of LangSmith."""


def langfuse_scores(rows: Iterable[ScoredRow], run: str) -> pa.Table:
    """Return a score object of Langfuse per scored cell of a row that came from a trace.

    The score of a row whose texts the trace itself has, rather than an observation in it, is one of the trace.

    Args:
        run: Name of the run; the same scores of the same run have the same ids, so that importing again replaces them.

    Raises:
        ConfigError: No row came from a trace.
    """
    return pa.Table.from_pylist(
        [
            {
                "id": _score_id(run, row, cell),
                "traceId": row.trace_id,
                "observationId": None if row.span_id == row.trace_id else row.span_id,
                "sessionId": row.session_id,
                "name": cell.metric,
                "value": cell.value,
                "stringValue": cell.label if cell.value is None else None,
                "dataType": "NUMERIC" if cell.value is not None else "CATEGORICAL",
                "comment": cell.explanation,
            }
            for row, cell in _traced_cells(rows)
        ],
        schema=LANGFUSE,
    )


def langsmith_feedback(rows: Iterable[ScoredRow], run: str) -> pa.Table:
    """Return a feedback object of LangSmith per scored cell of a row that came from a trace.

    Args:
        run: Name of the run; the same scores of the same run have the same ids.

    Raises:
        ConfigError: No row came from a trace.
    """
    return pa.Table.from_pylist(
        [
            {
                "id": _as_uuid(_score_id(run, row, cell)),
                "run_id": row.span_id or row.trace_id,
                "trace_id": row.trace_id,
                "key": cell.metric,
                "score": cell.value,
                "value": cell.label,
                "comment": cell.explanation,
            }
            for row, cell in _traced_cells(rows)
        ],
        schema=LANGSMITH,
    )


def _traced_cells(rows: Iterable[ScoredRow]) -> list[tuple[ScoredRow, Cell]]:
    found = [(row, cell) for row in rows if row.trace_id is not None for cell in row.scored]
    if not found:
        raise ConfigError(
            "no scored row has a trace to attach its scores to: evaluate `traces:PATH`, or data with the columns "
            "trace_id and span_id"
        )
    return found


def _score_id(run: str, row: ScoredRow, cell: Cell) -> str:
    content = f"{run}\0{row.row_id}\0{cell.metric}"
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _as_uuid(digits: str) -> str:
    """Return 32 hexadecimal digits in the form of a UUID.

    >>> _as_uuid("0123456789abcdef0123456789abcdef")
    '01234567-89ab-cdef-0123-456789abcdef'
    """
    return "-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]])
