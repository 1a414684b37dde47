"""Write the diagnosis of every row of a run, and count the classes.

The verdicts are read from the stage tables of the run folder, shard by shard, so that no question is asked and one
shard is in memory at a time.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.diagnosis.classes import BY_NAME, CLASSES, UNDIAGNOSED, Diagnosis, diagnose
from metric_core.metric import MetricRequest
from metric_core.stages import JUDGED, Product, Stage, closure
from metric_core.statistics.bounded_means import Bounds, estimate_interval
from metric_core.statistics.resampling import SEED, Units
from tasks.evidence.sample_evidence import read_evidence
from tasks.runs.row_grouping import group_names
from tasks.runs.row_groups import RowGroups, read_shards
from tasks.runs.run_folder import DIAGNOSIS, STAGES, RunFolder
from tasks.runtime.atomic_files import atomic_file
from tasks.tables.records import add_missing_columns, read_samples_table

ENTRY = "diagnosis"
"""Name of the counts in summary.json."""

VERSION = "1"
SCHEMA = pa.schema(
    [
        pa.field("row_id", pa.string(), nullable=False),
        pa.field("diagnosis", pa.string()),
        pa.field("part", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("declines", pa.bool_(), nullable=False),
        pa.field("refusal_by_judge", pa.bool_(), nullable=False),
        pa.field("lacking", pa.list_(pa.string())),
    ],
    metadata={"assay.table": ENTRY, "assay.version": VERSION},
)
"""Schema of diagnosis.parquet, one row per sample. `diagnosis` is null where a row cannot be diagnosed, for `reason`;
`part` is the part of the system that the fault is due to; `lacking` are verdicts that the run has not asked for and
that could have shown another fault."""

_READ = tuple(sorted(JUDGED - {Stage.EXPLANATIONS}))
_UNREAD = ("reply", "panel", "statement", "premise_text", "feedback", "probabilities")
"""Columns that no fact reads."""


@dataclass(slots=True)
class _Counts:
    """Counts over the rows of a run, and the class of each row."""

    row_ids: list[str] = field(default_factory=list)
    classes: list[int] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    lacking: Counter[str] = field(default_factory=Counter)
    refusals: Counter[bool] = field(default_factory=Counter)

    def add(self, row_id: str, found: Diagnosis) -> None:
        self.row_ids.append(row_id)
        self.classes.append(_CODES[found.name or UNDIAGNOSED])
        self.lacking.update(map(str, found.lacking))
        if found.reason is not None:
            self.reasons[found.reason] += 1
        if found.declines:
            self.refusals[found.is_judged_refusal] += 1


_NAMES = (*(each.name for each in CLASSES), UNDIAGNOSED)
_CODES = {name: code for code, name in enumerate(_NAMES)}


def write_diagnosis(
    folder: RunFolder, requests: Sequence[MetricRequest], groups: Mapping[str, str] | None, *, is_served: bool
) -> dict[str, Any]:
    """Write the diagnosis of every row of a run into its folder.

    Args:
        folder: Run folder with the tables of all stages.
        requests: Metrics of the run, which say what verdicts were asked for.
        groups: Row id -> group of rows that are not independent; None if all rows are.
        is_served: True if a language model answered the judge questions.

    Returns:
        The counts for summary.json.
    """
    products = closure(product for request in requests for product in request.products)
    counts = _Counts()
    with atomic_file(folder.path / DIAGNOSIS) as temporary, pq.ParquetWriter(temporary, SCHEMA) as writer:
        for rows in _diagnose_shards(folder, products):
            for row_id, found in rows:
                counts.add(row_id, found)
            writer.write_table(pa.Table.from_pylist([_table_row(row_id, found) for row_id, found in rows], SCHEMA))
    return _summarize(counts, groups, is_served=is_served)


def _diagnose_shards(folder: RunFolder, products: frozenset[Product]) -> Iterator[list[tuple[str, Diagnosis]]]:
    paths = {stage: folder.path / STAGES / f"{stage}.parquet" for stage in _READ}
    stages = {stage: RowGroups(path) for stage, path in paths.items() if path.exists()}
    for shard in read_shards(folder.path / STAGES / f"{Stage.SAMPLES}.parquet"):
        samples = read_samples_table(shard)
        ids = [sample.row_id for sample in samples]
        tables = {stage: _narrow(add_missing_columns(groups.rows(ids), stage)) for stage, groups in stages.items()}
        yield [(each.sample.row_id, diagnose(each, products)) for each in read_evidence(samples, tables, "binary")]


def _narrow(table: pa.Table) -> pa.Table:
    return table.drop_columns([name for name in _UNREAD if name in table.column_names])


def _table_row(row_id: str, found: Diagnosis) -> dict[str, Any]:
    part = None if found.name is None else BY_NAME[found.name].part
    return {
        "row_id": row_id,
        "diagnosis": found.name,
        "part": part,
        "reason": found.reason,
        "declines": found.declines,
        "refusal_by_judge": found.is_judged_refusal,
        "lacking": [str(product) for product in found.lacking],
    }


def _summarize(counts: _Counts, groups: Mapping[str, str] | None, *, is_served: bool) -> dict[str, Any]:
    codes = np.asarray(counts.classes, dtype=np.int8)
    names = None if groups is None else list(group_names(counts.row_ids, groups))
    interval_of = _intervals(codes, names)
    entries = []
    for code, name in enumerate(_NAMES):
        count = int((codes == code).sum())
        share = count / len(codes) if len(codes) else 0.0
        entries.append({"name": name, "count": count, "share": share, "interval": interval_of(code)})
    return {
        "rows": len(codes),
        "classes": entries,
        "reasons": dict(counts.reasons.most_common()),
        "lacking": dict(counts.lacking.most_common()),
        "refusals": {
            "rows": counts.refusals.total(),
            "recognized_by": "judge" if is_served and counts.refusals[True] else "forms",
        },
    }


def _intervals(codes: Any, groups: Sequence[str] | None) -> Callable[[int], dict[str, float] | None]:
    """Return the function from a class to the 95 % interval of its share."""

    def interval(code: int) -> dict[str, float] | None:
        if not len(codes):
            return None
        units = Units.from_values((codes == code).astype(np.float64), groups)
        found = estimate_interval(units, Bounds(0.0, 1.0), SEED)
        return None if found is None else {"low": found.low, "high": found.high}

    return interval
