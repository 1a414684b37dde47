"""Slices of rows: columns that divide them, and columns that do not."""

import pytest

from metric_core.errors import ConfigError
from metric_core.statistics.slices import NO_VALUE, OTHER_VALUES
from tasks.runs import row_slicing
from tasks.runs.row_slicing import SliceColumn, read_slices
from tests.tasks.runs.test_row_grouping import shard


def test_rows_are_divided_by_several_columns_across_shards() -> None:
    shards = [shard(0, [{"topic": "a", "customer": 7}, {"topic": "", "customer": None}]), shard(2, [{"topic": "a"}])]
    topic, customer = read_slices(shards, ["topic", "customer"])
    assert topic.values == {"r0": "a", "r1": NO_VALUE, "r2": "a"}
    assert customer.values == {"r0": "7", "r1": NO_VALUE, "r2": NO_VALUE}
    assert read_slices(shards, []) == []


def test_too_many_values_are_limited_with_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_slicing, "MAX_SLICES", 3)
    extras: list[dict[str, object]] = [{"customer": f"c{i % 6}"} for i in range(21)]
    [sliced] = read_slices([shard(0, extras)], ["customer"])
    assert sliced.sizes == {"c0": 4, "c1": 4, OTHER_VALUES: 13}
    column = SliceColumn("customer")
    column.read(shard(0, extras))
    assert column.warn() == (
        "customer has 6 values, wanted at most 3 slices: the 2 most frequent values are slices of their own, the rows "
        "of the others are one slice, (other values)."
    )
    monkeypatch.setattr(row_slicing, "MAX_SLICES", 6)
    assert column.warn() is None


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("topics", "rows cannot be sliced by topics: there is no column 'topics'; there are: .*topic"),
        ("empty", "rows cannot be sliced by empty: no row has a value there"),
        ("retrieved_contexts", "rows cannot be sliced by retrieved_contexts, which holds no single text"),
        ("row_id", "rows cannot be sliced by row_id: 60 rows have 60 different values, so hardly any slice"),
    ],
)
def test_a_column_that_divides_no_rows_is_an_error(column: str, message: str) -> None:
    rows: list[dict[str, object]] = [{"topic": "a", "empty": " "}] * 60
    with pytest.raises(ConfigError, match=message):
        read_slices([shard(0, rows)], [column])
