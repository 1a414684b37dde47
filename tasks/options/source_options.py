"""What a user can say about a source: names of columns, how many rows, what to do about rows that are no samples."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from metric_core.columns import COLUMN_ALIASES, COLUMNS
from metric_core.errors import ConfigError
from tasks.runtime.wording import quote_names, suggest_nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How to read a source.

    Args:
        column_map: data-set column -> sample column, before any alias. A sample column that is named here is read
            from there and nowhere else.
        id_column: the data-set column with the ids of the rows. None: the first of `row_id` and `id` that the
            source has, else a digest of each row's content. "": the digest in any case.
        limit: read only the first rows of the source, bad ones included. At least 1.
        on_bad_row: "fail" raises at the end of the source; "skip" leaves bad rows out.
        empty_text: whether an empty text in a column that a metric needs makes a row "bad" or is kept.
        batch_rows: rows in a table, and the bound on how many are in memory. At least 1.

    Raises:
        ConfigError: `column_map` names a sample column that does not exist or names one twice; a number below 1.
    """

    column_map: Mapping[str, str] = field(default_factory=dict)
    id_column: str | None = None
    limit: int | None = None
    on_bad_row: Literal["fail", "skip"] = "fail"
    empty_text: Literal["bad", "keep"] = "bad"
    batch_rows: int = 2000

    def __post_init__(self) -> None:
        """Refuses options that no source can satisfy."""
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"limit must be at least 1, got {self.limit}")
        if self.batch_rows < 1:
            raise ConfigError(f"batch_rows must be at least 1, got {self.batch_rows}")
        _check_column_map(self.column_map)


def _check_column_map(column_map: Mapping[str, str]) -> None:
    sources: dict[str, str] = {}
    for source, target in column_map.items():
        if target not in COLUMNS:
            raise ConfigError(_unknown_target(source, target))
        if target in sources:
            both = quote_names([sources[target], source])
            raise ConfigError(f"column_map names {target!r} for two columns, {both}; keep one of them")
        sources[target] = source


def _unknown_target(source: str, target: str) -> str:
    message = f"column_map maps {source!r} to {target!r}, which is no column of a sample. "
    if target in ("row_id", "id"):
        return message + f"To take the ids of the rows from it, set id_column to {source!r}."
    if source in COLUMNS:
        return message + f"The data set's own name comes first: {{{target!r}: {source!r}}}."
    suggestion = COLUMN_ALIASES.get(target) or suggest_nearest(target, COLUMNS)
    return message + (f"Did you mean {suggestion!r}?" if suggestion else f"There are: {quote_names(COLUMNS)}.")
