"""Selecting and merging rows of stage tables."""

import pyarrow as pa

from metric_core.stages import Stage
from tasks.tables.merge import merge_tables, select_rows
from tasks.tables.records import build_table


def claims(*rows: tuple[str, str]) -> pa.Table:
    return build_table(
        Stage.CLAIMS, [{"row_id": row, "side": "response", "text": text, "status": "answered"} for row, text in rows]
    )


def texts(table: pa.Table) -> list[str]:
    found: list[str] = table["text"].to_pylist()
    return found


def test_rows_of_one_sample_stay_in_their_order() -> None:
    kept = claims(("c", "c1"), ("a", "a1"), ("c", "c2"), ("a", "a2"))
    fresh = claims(("d", "d1"), ("b", "b1"), ("d", "d2"))
    assert texts(merge_tables(["a", "b", "c", "d"], kept, fresh)) == ["a1", "a2", "b1", "c1", "c2", "d1", "d2"]


def test_rows_of_removed_samples_are_left_out() -> None:
    assert texts(merge_tables(["b"], claims(("a", "a1"), ("b", "b1")), claims(("x", "x1")))) == ["b1"]


def test_merging_empty_tables_gives_an_empty_table_of_the_same_schema() -> None:
    empty = claims()
    assert merge_tables([], empty, empty).schema == empty.schema
    assert merge_tables(["a"], claims(("a", "a1")), empty).num_rows == 1


def test_selecting_rows_keeps_the_schema_with_its_version() -> None:
    part = select_rows(claims(("a", "a1"), ("b", "b1")), {"b"})
    assert texts(part) == ["b1"]
    assert part.schema.metadata[b"assay.stage"] == b"claims"
