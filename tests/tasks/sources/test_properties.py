"""Any line is a sample or a bad row, never an unexpected error."""

import json

import fsspec
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from metric_core.columns import COLUMN_ALIASES, COLUMNS, ID_COLUMNS
from metric_core.errors import SourceError
from metric_core.schemas import SAMPLES
from tasks.sources import SourceOptions, read_samples

_TEXTS = st.text(st.characters(), max_size=8)
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3), max_leaves=8
)
_NAMES = st.sampled_from([*COLUMNS, *COLUMN_ALIASES, *ID_COLUMNS]) | _TEXTS
_ROWS = st.dictionaries(_NAMES, _VALUES, max_size=6) | _VALUES
_LINES = st.lists(_ROWS.map(lambda row: json.dumps(row).encode()) | st.binary(max_size=20), min_size=1, max_size=6)


def _read(lines: list[bytes], required: dict[str, tuple[str, ...]]) -> None:
    address = "memory://properties/log.jsonl"
    with fsspec.open(address, "wb") as handle:
        handle.write(b"\n".join(lines))
    try:
        reader = read_samples(address, SourceOptions(on_bad_row="skip", batch_rows=2), required)
        tables = list(reader)
    except SourceError as error:
        str(error).encode()
        return
    table = pa.concat_tables(tables)
    table.validate(full=True)
    assert table.schema.equals(SAMPLES.arrow)
    assert all(batch.num_rows <= 2 for batch in tables)
    assert table.num_rows + reader.bad_row_count == reader.rows_read
    assert len(set(table["row_id"].to_pylist())) == table.num_rows
    "".join(map(str, reader.bad_rows)).encode()
    "".join(reader.warnings).encode()
    for extras in table["extras"].to_pylist():
        assert extras is None or isinstance(json.loads(extras), dict)


@settings(derandomize=True, database=None, deadline=None, max_examples=150)
@given(_LINES)
def test_any_line_is_a_sample_or_a_bad_row(lines: list[bytes]) -> None:
    _read(lines, {})


@settings(derandomize=True, database=None, deadline=None, max_examples=150)
@given(_LINES)
def test_any_line_is_a_sample_or_a_bad_row_where_columns_are_needed(lines: list[bytes]) -> None:
    _read(lines, {"any": ("response",), "recall": ("retrieved_contexts",)})
