"""Count the diagnoses of a run by class, for its summary."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from metric_core.declarations.diagnosis_class import DiagnosisClass, SystemPart
from metric_core.declarations.metric import MetricRequest
from metric_core.diagnosis.classes import UNDIAGNOSED, classes_of
from metric_core.refusals.refusal_kinds import RefusalKind
from metric_core.statistics.bounded_means import Bounds, estimate_interval
from metric_core.statistics.resampling import SEED, Interval, Units
from tasks.findings.diagnosis.diagnosis_counts import ClassCount, DiagnosisCounts, RefusalCounts
from tasks.runs.row_grouping import group_names
from tasks.runs.run_folder import DIAGNOSIS, RunFolder, count_values

_UNKNOWN = "unknown"


def count_diagnoses(
    folder: RunFolder, requests: Sequence[MetricRequest], groups: Mapping[str, str] | None, *, is_served: bool
) -> DiagnosisCounts:
    """Return the counts of the classes in the table of diagnoses, for summary.json.

    Args:
        folder: Run folder with its table of diagnoses.
        requests: Metrics of the run, which may come with classes.
        groups: Row id -> group of rows that are not independent; None if all rows are.
        is_served: True if a language model answered the judge questions.
    """
    classes = (*classes_of(requests), DiagnosisClass(name=UNDIAGNOSED, meaning=""))
    names = pa.array([each.name for each in classes], pa.string())
    codes: list[Any] = []
    row_ids: list[str] = []
    points = Counter[str]()
    reasons, lacking, refusals, kinds = Counter[str](), Counter[str](), Counter[bool](), Counter[str]()
    with pq.ParquetFile(folder.path / DIAGNOSIS) as file:
        columns = ["diagnosis", "reason", "lacking", "declines", "refusal_kind", "refusal_by_judge"]
        columns += [name for name in ("key_points", "lost_points") if name in file.schema_arrow.names]
        for batch in file.iter_batches(columns=columns if groups is None else ["row_id", *columns]):
            found = pc.index_in(batch.column("diagnosis"), value_set=names)
            codes.append(pc.fill_null(found, len(classes) - 1).cast(pa.int8()).to_numpy(zero_copy_only=False))
            if groups is not None:
                row_ids += batch.column("row_id").to_pylist()
            reasons.update(count_values(batch.column("reason")))
            lacking.update(count_values(batch.column("lacking").flatten()))
            refusals.update(count_values(batch.column("refusal_by_judge").filter(batch.column("declines"))))
            kinds.update(count_values(batch.column("refusal_kind")))
            if "key_points" in columns:
                points["points"] += pc.sum(batch.column("key_points")).as_py() or 0
                lost = pc.struct_field(pc.list_flatten(batch.column("lost_points")), "part")
                points.update(pc.fill_null(lost, _UNKNOWN).to_pylist())
    joined = np.concatenate(codes) if codes else np.zeros(0, np.int8)
    interval_of = _intervals(joined, None if groups is None else list(group_names(row_ids, groups)))
    entries = []
    for code, each in enumerate(classes):
        count = int((joined == code).sum())
        share = count / len(joined) if len(joined) else 0.0
        entry = ClassCount(name=each.name, count=count, share=share, interval=interval_of(code))
        entries.append(entry.extend(meaning=each.meaning, part=each.part, is_lost=each.is_lost))
    parts = (*SystemPart, _UNKNOWN)
    counted = {"key_points": {name: points[name] for name in ("points", *parts)}} if points["points"] else {}
    return DiagnosisCounts(
        rows=len(joined),
        classes=tuple(entries),
        **counted,
        reasons=dict(reasons.most_common()),
        lacking=dict(lacking.most_common()),
        refusals=RefusalCounts(
            rows=refusals.total(),
            kinds={kind: kinds[kind] for kind in RefusalKind},
            recognized_by="judge" if is_served and refusals[True] else "forms",
        ),
    )


def _intervals(codes: Any, groups: Sequence[str] | None) -> Callable[[int], Interval | None]:
    """Return the function from a class to the 95 % interval of its share."""

    def interval(code: int) -> Interval | None:
        if not len(codes):
            return None
        units = Units.from_values((codes == code).astype(np.float64), groups)
        return estimate_interval(units, Bounds(0.0, 1.0), SEED)

    return interval
