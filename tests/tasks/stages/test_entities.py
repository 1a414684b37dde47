"""The stage `entities`: which texts are read, and that what is not read changes no score."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from metric_core import reasons
from metric_core.metrics.registry import resolve
from metric_core.records import Sample
from metric_core.stages import Product, Stage
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cached_models import CachedRecognizer
from tasks.models.recognizers.protocol import Entity, RecognizerIdentity
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline
from tasks.rows.records import read_samples_table
from tasks.rows.sample_evidence import read_evidence
from tasks.stages.definition import StageOutput
from tasks.stages.entities import EntitiesSettings, entities
from tests.tasks.builders import GivenModels, cells, run_stage, samples_table

NAMED = (Product.REFERENCE_ENTITIES, Product.REFERENCE_ENTITIES_IN_CONTEXTS)
ALL = (*NAMED, Product.CONTEXT_ENTITIES)


class Capitals:
    """Takes each word in capitals for an entity, and records what it reads."""

    identity = RecognizerIdentity("test", "capitals", "1")

    def __init__(self, copies_text: bool = True) -> None:
        self.copies_text = copies_text
        self.read: list[str] = []

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        self.read += texts
        return [[Entity(word, "NAME") for word in text.split() if word.isupper()] for text in texts]


def run(table: pa.Table, recognizer: Any, products: Sequence[Product] = NAMED) -> StageOutput:
    models = GivenModels(given_recognizer=recognizer)
    return run_stage(entities, {Stage.SAMPLES: table}, EntitiesSettings(products=tuple(products)), models)


TABLE = samples_table(
    {"reference": "NATO and the EU", "retrieved_contexts": ["the NATO and UN", "nothing", "the UN", "Eu's NATO-EU"]},
    {"reference": "nobody", "retrieved_contexts": ["the NATO and UN"]},
    {"reference": "NATO and the EU", "retrieved_contexts": []},
)


def test_contexts_in_which_no_name_of_the_reference_occurs_are_not_read() -> None:
    recognizer = Capitals()
    table = run(TABLE, recognizer).table
    assert recognizer.read == ["NATO and the EU", "nobody", "the NATO and UN", "Eu's NATO-EU"]
    assert cells(table.filter(pa.compute.field("side") == "context"), "row_id", "passage", "text", "reason") == [
        ("row-1", 0, "NATO", None),
        ("row-2", None, None, reasons.NO_REFERENCE_ENTITIES_IN_CONTEXTS),
        ("row-3", None, None, reasons.NO_REFERENCE_ENTITIES_IN_CONTEXTS),
    ]


def test_the_work_of_the_recognizer_is_in_the_usage(tmp_path: Path) -> None:
    cache = AnswerCache(f"sqlite:///{tmp_path / 'answers.db'}")
    for texts in (4, 0):
        usage = run(TABLE, CachedRecognizer(Capitals(), cache)).usage
        assert usage.models["recognizer"].texts == texts


def test_a_recognizer_that_does_not_say_that_it_copies_the_text_reads_everything() -> None:
    lazy, full = Capitals(), Capitals(copies_text=False)
    assert run(TABLE, lazy).table.equals(run(TABLE, full).table)
    assert set(full.read) - set(lazy.read) == {"nothing", "the UN"}


def test_a_metric_that_needs_all_entities_gets_them() -> None:
    recognizer = Capitals()
    found = cells(run(TABLE, recognizer, ALL).table.slice(0, 7), "side", "passage", "text")
    assert found[2:6] == [("context", 0, "NATO"), ("context", 0, "UN"), ("context", 2, "UN"), ("context", 3, "NATO-EU")]
    assert len(recognizer.read) == 6


@pytest.mark.models
def test_scores_are_those_of_all_entities() -> None:
    texts = [
        "The Taj Mahal in Agra was built by Shah Jahan in 1631 for Mumtaz Mahal.",
        "Shah Jahan's wife, Mumtaz Mahal, died in June 1631 in Burhanpur.",
        "The U.S. Navy's fleet left Norfolk, Virginia on Monday; Admiral John Smith commanded it.",
        "Norfolk is a city in Virginia. The US Navy has a base there since 1917.",
        "About 25,000 employees of Siemens AG in Munich work from home on Fridays.",
        "M\u00fcnchen's Siemens employs 25,000 people. Friday is free.",
        "It rained all day and nobody went outside.",
    ]
    rows = [{"reference": one, "retrieved_contexts": [t for t in texts if t != one]} for one in texts]
    table = samples_table(*rows)
    pipeline = SpacyPipeline()
    scores = [_scores(table, run(table, pipeline, products).table) for products in (NAMED, ALL)]
    assert scores[0] == scores[1]
    assert len({value for value in scores[0] if value is not None}) > 2


def _scores(table: pa.Table, found: pa.Table) -> list[float | None]:
    samples: list[Sample] = read_samples_table(table)
    evidence = read_evidence(samples, {Stage.SAMPLES: table, Stage.ENTITIES: found}, "binary")
    requests = [resolve("context_entity_recall").request({"match": match}) for match in ("normalized", "exact")]
    return [request.metric.compute(request, row).value for row in evidence for request in requests]
