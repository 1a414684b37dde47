"""Groups of rows, and rows that look dependent."""

import json

import pyarrow as pa
import pytest

from metric_core.errors import ConfigError
from metric_core.statistics.resampling import Interval
from tasks.runs.row_grouping import Repetition, find_repetition, group_names, read_groups


def shard(first: int, extras: list[dict[str, object]], questions: list[str] | None = None) -> pa.Table:
    count = len(extras)
    return pa.table(
        {
            "row_id": [f"r{first + i}" for i in range(count)],
            "user_input": questions or [f"question {first + i}" for i in range(count)],
            "retrieved_contexts": [[f"passage {first + i}"] for i in range(count)],
            "extras": [json.dumps(extra) if extra else None for extra in extras],
        }
    )


def test_rows_without_a_value_stand_alone() -> None:
    shards = [shard(0, [{"document": "a"}, {"document": None}]), shard(2, [{"document": "a"}, {}])]
    groups = read_groups(shards, "document")
    assert groups == {"r0": "a", "r2": "a"}
    assert list(group_names(["r0", "r1", "r2"], groups)) == ["group a", "row r1", "group a"]


def test_a_column_that_some_shards_lack_is_no_error() -> None:
    assert read_groups([shard(0, [{"other": 1}]), shard(1, [{"document": 7}])], "document") == {"r1": "7"}


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("documents", "there is no column 'documents'; there are: .*document"),
        ("retrieved_contexts", "holds no single text"),
        ("document", "rows cannot be grouped by document: no row has a value there"),
    ],
)
def test_a_column_that_groups_nothing_is_an_error(by: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_groups([shard(0, [{"document": None}, {}])], by)


def test_repeated_questions_are_found_across_shards() -> None:
    shards = [shard(0, [{}] * 2, ["why?", "who?"]), shard(2, [{}] * 2, ["why?", "when?"]), shard(4, [{}] * 6)]
    assert find_repetition(shards[:2]) is None
    found = find_repetition(shards)
    assert found is not None
    assert (found.column, found.rows, found.checked) == ("user_input", 2, 10)
    assert str(found) == "2 of 10 rows repeat a user_input: with --by user_input"


def test_only_repetitions_that_widen_an_interval_are_said() -> None:
    repetition = Repetition("retrieved_contexts", 9, 12)
    alone = {"recall": Interval(0.4, 0.6), "precision": Interval(0.4, 0.6), "ones": Interval(1.0, 1.0)}
    wider = repetition.describe(alone, alone | {"precision": Interval(0.3, 0.7)})
    assert wider == (
        "9 of 12 rows repeat a retrieved_contexts: with --by the column of their document the interval of precision is "
        "2.0 times as wide"
    )
    assert repetition.describe(alone, {"recall": Interval(0.45, 0.55)}) is None
    assert repetition.describe({}, {}) is None


def test_repeated_contexts_are_found() -> None:
    table = shard(0, [{}] * 40)
    same = [["one passage"]] * 2 + [[f"passage {i}"] for i in range(38)]
    repeated = table.set_column(2, "retrieved_contexts", pa.array(same))
    found = find_repetition([repeated])
    assert found is not None
    assert (found.column, found.rows) == ("retrieved_contexts", 2)


def test_a_rare_repetition_is_not_worth_a_warning() -> None:
    assert find_repetition([shard(0, [{}] * 41, ["same?"] * 2 + [f"question {i}" for i in range(39)])]) is None
    assert find_repetition([shard(0, [{}] * 3)]) is None
