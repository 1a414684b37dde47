"""Weights of rows: a column of weights, of probabilities, or the shares of slices in the traffic."""

import json
from collections.abc import Sequence

import pyarrow as pa
import pytest

from metric_core.errors import ConfigError
from metric_core.schemas import SAMPLES
from tasks.options.grouping_options import Traffic, check_shares
from tasks.runs.row_weights import RowWeights, read_weights

TOPICS: Traffic = {"topic": {"a": 0.5, "b": 0.5}}


def shard(column: str, values: Sequence[object]) -> pa.Table:
    extras = [json.dumps({} if value is None else {column: value}) for value in values]
    rows = [{"row_id": str(i), "extras": text, "retrieved_contexts": []} for i, text in enumerate(extras)]
    return pa.Table.from_pylist([{field.name: row.get(field.name) for field in SAMPLES.fields} for row in rows])


def weigh(weights: str, values: Sequence[object], traffic: Traffic | None = None) -> list[float]:
    column = "topic" if traffic else weights.removeprefix("1/")
    found = read_weights([shard(column, values)], weights, traffic or {})
    assert found is not None
    return list(found.values())


def test_weights_probabilities_and_shares_say_the_same() -> None:
    expected = pytest.approx([2 / 3] * 3 + [2.0])
    assert weigh("w", [1, 1, "1", 3.0]) == expected
    assert weigh("1/p", [0.9, 0.9, 0.9, 0.3]) == expected
    assert weigh("traffic", ["a", "a", "a", "b"], TOPICS) == expected


@pytest.mark.parametrize(
    ("weights", "values", "message"),
    [
        ("w", [1, None], "row 1 has nothing there, wanted a number above 0"),
        ("w", [1, "much"], "row 1 has 'much' there, wanted a number above 0"),
        ("w", [1, -2], "row 1 has '-2' there"),
        ("w", [1, 0], "row 1 has '0' there"),
        ("w", [1, "nan"], "row 1 has 'nan' there"),
        ("w", [1, "inf"], "row 1 has 'inf' there"),
        ("1/p", [0.5, 2], "wanted a probability above 0, at most 1"),
        ("w", [None, None], "no column 'w'"),
    ],
)
def test_bad_weights_are_refused(weights: str, values: Sequence[object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        weigh(weights, values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", "b", "c"], "1 rows of topic c have no share"),
        (["a", "b", None], "1 rows without a topic have no share"),
        (["a", "a"], "no row stands for topic b, 50 % of the traffic"),
    ],
)
def test_slices_without_rows_or_shares_are_refused(values: Sequence[object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        weigh("traffic", values, TOPICS)


def test_the_traffic_has_the_shares_of_one_column() -> None:
    with pytest.raises(ConfigError, match="takes the shares of one column, traffic has 0"):
        RowWeights("traffic", {})


@pytest.mark.parametrize("shares", [{"a": 0.5, "b": 0.4}, {"a": 1.5, "b": -0.5}])
def test_shares_are_above_0_and_sum_to_1(shares: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="shares of topic"):
        check_shares({"topic": shares})


@pytest.mark.parametrize(("values", "is_said"), [(["a"] * 80 + ["b"] * 20, True), (["a", "b"] * 40 + ["a"] * 6, False)])
def test_rows_unlike_the_traffic_are_said_unless_they_are_weighted(values: list[str], is_said: bool) -> None:
    for weights in (None, "traffic"):
        found = RowWeights(weights, TOPICS)
        found.read(shard("topic", values))
        assert len(list(found.warn())) == (is_said and weights is None)
    if is_said:
        found = RowWeights(None, TOPICS)
        found.read(shard("topic", values))
        [sentence] = found.warn()
        assert sentence.startswith("80 % of the rows have topic a, 50 % of the traffic")
