"""Convert a row of a source to a sample: select its columns, convert and check them, and encode the rest as extras."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metric_core.columns import COLUMNS, REFERENCE, ColumnType
from tasks.sources.bad_rows import EMPTY_TEXT_HINT, UnfitError
from tasks.sources.column_mapping import Resolution
from tasks.sources.converters import Converter, as_joined_text
from tasks.sources.extra_columns import encode_extras
from tasks.sources.text_cells import join_text_cell, make_cell_converter

_SEVERAL_REFERENCES = "ground_truths"
_METRICS_NAMED = 3


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A row's sample columns (those that the source has, with None for null) and its other columns as JSON."""

    values: dict[str, Any]
    extras: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRules:
    """The rules for converting all rows of a source.

    Args:
        resolution: Source columns of the sample columns.
        id_column: Source column of the id, which is neither a sample column nor an extra column.
        needed_by: Mapping from sample column to the metrics that need it; null and empty values are refused only in
            these columns.
        keep_empty: If true, accept empty texts.
        text_cells: If true, values are cells of text, which cannot be null: an empty cell is an empty text where a
            metric needs a text, and null elsewhere.
    """

    resolution: Resolution
    id_column: str | None
    needed_by: Mapping[str, tuple[str, ...]]
    keep_empty: bool
    text_cells: bool

    def converter_of(self, column: str, source: str) -> Converter:
        """Return the converter from a source column to a sample column."""
        if column == REFERENCE and source.casefold() == _SEVERAL_REFERENCES:
            return join_text_cell if self.text_cells else as_joined_text
        return make_cell_converter(COLUMNS[column])


class RowConverter:
    """A converter of the rows of one source."""

    def __init__(self, rules: RowRules) -> None:
        bindings = rules.resolution.bindings
        self._steps = [(column, source, rules.converter_of(column, source)) for column, source in bindings.items()]
        self._used = {*bindings.values(), rules.id_column}
        self._text_cells = rules.text_cells
        self._keep_empty = rules.keep_empty
        self._needed_by = rules.needed_by
        self._needed_texts = tuple(c for c in rules.needed_by if COLUMNS[c] is ColumnType.TEXT)

    def convert(self, raw: Mapping[str, Any]) -> SampleRow:
        """Return the sample in a row.

        Raises:
            UnfitError: The row is not a valid sample; the error names the column.
        """
        values: dict[str, Any] = {}
        for column, source, convert in self._steps:
            value = raw.get(source)
            if self._is_null(value, column):
                values[column] = None
                continue
            try:
                values[column] = convert(value)
            except UnfitError as unfit:
                raise UnfitError(unfit.problem, column, unfit.hint) from None
        if not any(values.values()) and not any(value not in (None, "") for value in raw.values()):
            raise UnfitError("the row is empty")
        self._check_needed(values)
        return SampleRow(values, self._extras(raw))

    def _is_null(self, value: Any, column: str) -> bool:
        if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124 - only NaN does
            return True
        return self._text_cells and value == "" and column not in self._needed_texts

    def _check_needed(self, values: Mapping[str, Any]) -> None:
        for column in self._needed_by:
            if values[column] is None:
                got = "got an empty cell" if self._text_cells else "got null"
                raise UnfitError(f"{got}, wanted a {COLUMNS[column]} ({self._reason(column)})", column)
        if self._keep_empty:
            return
        for column in self._needed_texts:
            text = values[column]
            if not text or text.isspace():
                raise UnfitError(f"got an empty text ({self._reason(column)})", column, EMPTY_TEXT_HINT)

    def _reason(self, column: str) -> str:
        metrics = self._needed_by[column]
        names = ", ".join(metrics[:_METRICS_NAMED])
        return f"needed by {names}" if len(metrics) <= _METRICS_NAMED else f"needed by {names} and others"

    def _extras(self, raw: Mapping[str, Any]) -> str | None:
        nothing = (None, "") if self._text_cells else (None,)
        return encode_extras(
            {name: value for name, value in raw.items() if name not in self._used and value not in nothing}
        )
