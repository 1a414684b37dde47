"""The tables of a run folder have the shards in order, and the optional columns in which a shard has a value."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.schemas import QUESTIONS, SCORES
from metric_core.stages import Stage
from tasks.rows.computed_tables import RunTables
from tasks.rows.row_store import RowStore
from tasks.rows.table_store import TableStore
from tasks.runs.row_groups import iterate_shards
from tests.tasks.builders import samples_table
from tests.tasks.rows.row_results import STAGE, append

SCORED = {"row_id": "b", "retrieved_contexts": ["one"], "retrieved_context_scores": [0.5]}


def test_samples_have_the_optional_columns_that_a_shard_has(tmp_path: Path) -> None:
    tables, store = TableStore(str(tmp_path / "store")), RowStore(str(tmp_path / "store"))
    plain, scored = (tables.write(samples_table(row)) for row in ({"row_id": "a"}, SCORED))
    target = tmp_path / "samples.parquet"
    RunTables(store, [plain], {}, {}).write(Stage.SAMPLES, str(target))
    assert pq.read_schema(target) == pq.read_schema(plain.path)
    RunTables(store, [plain, scored], {}, {}).write(Stage.SAMPLES, str(target))
    assert pq.read_schema(target).metadata[b"assay.version"] == b"3"
    shards = list(iterate_shards(target, ["row_id", "retrieved_context_scores"]))
    assert [shard.to_pylist() for shard in shards] == [
        [{"row_id": "a", "retrieved_context_scores": None}],
        [{"row_id": "b", "retrieved_context_scores": [0.5]}],
    ]


def test_a_stage_has_its_shards_in_the_order_of_their_samples(tmp_path: Path) -> None:
    tables, store = TableStore(str(tmp_path / "store")), RowStore(str(tmp_path / "store"))
    samples = [tables.write(samples_table({"row_id": name})) for name in "ab"]
    placed = append(store, {"b": ["Why?", "How?"], "a": ["When?"]})
    run = RunTables(store, samples, {STAGE: [placed.select(np.array([number])) for number in (1, 0)]}, {})
    target = tmp_path / "questions.parquet"
    run.write(STAGE, str(target))
    with pq.ParquetFile(target) as file:
        assert [file.read_row_group(number)["text"].to_pylist() for number in range(2)] == [["When?"], ["Why?", "How?"]]
        assert file.schema_arrow.equals(QUESTIONS.arrow, check_metadata=True)
    assert run.rows(STAGE) == 3


def test_a_large_shard_is_one_row_group(tmp_path: Path) -> None:
    rows = (1 << 20) + 1  # more than pyarrow writes into a row group by itself
    values = {"row_id": "a", "metric": "m", "value": 0.5, "status": "scored", "reason": None, "label": None}
    arrays = [pa.repeat(pa.scalar(values[field.name], field.type), rows) for field in SCORES.arrow]
    shard = SimpleNamespace(table=pa.table(arrays, schema=SCORES.arrow))
    store: Any = SimpleNamespace(read_shards=lambda _stage, _shards, _columns: iter([shard]))
    target = tmp_path / "scores.parquet"
    RunTables(store, [], {Stage.AGGREGATION: []}, {}).write(Stage.AGGREGATION, str(target))
    assert [pq.read_metadata(target).row_group(0).num_rows] == [rows]
