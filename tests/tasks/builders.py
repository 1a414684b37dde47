"""Builds small inputs for stages: samples tables, and scripts of judge answers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from metric_core.stages import Stage
from tasks.models.embedders.protocol import CrossEncoder, Embedder
from tasks.models.judges.protocol import Judge
from tasks.models.protocol import Models
from tasks.models.recognizers.protocol import EntityRecognizer
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline
from tasks.opening.run_models import RunModels
from tasks.options.judge_options import JudgeSettings
from tasks.options.settings import Settings
from tasks.rows.records import build_table
from tasks.stages.definition import StageDefinition, StageOutput, Tables


def samples_table(*rows: Mapping[str, Any]) -> pa.Table:
    """A samples table; rows without an id are called row-1, row-2, ..."""
    numbered = [{"row_id": f"row-{number}", "row_number": number, **row} for number, row in enumerate(rows, start=1)]
    return build_table(Stage.SAMPLES, numbered)


def script(folder: Path, *entries: Mapping[str, Any]) -> JudgeSettings:
    """Settings of a scripted judge that gives these answers."""
    path = folder / "script.json"
    path.write_text(json.dumps(list(entries)), encoding="utf-8")
    return JudgeSettings(backend="scripted", script=str(path))


def says(kind: str, *texts: str, answer: Any) -> dict[str, Any]:
    """An entry of a script: the answer to questions of a kind that carry the texts."""
    return {"kind": kind, "texts": list(texts), "answer": answer}


def fails(kind: str, *texts: str, reason: str = "the reply was cut off") -> dict[str, Any]:
    """An entry of a script: questions of a kind that carry the texts get no usable answer."""
    return {"kind": kind, "texts": list(texts), "failed": reason}


@dataclass(frozen=True)
class GivenModels:
    """The models that a test gives to a stage; a stage that wants another one fails."""

    given_judge: Judge | None = None
    given_embedder: Embedder | None = None
    given_cross_encoder: CrossEncoder | None = None
    given_recognizer: EntityRecognizer | None = None
    given_pipeline: SpacyPipeline | None = None

    def judge(self) -> Judge:
        assert self.given_judge is not None
        return self.given_judge

    def embedder(self) -> Embedder:
        assert self.given_embedder is not None
        return self.given_embedder

    def cross_encoder(self) -> CrossEncoder:
        assert self.given_cross_encoder is not None
        return self.given_cross_encoder

    def recognizer(self) -> EntityRecognizer:
        assert self.given_recognizer is not None
        return self.given_recognizer

    def pipeline(self) -> SpacyPipeline:
        assert self.given_pipeline is not None
        return self.given_pipeline


def run_stage(
    definition: StageDefinition[Any], tables: Tables, settings: Settings, models: Models | None = None
) -> StageOutput:
    """The output of a stage; without models, those that the settings name are opened."""
    return definition.compute(tables, settings, models or RunModels().select(settings))


def cells(table: pa.Table, *columns: str) -> Sequence[tuple[Any, ...]]:
    """The rows of a table as tuples of the named columns."""
    return [tuple(row[column] for column in columns) for row in table.to_pylist()]
