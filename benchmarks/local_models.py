"""Measure the CPU time of the models in this process, beside the plain way to use them; their values must be equal.

    python -m benchmarks.local_models                      # all 200 rows of the peer benchmark, about a minute

Entities: the plain way lets spaCy read every reference and context, in batches of its own size, on all threads.
Vectors: the plain way gives the texts in their order to a session with all threads, padded to the longest of 32.

Needs the rows of the peer benchmark in `../shared/peer` beside the repository. Of the regenerated questions only the
length matters: they are those of its stub judge.
"""

import argparse
import json
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.targets import at_most, check
from metric_core.metrics.registry import resolve
from metric_core.stages import Product, Stage
from tasks.models.embedders.minilm import MODEL, TOKENIZER, MiniLm
from tasks.models.recognizers.protocol import Entity, EntityRecognizer
from tasks.models.recognizers.spacy_pipeline import DEFAULT_MODEL, SpacyPipeline
from tasks.rows.records import build_table, read_samples_table
from tasks.rows.sample_evidence import read_evidence
from tasks.stages.entities import EntitiesSettings, entities

ROWS = Path(__file__).resolve().parents[2] / "shared" / "peer" / "bench_rows.jsonl"
ENTITIES_MS, EMBEDDER_MS, VECTOR_DIFFERENCE = 20.0, 45.0, 1e-5
"""Targets: CPU time per row, and the largest difference of a number of a vector."""
_PLAIN_BATCH = 32

T = TypeVar("T")
Vectors = NDArray[np.float32]


class PlainPipeline:
    """spaCy itself, as its documentation shows it.

    Args:
        pipeline: The loaded pipeline.
    """

    def __init__(self, pipeline: Any) -> None:
        self.identity = SpacyPipeline().identity
        self._pipeline = pipeline

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        """Return the entities of each text."""
        idle = [name for name in self._pipeline.pipe_names if name != "ner"]
        return [
            [Entity(entity.text.strip(), entity.label_) for entity in document.ents]
            for document in self._pipeline.pipe(texts, disable=idle)
        ]


def main() -> None:
    """Measure both sides of both models, and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=3, help="the smallest time of so many is printed")
    options = parser.parse_args()
    if not ROWS.is_file():
        sys.exit(f"the rows of the benchmark are missing: no {ROWS}")
    rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()[: options.rows]]
    print(f"CPU ms per row of {len(rows)} rows; models loaded, nothing cached")
    _measure_entities(rows, options.repeat)
    _measure_vectors(rows, options.repeat)


def _measure_entities(rows: Sequence[dict[str, Any]], repeat: int) -> None:
    import spacy  # noqa: PLC0415 the plain side

    table = build_table(Stage.SAMPLES, [{"row_id": f"row-{i}", "row_number": i, **row} for i, row in enumerate(rows)])
    pipeline, plain = SpacyPipeline(), PlainPipeline(spacy.load(DEFAULT_MODEL))
    pipeline.entities([row["reference"] for row in rows[:32]])  # loads the pipeline, and compares it with spaCy
    named = (Product.REFERENCE_ENTITIES, Product.REFERENCE_ENTITIES_IN_CONTEXTS)
    whole = (Product.REFERENCE_ENTITIES, Product.CONTEXT_ENTITIES)
    before, plain_table = _least_cpu(partial(_find_entities, table, plain, whole), repeat)
    after, lazy_table = _least_cpu(partial(_find_entities, table, pipeline, named), repeat)
    everything, whole_table = _least_cpu(partial(_find_entities, table, pipeline, whole), 1)
    _print("entities", before, after, len(rows), ENTITIES_MS)
    print(f"entities  all of all contexts: {1000 * everything / len(rows):.1f}")
    equal = _recalls(table, plain_table) == _recalls(table, lazy_table) and plain_table.equals(whole_table)
    print(check("equal entities, and equal scores of context_entity_recall", is_met=equal))


def _find_entities(table: pa.Table, recognizer: EntityRecognizer, products: tuple[Product, ...]) -> pa.Table:
    models: Any = SimpleNamespace(recognizer=lambda: recognizer)
    return entities.compute({Stage.SAMPLES: table}, EntitiesSettings(products=products), models).table


def _recalls(table: pa.Table, found: pa.Table) -> list[tuple[str, float | None]]:
    tables = {Stage.SAMPLES: table, Stage.ENTITIES: found}
    request = resolve("context_entity_recall").request({})
    evidence = read_evidence(read_samples_table(table), tables, "binary")
    return [(row.sample.row_id, request.metric.compute(request, row).value) for row in evidence]


def _measure_vectors(rows: Sequence[dict[str, Any]], repeat: int) -> None:
    texts = [text for row in rows for text in (row["user_input"], row["response"], row["reference"], *_questions(row))]
    embedder, plain = MiniLm(), _plain_embedder()
    embedder.embed(texts[:1])
    before, plain_vectors = _least_cpu(partial(plain, texts), repeat)
    after, vectors = _least_cpu(partial(embedder.embed, texts), repeat)
    _print("vectors", before, after, len(rows), EMBEDDER_MS)
    difference = float(np.abs(vectors - plain_vectors).max())
    print(at_most("largest difference of a number", difference, VECTOR_DIFFERENCE))


def _questions(row: dict[str, Any]) -> list[str]:
    """Return three questions in the length of those that the stub judge regenerates."""
    items = (zlib.crc32(f"{row['response']} {k}".encode()) % 10**6 for k in range(3))
    return [f"Stub claim {k + 1} about item {item:06d}." for k, item in enumerate(items)]


def _plain_embedder() -> Callable[[Sequence[str]], Vectors]:
    """Return the embedder as the documentation of ONNX Runtime shows it."""
    from onnxruntime import InferenceSession  # noqa: PLC0415 the plain side
    from tokenizers import Tokenizer  # noqa: PLC0415

    tokenizer = Tokenizer.from_file(str(TOKENIZER.verify()))
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    session = InferenceSession(MODEL.verify(), providers=["CPUExecutionProvider"])

    def embed(texts: Sequence[str]) -> Vectors:
        vectors = []
        for start in range(0, len(texts), _PLAIN_BATCH):
            encodings = tokenizer.encode_batch(list(texts[start : start + _PLAIN_BATCH]))
            ids = np.array([encoding.ids for encoding in encodings], np.int64)
            mask = np.array([encoding.attention_mask for encoding in encodings], np.int64)
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            sums = (session.run(None, inputs)[0] * mask[..., None]).sum(axis=1)
            vectors.append(sums / np.linalg.norm(sums, axis=1, keepdims=True))
        return np.concatenate(vectors).astype(np.float32)

    return embed


def _least_cpu(work: Callable[[], T], repeat: int) -> tuple[float, T]:
    """Return the least CPU time of a process for a piece of work, in seconds, and its result."""
    least = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        result = work()
        least = min(least, time.process_time() - start)
    return least, result


def _print(name: str, before: float, after: float, rows: int, target: float) -> None:
    plain, ours = 1000 * before / rows, 1000 * after / rows
    print(f"{name:<9} plain {plain:.1f}, rag-assay {ours:.1f}: {plain / ours:.1f} times less")
    print(at_most(f"{name}: CPU ms per row", ours, target))


if __name__ == "__main__":
    main()
