"""Read single columns of a source by row id: human labels, groups, notes."""

import json
from collections.abc import Collection, Sequence
from contextlib import closing
from typing import Any

from metric_core.columns import COLUMNS
from metric_core.errors import SourceError
from tasks.options.source_options import SourceOptions
from tasks.runtime.wording import quote_names, suggest_nearest
from tasks.sources.location import SourceLike, open_source
from tasks.sources.sample_reader import read_samples


def read_columns(
    source: SourceLike, options: SourceOptions, names: Sequence[str], *, optional: bool = False
) -> dict[str, dict[str, Any]]:
    """Return the values of columns by row id, with the ids that the rows have in a run.

    Args:
        options: Options for reading the data; rows that are not valid samples are left out.
        names: Names of the columns; sample columns by the name that they have in samples.
        optional: Accept columns that no row has.

    Returns:
        A mapping from column to a mapping from row id to value; None where a row has no value, or a text that occurs
        for a missing one.

    Raises:
        SourceError: No row has one of the columns, and they are not optional.
    """
    columns: dict[str, dict[str, Any]] = {name: {} for name in names}
    seen: dict[str, None] = {}
    missing_texts = frozenset(options.missing_texts)
    for table in read_samples(source, options.model_copy(update={"on_bad_row": "skip"}), {}):
        sample_columns = [name for name in names if name in COLUMNS]
        for row in table.select(["row_id", "extras", *sample_columns]).to_pylist():
            content = json.loads(row["extras"]) if row["extras"] else {}
            content |= {name: row[name] for name in sample_columns if row[name] is not None}
            seen.update(dict.fromkeys(content))
            for name, cells in columns.items():
                value = content.get(name)
                cells[row["row_id"]] = None if isinstance(value, str) and value.strip() in missing_texts else value
    for name in names:
        if name not in seen and not optional:
            raise SourceError(_unknown_column(name, list(seen), _declared(source)))
    return columns


def _declared(source: SourceLike) -> set[str]:
    """Return the names of all columns that a source states, with or without values."""
    with closing(open_source(source).column_sets(None)) as sets:
        return {name for names in sets for name in names}


def _unknown_column(name: str, seen: Sequence[str], declared: Collection[str]) -> str:
    if name in declared:
        return f"the column {name!r} is empty in every row: fill it in"
    close = suggest_nearest(name, seen)
    hint = f"Did you mean {close!r}?" if close else f"Besides the sample columns it has: {quote_names(seen)}."
    return f"the data has no column {name!r}. {hint}"
