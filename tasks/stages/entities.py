"""Find the named entities of references and retrieved contexts, without a judge: the stage `entities`."""

from collections.abc import Sequence
from typing import Any

from metric_core import reasons
from metric_core.records import AnswerStatus, Sample, Side
from metric_core.stages import Product, Stage
from tasks.models.protocol import Models
from tasks.options.judged_settings import StoredSettings
from tasks.options.language_options import LanguageOptions
from tasks.recognizers.protocol import Entity
from tasks.stages.definition import Progress, StageOutput, Tables, stage
from tasks.tables.records import build_table, read_samples_table


class EntitiesSettings(StoredSettings, LanguageOptions):
    """Settings of the stage `entities`.

    Args:
        products: Texts whose entities are found.
    """

    products: tuple[Product, ...]


@stage(Stage.ENTITIES, version=1, reads=(Stage.SAMPLES,))
def entities(tables: Tables, settings: EntitiesSettings, models: Models, progress: Progress) -> StageOutput:
    """Find the entities of each text that a product needs; equal texts are processed once."""
    samples = read_samples_table(tables[Stage.SAMPLES])
    needs_reference = Product.REFERENCE_ENTITIES in settings.products
    needs_contexts = Product.CONTEXT_ENTITIES in settings.products
    texts: dict[str, None] = {}
    for sample in samples:
        if needs_reference and sample.reference:
            texts[sample.reference] = None
        if needs_contexts:
            texts.update(dict.fromkeys(sample.retrieved_contexts or ()))
    progress(0, len(texts))
    recognized = dict(zip(texts, models.recognizer().entities(list(texts)), strict=True))
    progress(len(texts), 0)
    rows: list[dict[str, Any]] = []
    for sample in samples:
        if needs_reference:
            entity_rows = _rows(sample, Side.REFERENCE, None, recognized.get(sample.reference or "", ()))
            rows += entity_rows or [_row_without_entity(sample, Side.REFERENCE, reasons.NO_REFERENCE_ENTITIES)]
        if needs_contexts:
            entity_rows = [
                row
                for i, passage in enumerate(sample.retrieved_contexts or ())
                for row in _rows(sample, Side.CONTEXT, i, recognized[passage])
            ]
            rows += entity_rows or [_row_without_entity(sample, Side.CONTEXT, reasons.NO_CONTEXT_ENTITIES)]
    return StageOutput(build_table(Stage.ENTITIES, rows))


def _rows(sample: Sample, side: Side, passage: int | None, recognized: Sequence[Entity]) -> list[dict[str, Any]]:
    return [
        {
            "row_id": sample.row_id,
            "side": side,
            "passage": passage,
            "text": entity.text,
            "label": entity.label,
            "status": AnswerStatus.ANSWERED,
        }
        for entity in dict.fromkeys(recognized)
    ]


def _row_without_entity(sample: Sample, side: Side, reason: str) -> dict[str, Any]:
    return {"row_id": sample.row_id, "side": side, "status": AnswerStatus.UNDEFINED, "reason": reason}
