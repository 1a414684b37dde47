"""The row store works at URLs: in memory, and at S3."""

from collections.abc import Iterator
from pathlib import Path

import fsspec
import numpy as np
import pytest

from tasks.rows.row_store import RowStore
from tasks.rows.table_files import filesystem
from tests.scale.object_store import BUCKET, running_object_store
from tests.tasks.rows.row_results import RECIPE, STAGE, append, find, keys_of


@pytest.fixture(params=["memory", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the URL of an empty table store."""
    if request.param == "memory":
        fsspec.filesystem("memory").store.clear()
        yield "memory://tables"
        return
    with running_object_store(tmp_path) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        yield f"s3://{BUCKET}/tables"
        fsspec.get_filesystem_class("s3").clear_instance_cache()


def test_rows_are_found_at_a_url(root: str, caplog: pytest.LogCaptureFixture) -> None:
    assert find(RowStore(root), ["a"]) == {}
    early = RowStore(root)
    placed = append(early, {"a": ["Why?"], "b": ["How?", "When?"]})
    assert placed.segments[0].path.startswith(root.partition(":")[0])
    append(RowStore(root), {"b": ["Who?"], "c": []})
    assert find(RowStore(root), ["a", "b", "c", "d"]) == {"a": ["Why?"], "b": ["Who?"], "c": []}
    assert RowStore(root).read(STAGE, placed.select(np.array([1])))["text"].to_pylist() == ["How?", "When?"]
    assert not caplog.records
    fs, path = filesystem(placed.segments[0].path)
    fs.pipe_file(path, bytes(fs.size(path)))
    assert RowStore(root).find(STAGE, RECIPE, keys_of(["a", "c"])).missing.tolist() == [True, False]
    (record,) = caplog.records
    assert path in record.getMessage()
