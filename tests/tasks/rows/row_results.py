"""Results of rows for tests of the row store: regenerated questions, a different number of rows per sample."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from metric_core.stages import Stage
from tasks.rows.places import Places
from tasks.rows.records import build_table
from tasks.rows.row_digests import Digests, digest_rows, row_keys
from tasks.rows.row_store import RowStore
from tasks.rows.stage_rows import StageRows
from tasks.runtime.usage import StageUsage

STAGE = Stage.QUESTIONS

RECIPE = "ask for questions in one way"


def keys_of(names: Sequence[str], recipe: str = RECIPE) -> Digests:
    """Return the keys of rows with these names."""
    digests = np.array([name.ljust(16, "\0").encode() for name in names], "S16").view("V16")
    return row_keys(recipe, [digests])


def questions_table(results: Mapping[str, Sequence[str]], failed: Sequence[str] = ()) -> pa.Table:
    """Return the table with these questions of each sample."""
    rows = [
        {
            "row_id": name,
            "k": k,
            "text": text,
            "noncommittal": False,
            "status": "failed" if name in failed else "answered",
        }
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
) -> Places:
    """Store the questions of each sample."""
    names = list(results)
    rows = StageRows.from_table(STAGE, questions_table(results, failed), pa.array(names, pa.string()))
    return store.append(STAGE, recipe, rows, keys_of(names, recipe or ""), usage or StageUsage())


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
