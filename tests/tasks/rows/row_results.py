"""Results of rows for tests of the row store: regenerated questions, a different number of rows per sample."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from metric_core.stages import Stage
from tasks.rows.placed_rows import PlacedRows
from tasks.rows.row_digests import Digests, bounds_of, digest_rows, row_keys
from tasks.rows.row_store import RowStore
from tasks.runtime.usage import StageUsage
from tasks.tables.records import build_table

STAGE = Stage.QUESTIONS

RECIPE = "ask for questions in one way"


def keys_of(names: Sequence[str], recipe: str = RECIPE) -> Digests:
    """Return the keys of rows with these names."""
    digests = np.array([name.ljust(16, "\0").encode() for name in names], "S16").view("V16")
    return row_keys(recipe, [digests])


def questions_table(results: Mapping[str, Sequence[str]]) -> pa.Table:
    """Return the table with these questions of each sample."""
    rows = [
        {"row_id": name, "k": k, "text": text, "noncommittal": False, "status": "answered"}
        for name, texts in results.items()
        for k, text in enumerate(texts)
    ]
    return build_table(STAGE, rows)


def append(
    store: RowStore,
    results: Mapping[str, Sequence[str]],
    recipe: str | None = RECIPE,
    failed: Sequence[str] = (),
    usage: StageUsage | None = None,
) -> PlacedRows:
    """Store the questions of each sample."""
    table, names = questions_table(results), list(results)
    bounds = bounds_of(table, pa.array(names, pa.string()))
    complete = np.array([name not in failed for name in names], np.bool_)
    digests = digest_rows(table, bounds, STAGE)
    keys = keys_of(names, recipe or "")
    return store.append(STAGE, recipe, table, bounds, keys, digests, complete, usage or StageUsage())


def find(store: RowStore, names: Sequence[str], recipe: str = RECIPE) -> dict[str, list[str]]:
    """Return the questions of the samples that are found."""
    placed = store.find(STAGE, recipe, keys_of(names, recipe))
    found = [name for name, is_missing in zip(names, placed.missing.tolist(), strict=True) if not is_missing]
    there = placed.select(~placed.missing)
    table = store.read(STAGE, there)
    assert table.schema.equals(build_table(STAGE, []).schema, check_metadata=True)
    assert table["row_id"].to_pylist() == np.repeat(found, there.count).tolist()
    results: dict[str, list[str]] = {name: [] for name in found}
    for row in table.to_pylist():
        results[row["row_id"]].append(row["text"])
    bounds = np.cumsum([0, *there.count])
    assert digest_rows(table, bounds, STAGE).tobytes() == there.digests.tobytes()
    return results
