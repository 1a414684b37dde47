"""Compute one score per row and metric from the tables of all stages: the stage `aggregation`."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic import Field, field_serializer, field_validator

from metric_core.calibration.platt import ProbabilityMap
from metric_core.evidence import Evidence
from metric_core.schemas import EVIDENCE_COLUMNS
from metric_core.stages import PRODUCT_STAGES, Stage
from tasks.models.protocol import Models
from tasks.options.metric_options import VerdictOptions
from tasks.options.metric_settings import MetricSettings
from tasks.rows.records import build_table, read_asked_samples
from tasks.rows.sample_evidence import (
    AskedProbabilities,
    map_probabilities,
    read_asked_probabilities,
    read_evidence,
)
from tasks.stages.definition import Progress, StageOutput, Tables, stage


class AggregationSettings(VerdictOptions):
    """Settings of the stage `aggregation`.

    Args:
        maps: Metric key -> calibration map of the judge's probabilities, with `verdict = "probability"`.
    """

    only_options = False

    metrics: tuple[MetricSettings, ...]
    maps: dict[str, ProbabilityMap] = Field(default_factory=dict)

    @field_validator("maps", mode="before")
    @classmethod
    def _parse_maps(cls, maps: Any) -> Any:
        """Accept the form that `_serialize_maps` writes."""
        if not isinstance(maps, list | tuple):
            return maps
        return {entry["metric"]: {name: entry[name] for name in entry if name != "metric"} for entry in maps}

    @field_serializer("maps")
    def _serialize_maps(self, maps: Mapping[str, ProbabilityMap]) -> list[dict[str, Any]]:
        # The stage's fingerprint contains this form.
        return [{"metric": key, **asdict(probability_map)} for key, probability_map in maps.items()]


@stage(
    Stage.AGGREGATION,
    version=1,
    reads=(Stage.SAMPLES, *PRODUCT_STAGES),
    columns=EVIDENCE_COLUMNS,
    cached=False,
    always=True,
)
def aggregation(tables: Tables, settings: AggregationSettings, models: Models, progress: Progress) -> StageOutput:
    """Score every metric on every row; a cell without a value has a reason."""
    del models
    samples = read_asked_samples(tables)
    requests = [metric.request() for metric in settings.metrics]
    progress(0, len(samples))
    asked = read_asked_probabilities(tables) if settings.maps else {}
    rows = []
    for evidence in read_evidence(samples, tables, settings.verdict or "binary"):
        for request in requests:
            score = request.score(_map_evidence(evidence, asked, settings.maps.get(request.key)))
            rows.append(
                {
                    "row_id": evidence.sample.row_id,
                    "metric": request.key,
                    "value": score.value,
                    "status": score.status,
                    "reason": score.reason,
                    "label": score.label,
                }
            )
    progress(len(samples), 0)
    return StageOutput(build_table(Stage.AGGREGATION, rows))


def _map_evidence(
    evidence: Evidence, asked: Mapping[str, AskedProbabilities], probability_map: ProbabilityMap | None
) -> Evidence:
    if probability_map is None:
        return evidence
    return map_probabilities(evidence, asked.get(evidence.sample.row_id, {}), probability_map)
