"""Find for each row what happened to its answer: the stage `diagnosis`. The classes are in `metric_core.diagnosis`."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from metric_core.declarations.diagnosis_class import SystemPart
from metric_core.diagnosis.classes import Diagnosis, classes_of, diagnose
from metric_core.diagnosis.lost_points import find_lost_points
from metric_core.evidence import Evidence
from metric_core.records import Side
from metric_core.schemas import EVIDENCE_COLUMNS
from metric_core.stages import JUDGED, Product, Stage
from tasks.models.protocol import Models
from tasks.options.metric_settings import MetricSettings
from tasks.options.settings import Settings
from tasks.rows.records import build_table, read_asked_samples
from tasks.rows.sample_evidence import read_evidence
from tasks.stages.definition import Progress, StageOutput, Tables, stage

_READ = tuple(sorted(JUDGED - {Stage.EXPLANATIONS}))


class DiagnosisSettings(Settings):
    """Settings of the stage `diagnosis`.

    Args:
        planned: Products that the run asks for, with those that they are computed from.
        metrics: Metrics that come with a class.
    """

    planned: tuple[Product, ...]
    metrics: tuple[MetricSettings, ...] = ()


@stage(
    Stage.DIAGNOSIS,
    version=3,
    reads=(Stage.SAMPLES, *_READ),
    columns=EVIDENCE_COLUMNS,
    cached=False,
    always=True,
)
def diagnosis(tables: Tables, settings: DiagnosisSettings, models: Models, progress: Progress) -> StageOutput:
    """Diagnose every row from the verdicts that the run has asked for; a row without a diagnosis has a reason."""
    del models
    samples = read_asked_samples(tables)
    progress(0, len(samples))
    products = frozenset(settings.planned)
    requests = [metric.request() for metric in settings.metrics]
    parts = {each.name: each.part for each in classes_of(requests)}
    rows = []
    for evidence in read_evidence(samples, tables, "binary"):
        points = evidence.claims.get(Side.KEY_POINT) if Product.KEY_POINTS_BY_RESPONSE in products else None
        counts = {} if points is None else _count_points(points, evidence)
        rows.append({**_row(evidence.sample.row_id, diagnose(evidence, products, requests), parts), **counts})
    progress(len(samples), 0)
    return StageOutput(build_table(Stage.DIAGNOSIS, rows))


def _count_points(points: Mapping[str, str], evidence: Evidence) -> Mapping[str, Any]:
    texts = "\n".join(points.values())
    return {
        "key_points": len(points),
        "lost_points": [asdict(point) for point in find_lost_points(evidence)],
        "points_digest": hashlib.sha256(texts.encode("utf-8", "surrogatepass")).hexdigest()[:16],
    }


def _row(row_id: str, found: Diagnosis, parts: Mapping[str, SystemPart | None]) -> Mapping[str, Any]:
    return {
        "row_id": row_id,
        "diagnosis": found.name,
        "part": None if found.name is None else parts[found.name],
        "reason": found.reason,
        "declines": found.declines,
        "refusal_kind": found.refusal_kind,
        "refusal_by_judge": found.is_judged_refusal,
        "lacking": [str(product) for product in found.lacking],
    }
