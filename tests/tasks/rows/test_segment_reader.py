"""Rows are read from any segments, in any order, and few of them stay in memory."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metric_core.errors import AssayError
from metric_core.schemas import SAMPLES
from metric_core.stages import Stage
from tasks.rows import segment_reader
from tasks.rows.places import Places, Segment
from tasks.rows.row_digests import DIGEST
from tasks.rows.segment_reader import SegmentReader
from tasks.rows.table_store import TableStore
from tests.tasks.builders import samples_table


def places(*several: tuple[Segment, int, int]) -> Places:
    """Return places from segment, start and count."""
    parts = []
    for segment, start, count in several:
        number, first, rows = (np.array([value], np.int32) for value in (0, start, count))
        parts.append(Places((segment,), number, first, rows, np.zeros(1, DIGEST)))
    return Places.concat(parts)


@pytest.fixture
def segments(tmp_path: Path) -> list[Segment]:
    """Return three segments with samples, one of them with scores of passages."""
    store = TableStore(str(tmp_path))
    tables = [
        samples_table({"row_id": "a"}, {"row_id": "b", "retrieved_context_scores": [0.5]}),
        samples_table(),
        samples_table({"row_id": "c"}),
    ]
    return [Segment(store.write(table).path) for table in tables]


def test_rows_of_several_segments_are_read_in_order(segments: list[Segment]) -> None:
    first, second, third = segments
    placed = places((third, 0, 1), (first, 1, 1), (second, 0, 0), (first, 0, 1))
    table = SegmentReader().read(Stage.SAMPLES, placed)
    assert table.schema.equals(SAMPLES.arrow, check_metadata=True)
    assert table["row_id"].to_pylist() == ["c", "b", "a"]
    assert table["retrieved_context_scores"].to_pylist() == [None, [0.5], None]
    some = SegmentReader().read(Stage.SAMPLES, placed, ["retrieved_context_scores", "session_id", "row_id"])
    assert some.schema.names == ["retrieved_context_scores", "session_id", "row_id"]
    assert some["row_id"].to_pylist() == ["c", "b", "a"]


def test_rows_stored_with_and_without_an_optional_column_are_read_together(tmp_path: Path) -> None:
    store = TableStore(str(tmp_path))
    segments = [
        Segment(store.write(table).path)
        for table in (samples_table({"row_id": "a"}), samples_table({"row_id": "b", "session_id": "s"}))
    ]
    placed = places((segments[1], 0, 1), (segments[0], 0, 1))
    for columns in (None, ["row_id", "session_id"]):
        table = SegmentReader().read(Stage.SAMPLES, placed, columns)
        assert [table[name].to_pylist() for name in ("row_id", "session_id")] == [["b", "a"], ["s", None]]


def test_whole_segments_in_order_are_not_copied(segments: list[Segment]) -> None:
    reader = SegmentReader()
    placed = places((segments[0], 0, 2), (segments[2], 0, 1))
    addresses = [
        chunk.buffers()[2].address for _ in range(2) for chunk in reader.read(Stage.SAMPLES, placed)["row_id"].chunks
    ]
    assert addresses[:2] == addresses[2:]


def test_segments_are_decoded_once_while_they_fit_into_memory(
    segments: list[Segment], monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = []

    class Counting(pq.ParquetFile):  # type: ignore[misc] # pyarrow has no types
        def read_row_group(self, number: int, columns: object = None) -> pa.Table:
            decoded.append(self.metadata.num_rows)
            return super().read_row_group(number, columns)

    monkeypatch.setattr(pq, "ParquetFile", Counting)
    for most_bytes, expected in ((segment_reader.MOST_BYTES, [2, 1]), (0, [2, 1, 2, 1])):
        monkeypatch.setattr(segment_reader, "MOST_BYTES", most_bytes)
        decoded.clear()
        reader = SegmentReader()
        for _ in range(2):
            for segment in (segments[0], segments[2]):
                reader.read(Stage.SAMPLES, places((segment, 0, 1)))
                reader.read(Stage.SAMPLES, places((segment, 0, 1)), ["row_id"])
        assert decoded == expected


def test_rows_of_another_schema_version_are_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "samples.parquet")
    pq.write_table(samples_table({}).replace_schema_metadata({"assay.version": "99"}), path)
    with pytest.raises(AssayError, match=r"schema version 99, this rag-assay reads 3\. Run the evaluation again"):
        SegmentReader().read(Stage.SAMPLES, places((Segment(path), 0, 1)))
