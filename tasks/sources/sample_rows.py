"""Convert a row of a source to a sample, and collect samples into tables.

The columns of a sample are selected, converted and checked; the others, which no metric reads, are encoded as JSON, for
reports and exports.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from metric_core.columns import (
    COLUMNS,
    PARALLEL_COLUMNS,
    REFERENCE,
    RELEVANCE_JUDGMENTS,
    SESSION_ID,
    TOOL_RESULTS,
    ColumnType,
)
from metric_core.schemas import SAMPLES
from tasks.options.source_options import ONE_PASSAGE
from tasks.sources.cells.converters import Converter, as_joined_text, as_results
from tasks.sources.cells.ids import as_id
from tasks.sources.cells.missing_values import MissingValues
from tasks.sources.cells.passage_objects import COMPANIONS, companions, read_passages
from tasks.sources.cells.text_cells import join_text_cell, make_cell_converter, parse_cell
from tasks.sources.column_mapping import Resolution
from tasks.sources.readers.bad_rows import EMPTY_TEXT_HINT, PASSAGE_HINT, InvalidRowError

_SEVERAL_REFERENCES = "ground_truths"
_SEPARABLE = (ColumnType.TEXTS, ColumnType.IDS)
_METRICS_NAMED = 3
_READABLE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str).encode
_ESCAPED = json.JSONEncoder(ensure_ascii=True, allow_nan=False, default=str).encode


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A row's sample columns (those that the source has, with None for null) and its other columns as JSON."""

    values: dict[str, Any]
    extras: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRules:
    """The rules for converting all rows of a source.

    Args:
        id_column: Source column of the id, which is neither a sample column nor an extra column.
        needed_by: Mapping from sample column to the metrics that need it.
        empty_text: Option `empty_text`; with `bad`, null and blank values are refused in the needed columns.
        missing_texts: Texts that mean a missing value.
        text_cells: If true, values are cells of text, which cannot be null: an empty cell is null, or with
            `empty_text = "keep"` an empty text where a metric needs a text.
        fills_keys: See `RowSource`.
        passage_separator: Text between the items of a list that is a plain text; None if such a text is refused.
    """

    resolution: Resolution
    id_column: str | None
    needed_by: Mapping[str, tuple[str, ...]]
    empty_text: str
    missing_texts: frozenset[str]
    text_cells: bool
    fills_keys: bool = False
    passage_separator: str | None = None

    def converter_of(self, column: str, source: str) -> Converter:
        """Return the converter from a source column to a sample column."""
        if column == SESSION_ID:
            return as_id
        if column == TOOL_RESULTS:
            return lambda cell: as_results(parse_cell(cell) if isinstance(cell, str) else cell)
        if column == REFERENCE and source.casefold() == _SEVERAL_REFERENCES:
            return join_text_cell if self.text_cells else as_joined_text
        convert = make_cell_converter(COLUMNS[column])
        if column == RELEVANCE_JUDGMENTS and self.fills_keys:
            return lambda value: convert(_without_nulls(value) if isinstance(value, Mapping) else value)
        return convert


class RowConverter:
    """A converter of the rows of one source.

    Args:
        missing: Counts of missing values, which the converter adds to.
    """

    def __init__(self, rules: RowRules, missing: MissingValues) -> None:
        bindings = rules.resolution.bindings
        self._steps = [(column, source, rules.converter_of(column, source)) for column, source in bindings.items()]
        self._used = {*bindings.values(), rules.id_column}
        self._text_cells = rules.text_cells
        self._empty_text = rules.empty_text
        self._missing_texts = rules.missing_texts
        self._passage_separator = rules.passage_separator
        self._missing = missing
        self._needed_by = rules.needed_by
        self._needed_texts = tuple(c for c in rules.needed_by if COLUMNS[c] is ColumnType.TEXT)

    def convert(self, raw: Mapping[str, object]) -> SampleRow:
        """Return the sample in a row.

        Raises:
            InvalidRowError: The row is not a valid sample; the error names the column.
        """
        values: dict[str, Any] = {}
        brought: dict[str, Any] = {}
        for column, source, convert in self._steps:
            value = raw.get(source)
            if self._is_null(value, column):
                values[column] = None
                continue
            is_separable = COLUMNS[column] in _SEPARABLE
            try:
                if isinstance(value, str) and is_separable:
                    value = self._split(value)
                if column in COMPANIONS:
                    value, more = _unpack_passages(column, value)
                    brought |= more
                converted = convert(value)
            except InvalidRowError as invalid:
                hint = PASSAGE_HINT if is_separable and isinstance(value, str) else invalid.hint
                raise InvalidRowError(invalid.problem, column, hint) from None
            is_blank = isinstance(converted, str) and not converted.strip()
            values[column] = None if is_blank and self._empty_text == "missing" else converted
        values |= {column: value for column, value in brought.items() if column in COLUMNS and not values.get(column)}
        if not any(values.values()) and not any(value not in (None, "") for value in raw.values()):
            raise InvalidRowError("the row is empty")
        _align_lists(values)
        self._check_needed(values)
        others = {column: value for column, value in brought.items() if column not in COLUMNS}
        return SampleRow(values, self._extras({**others, **raw}))

    def _split(self, text: str) -> Any:
        """Return the list or object in a text, or the passages or ids between separators."""
        parsed = parse_cell(text)
        if not isinstance(parsed, str) or self._passage_separator is None:
            return parsed
        parts = [text] if self._passage_separator == ONE_PASSAGE else text.split(self._passage_separator)
        return [part.strip() for part in parts if part.strip()]

    def _is_null(self, value: Any, column: str) -> bool:
        if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124 - only NaN does
            return True
        if not isinstance(value, str):
            return False
        if value.strip() in self._missing_texts and (self._text_cells or COLUMNS[column] is ColumnType.TEXT):
            self._missing.add_text(column, value.strip())
            return self._text_cells
        if COLUMNS[column] is not ColumnType.TEXT:
            return self._text_cells and not value.strip()
        keeps_empty = self._empty_text == "keep" and column in self._needed_texts
        return self._text_cells and value == "" and not keeps_empty

    def _check_needed(self, values: Mapping[str, Any]) -> None:
        if self._empty_text != "bad":
            return
        for column in self._needed_by:
            if values.get(column) is None:
                got = "got an empty cell" if self._text_cells else "got null"
                wanted = f"wanted a {COLUMNS[column]} (needed by {self._metrics(column)})"
                raise InvalidRowError(f"{got}, {wanted}", column, EMPTY_TEXT_HINT)
        for column in self._needed_texts:
            if values[column].isspace() or not values[column]:
                raise InvalidRowError(f"got an empty text (needed by {self._metrics(column)})", column, EMPTY_TEXT_HINT)

    def _metrics(self, column: str) -> str:
        metrics = self._needed_by[column]
        return ", ".join(metrics[:_METRICS_NAMED]) + (" and others" if len(metrics) > _METRICS_NAMED else "")

    def _extras(self, raw: Mapping[str, object]) -> str | None:
        nothing = (None, "") if self._text_cells else (None,)
        return _encode_extras(
            {name: value for name, value in raw.items() if name not in self._used and value not in nothing}
        )


def _without_nulls(value: Mapping[str, object]) -> dict[str, Any]:
    return {key: each for key, each in value.items() if each is not None}


def _unpack_passages(column: str, value: Any) -> tuple[Any, dict[str, Any]]:
    """Return the texts of passages that are objects, and what else they bring along, by column."""
    parsed = parse_cell(value) if isinstance(value, str) else value
    passages = read_passages(parsed)
    if passages is None:
        return (parsed if isinstance(parsed, list | tuple) else value), {}
    return [passage.text for passage in passages], companions(column, passages)


def _align_lists(values: dict[str, Any]) -> None:
    """Check that lists that describe the same passages belong together item by item.

    An empty list beside passages is none: some programs write it for a value that they do not have.

    Raises:
        InvalidRowError: A list has more or fewer items than there are passages.
    """
    for column, others in PARALLEL_COLUMNS.items():
        items = values.get(column)
        if items is None:
            continue
        other = next((name for name in others if values.get(name) is not None), None)
        if other is None or len(items) == len(values[other]):
            continue
        if items:
            problem = f"got a list of {len(items)}, wanted {len(values[other])}: one for each item of {other}, or null"
            raise InvalidRowError(problem, column)
        values[column] = None


def _encode_extras(values: Mapping[str, object]) -> str | None:
    """Return the JSON of a row's extra columns, with values unknown to JSON as text; None if there are no columns.

    >>> _encode_extras({"score": 1.5, "at": float("inf")})
    '{"score": 1.5, "at": "inf"}'

    Raises:
        InvalidRowError: A value is nested too deeply to be stored.
    """
    if not values:
        return None
    try:
        return _encode(values)
    except (ValueError, TypeError):
        return _encode(_plain(values))
    except RecursionError:
        raise InvalidRowError("a value is nested too deeply to be stored") from None


def _encode(values: Any) -> str:
    text = _READABLE(values)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return _ESCAPED(values)
    return text


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class BatchBuilder:
    """A builder of tables of the samples schema."""

    def __init__(self) -> None:
        self._schema = SAMPLES.arrow
        self._rows: list[dict[str, Any]] = []
        self.size = 0
        """Approximate size of the texts of the samples."""

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row_id: str, number: int, row: SampleRow) -> None:
        """Add a sample."""
        self._rows.append({**row.values, "row_id": row_id, "row_number": number, "extras": row.extras})
        self.size += sum(map(_size, (row.extras, *row.values.values())))

    def take(self) -> pa.Table:
        """Return a table of the samples added since the last call."""
        arrays = [pa.array([row.get(field.name) for row in self._rows], field.type) for field in self._schema]
        self._rows = []
        self.size = 0
        return pa.table(arrays, schema=self._schema)


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, list) else 0
