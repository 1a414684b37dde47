"""Find the named entities of references and retrieved contexts, without a judge: the stage `entities`.

A metric that asks which entities of the reference the contexts name needs no others. Then the references are read
first, and of the contexts only those in which one of their names may be found: recognizing names takes more time than
anything else that a run computes itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from metric_core import reasons
from metric_core.metrics.context_entity_recall import normalize_entity
from metric_core.records import AnswerStatus, Sample, Side
from metric_core.stages import Product, Stage
from tasks.models.protocol import Models
from tasks.models.recognizers.protocol import Entity, EntityRecognizer, copies_text
from tasks.models.recognizers.wanted_names import WantedNames, letters_of
from tasks.options.judged_settings import StoredSettings
from tasks.options.language_options import LanguageOptions
from tasks.rows.records import build_table, read_samples_table
from tasks.runtime.usage import StageUsage, work_of
from tasks.stages.definition import Progress, StageOutput, Tables, stage


class EntitiesSettings(StoredSettings, LanguageOptions):
    """Settings of the stage `entities`.

    Args:
        products: Texts whose entities are found.
    """

    products: tuple[Product, ...]


@stage(Stage.ENTITIES, version=1, reads=(Stage.SAMPLES,))
def entities(tables: Tables, settings: EntitiesSettings, models: Models, progress: Progress) -> StageOutput:
    """Find the entities of each text that a product needs; equal texts are processed once.

    Of the contexts, all entities for Product.CONTEXT_ENTITIES; else only those that the reference names too.
    """
    samples = read_samples_table(tables[Stage.SAMPLES])
    needs_reference = Product.REFERENCE_ENTITIES in settings.products
    needs_all = Product.CONTEXT_ENTITIES in settings.products
    needs_named = Product.REFERENCE_ENTITIES_IN_CONTEXTS in settings.products and not needs_all
    recognizer = models.recognizer()
    references = [sample.reference for sample in samples if needs_reference and sample.reference]
    of_reference = _recognize(recognizer, references, progress)
    named = [_Named(of_reference.get(sample.reference or "", ())) for sample in samples]
    if needs_named and copies_text(recognizer):
        passages = _passages_with_names(samples, named)
    else:
        passages = [passage for sample in samples if needs_all or needs_named for passage in _contexts(sample)]
    of_passage = _recognize(recognizer, passages, progress)
    rows: list[dict[str, Any]] = []
    for sample, names in zip(samples, named, strict=True):
        if needs_reference:
            entity_rows = _rows(sample, Side.REFERENCE, None, of_reference.get(sample.reference or "", ()))
            rows += entity_rows or [_row_without_entity(sample, Side.REFERENCE, reasons.NO_REFERENCE_ENTITIES)]
        if needs_all:
            entity_rows = _context_rows(sample, of_passage)
            rows += entity_rows or [_row_without_entity(sample, Side.CONTEXT, reasons.NO_CONTEXT_ENTITIES)]
        if needs_named:
            entity_rows = _context_rows(sample, of_passage, names.include)
            rows += entity_rows or [
                _row_without_entity(sample, Side.CONTEXT, reasons.NO_REFERENCE_ENTITIES_IN_CONTEXTS)
            ]
    return StageOutput(build_table(Stage.ENTITIES, rows), StageUsage(models={"recognizer": work_of(recognizer)}))


class _Named:
    """The entities of a reference, as written and by name."""

    def __init__(self, found: Iterable[Entity]) -> None:
        self._texts = {entity.text for entity in found}
        self._names = {normalize_entity(text) for text in self._texts}
        self.wanted = WantedNames(self._names)

    def include(self, entity: Entity) -> bool:
        """Return whether the reference names an entity, in whichever way a metric compares them."""
        return entity.text in self._texts or (normalize_entity(entity.text) or None) in self._names


def _recognize(
    recognizer: EntityRecognizer, texts: Iterable[str], progress: Progress
) -> Mapping[str, Sequence[Entity]]:
    """Return the entities of each distinct text."""
    distinct = list(dict.fromkeys(texts))
    progress(0, len(distinct))
    found = dict(zip(distinct, recognizer.entities(distinct), strict=True))
    progress(len(distinct), 0)
    return found


def _passages_with_names(samples: Iterable[Sample], named: Iterable[_Named]) -> list[str]:
    """Return the contexts in which a recognizer may find an entity that the reference of the same sample names."""
    letters: dict[str, str] = {}
    passages = []
    for sample, names in zip(samples, named, strict=True):
        for passage in _contexts(sample):
            if passage not in letters:
                letters[passage] = letters_of(passage)
            if names.wanted.may_occur(letters[passage]):
                passages.append(passage)
    return passages


def _contexts(sample: Sample) -> Sequence[str]:
    return sample.retrieved_contexts or ()


def _context_rows(
    sample: Sample, of_passage: Mapping[str, Sequence[Entity]], included: Callable[[Entity], bool] | None = None
) -> list[dict[str, Any]]:
    """Return the rows of the included entities of the contexts; those of a context that was not read are not there."""
    return [
        row
        for i, passage in enumerate(_contexts(sample))
        for row in _rows(sample, Side.CONTEXT, i, of_passage.get(passage, ()), included)
    ]


def _rows(
    sample: Sample,
    side: Side,
    passage: int | None,
    recognized: Iterable[Entity],
    included: Callable[[Entity], bool] | None = None,
) -> list[dict[str, Any]]:
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
        if included is None or included(entity)
    ]


def _row_without_entity(sample: Sample, side: Side, reason: str) -> dict[str, Any]:
    return {"row_id": sample.row_id, "side": side, "status": AnswerStatus.UNDEFINED, "reason": reason}
