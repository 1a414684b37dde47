"""Single columns of a source, row by row: labels of people, groups, notes."""

import json
from collections.abc import Sequence
from typing import Any

from metric_core.columns import COLUMNS
from metric_core.errors import SourceError
from tasks.options.source_options import SourceOptions
from tasks.runtime.wording import quote_names, suggest_nearest
from tasks.sources.location import SourceLike
from tasks.sources.sample_reader import read_samples


def read_columns(source: SourceLike, options: SourceOptions, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What columns hold, by the ids that the rows have in a run.

    Args:
        source: the data.
        options: how it is read; rows that are no samples are left out.
        names: the columns; a column that samples have by their name for it.

    Returns:
        Column -> row id -> what the row has there, None where it has nothing.

    Raises:
        SourceError: no row has one of the columns.
    """
    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    seen: dict[str, None] = {}
    for table in read_samples(source, options.model_copy(update={"on_bad_row": "skip", "empty_text": "keep"}), {}):
        own = [name for name in names if name in COLUMNS]
        for row in table.select(["row_id", "extras", *own]).to_pylist():
            content = json.loads(row["extras"]) if row["extras"] else {}
            content |= {name: row[name] for name in own if row[name] is not None}
            seen.update(dict.fromkeys(content))
            for name, cells in found.items():
                cells[row["row_id"]] = content.get(name)
    for name in names:
        if name not in seen:
            raise SourceError(_unknown(name, list(seen)))
    return found


def _unknown(name: str, seen: Sequence[str]) -> str:
    close = suggest_nearest(name, seen)
    hint = f"Did you mean {close!r}?" if close else f"Beside the samples' own columns it has: {quote_names(seen)}."
    return f"the data has no column {name!r}. {hint}"
