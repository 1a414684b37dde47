"""Say how many rows the means of a run have in common, if they are means of different rows."""

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import pyarrow.compute as pc

from metric_core.stages import Stage
from tasks.findings.finding import Finding, RunRecords, WrittenRows
from tasks.record.findings import FindingPart

_LEAST_SHARED = 0.9
"""Share of the rows of the mean over most rows from which on all means count as over the same rows."""


class SharedRows(FindingPart):
    """Rows that have a score of every metric, in a run whose metrics have scores of different rows.

    Args:
        rows: Number of these rows.
        metrics: Metric -> number of rows with a score.
    """

    entry: ClassVar[str] = "shared_rows"

    rows: int
    metrics: dict[str, int]


def count(rows: WrittenRows) -> Iterator[SharedRows]:
    """Yield the number of rows that have all scores, if the means are over different rows."""
    scored: Counter[str] = Counter()
    by_number: Counter[int] = Counter()
    for shard in rows.folder.read_shards(Stage.AGGREGATION, ["row_id", "metric", "value"]):
        cells = shard.filter(pc.is_valid(shard["value"]))
        scored.update({each["values"]: each["counts"] for each in pc.value_counts(cells["metric"]).to_pylist()})
        numbers = cells.group_by("row_id").aggregate([("metric", "count")])["metric_count"]
        by_number.update({each["values"]: each["counts"] for each in pc.value_counts(numbers).to_pylist()})
    shared = by_number[len(scored)]
    if scored and shared < _LEAST_SHARED * max(scored.values()):
        ordered = {request.key: scored[request.key] for request in rows.requests if request.key in scored}
        yield SharedRows(rows=shared, metrics=ordered)


def shared_lines(run: RunRecords) -> Iterator[str]:
    """Yield a sentence if the means are over different rows."""
    found = run.summary.find(SharedRows)
    if found is not None:
        yield describe(found)


def describe(found: SharedRows) -> str:
    """Return the numbers of rows in words.

    >>> describe(SharedRows(rows=80, metrics={"faithfulness": 300, "answer_correctness": 90}))
    'means of different rows: faithfulness 300, answer_correctness 90; 80 rows have every score'
    """
    counts = ", ".join(f"{metric} {count:,}" for metric, count in found.metrics.items())
    words = "1 row has" if found.rows == 1 else f"{found.rows:,} rows have" if found.rows else "no row has"
    return f"means of different rows: {counts}; {words} every score"


def how_to_read(run: RunRecords) -> Iterator[str]:
    """Yield the same for the report."""
    yield from (f"{line[0].upper()}{line[1:]}." for line in shared_lines(run))


FINDING = Finding(summary=(SharedRows,), count=count, lines=shared_lines, reading=how_to_read)
