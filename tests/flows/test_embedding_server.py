"""Evaluations with an embedding server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flows.config.loading import load_config
from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from metric_core.errors import ConfigError
from tests.tasks.models.embedders.embedding_server import EmbeddingServer

EXAMPLE = Path(__file__).parents[2] / "examples" / "handbook.jsonl"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    running = EmbeddingServer()
    yield running
    running.stop()


def evaluate(folder: Path, embedder: object) -> Path:
    values = {"source": str(EXAMPLE), "limit": 4, "metrics": "answer_similarity", "embedder": embedder}
    return Path(run_evaluation(RunConfig.model_validate(values | {"out": str(folder / "run")})).folder)


@pytest.mark.prefect
@pytest.mark.usefixtures("prefect_stub")
def test_similarities_follow_from_the_vectors_of_the_server(server: EmbeddingServer, tmp_path: Path) -> None:
    run = evaluate(tmp_path, server.url)
    manifest = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert (manifest["embedder"]["backend"], manifest["embedder"]["model"]) == ("server", "embedder")
    rows = [json.loads(line) for line in EXAMPLE.read_text(encoding="utf-8").splitlines()[:4]]
    scores = {row["row_id"]: row["value"] for row in pq.read_table(run / "scores.parquet").to_pylist()}
    for row in rows:
        (a, b), (c, d) = [(len(row[column]), len(row[column].split())) for column in ("response", "reference")]
        assert scores[row["id"]] == pytest.approx((a * c + b * d) / ((a**2 + b**2) * (c**2 + d**2)) ** 0.5)
    embedded = {text for body in server.bodies for text in body["input"]}
    assert embedded == {"hello"} | {row[column] for row in rows for column in ("response", "reference")}


@pytest.mark.prefect
@pytest.mark.models
@pytest.mark.usefixtures("prefect_stub")
@pytest.mark.parametrize(
    ("embedder", "message"),
    [
        ("server", "embedder.server does not say where it is; set embedder.server.urls"),
        (
            {"backend": "server", "server": {"urls": ["http://127.0.0.1:9"]}, "model": "e5"},
            "embedder.model, which names 'e5', is for huggingface; name the server's model in embedder.server.model",
        ),
    ],
)
def test_missing_or_misplaced_options_are_named(embedder: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        evaluate(tmp_path, embedder)


def test_embedder_may_be_a_word_or_a_server_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_EMBEDDER", "http://localhost:8001")
    embedder = load_config().embedder
    assert embedder.server is not None
    assert (embedder.backend, embedder.server.urls) == ("server", ("http://localhost:8001/v1",))
    assert load_config(overrides={"embedder": {"backend": "minilm"}}).embedder.backend == "minilm"
