"""Find the questions that were written from an index among rows that only one of two runs has."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from metric_core.columns import EVIDENCE_SPANS, QUESTION_KIND, SINCE, WRITTEN_FROM
from tasks.comparison.run_pair import RunRows
from tasks.runs.row_grouping import ROW_ID

_NAMED = 3


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Questions that were written from an index.

    Args:
        documents: Documents that held their evidence, in the order of the rows; empty if they are not known.
    """

    count: int = 0
    documents: tuple[str, ...] = ()


def find_written(rows: RunRows, names: Collection[str]) -> WrittenRows:
    """Return which of some rows of a run are questions that were written from an index."""
    found = list(_written(rows, frozenset(names)))
    return WrittenRows(len(found), tuple(dict.fromkeys(name for documents in found for name in documents)))


def describe_retired(count: int, rows: int, documents: Collection[str]) -> str:
    """Return in words how many rows that a run lacks are questions that retired, and where their evidence was.

    >>> describe_retired(7, 7, ["leave.md", "travel.md"])
    'retired questions from the index, with evidence in leave.md, travel.md'
    >>> describe_retired(1, 7, [])
    '1 of them a retired question from the index'
    """
    kind = describe_written(count, rows, "retired")
    named = ", ".join([*documents][:_NAMED])
    more = f" and {len(documents) - _NAMED} more documents" if len(documents) > _NAMED else ""
    return f"{kind}, with evidence in {named}{more}" if named else kind


def describe_written(count: int, rows: int, what: str) -> str:
    """Return in words how many of some rows are questions from an index.

    >>> describe_written(5, 5, "new"), describe_written(5, 7, "new")
    ('new questions from the index', '5 of them new questions from the index')
    """
    noun = f"{what} question{'s' * (count != 1)} from the index"
    if count == rows:
        return noun if count != 1 else f"a {noun}"
    return f"{count} of them {noun if count != 1 else f'a {noun}'}"


def _written(rows: RunRows, wanted: frozenset[str]) -> Iterator[list[str]]:
    """Yield the documents that hold the evidence of each question."""
    for shard in rows.samples() if wanted else ():
        cells = (shard[name].to_pylist() for name in (ROW_ID, "extras", EVIDENCE_SPANS))
        for name, extras, spans in zip(*cells, strict=True):
            if name in wanted and {QUESTION_KIND, SINCE, WRITTEN_FROM} <= json.loads(extras or "{}").keys():
                yield [str(each["document"]) for each in _listed(spans) if each["document"] is not None]


def _listed(spans: Any) -> list[dict[str, Any]]:
    return spans or []
