"""A table's key has everything that determines the table: models in folders by what lies there, and both encoders."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import spacy

from metric_core.question_kinds import KindGroup
from metric_core.stages import Product, Stage
from tasks.engine.fingerprint import settings_fingerprint
from tasks.engine.registry import STAGES
from tasks.models.embedders.huggingface_embedder import HuggingFaceEmbedder
from tasks.models.embedders.protocol import EmbedderIdentity
from tasks.models.judges.protocol import Judge
from tasks.models.judges.routed_judge import RoutedJudge
from tasks.models.protocol import Models
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline
from tasks.opening.run_models import RunModels
from tasks.options.embedder_options import EmbedderSettings
from tasks.runtime.model_folder import folder_revision
from tasks.stages.similarity import SimilaritySettings
from tasks.stages.verdicts import VerdictsSettings
from tests.tasks.models.judges.test_routed_judge import Named


def test_fingerprint_of_a_folder_follows_its_content(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "model.bin").write_bytes(b"one")
    (tmp_path / "config.json").write_text("{}")
    first = folder_revision(tmp_path)
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "lock").touch()
    assert folder_revision(tmp_path) == first
    (tmp_path / "weights" / "model.bin").write_bytes(b"two")
    second = folder_revision(tmp_path)
    (tmp_path / "weights" / "model.bin").rename(tmp_path / "model.bin")
    assert len({first, second, folder_revision(tmp_path)}) == 3


def test_retrained_pipeline_has_another_fingerprint(tmp_path: Path) -> None:
    folder = tmp_path / "pipeline"
    spacy.blank("en").to_disk(folder)
    first = SpacyPipeline(str(folder)).identity
    changed = spacy.blank("en")
    changed.add_pipe("entity_ruler").add_patterns([{"label": "ORG", "pattern": "Assay"}])  # type: ignore[attr-defined]
    changed.to_disk(folder)
    assert SpacyPipeline(str(folder)).identity.revision != first.revision


def test_retrained_embedder_has_another_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = SimpleNamespace(from_pretrained=lambda *_, **__: SimpleNamespace(hidden_size=8, _commit_hash=None))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(AutoConfig=config))
    (tmp_path / "model.bin").write_bytes(b"one")
    first = HuggingFaceEmbedder(str(tmp_path)).identity
    (tmp_path / "model.bin").write_bytes(b"two")
    assert HuggingFaceEmbedder(str(tmp_path)).identity.revision != first.revision
    assert HuggingFaceEmbedder("owner/model", "v2").identity.revision == "v2"


def test_a_cross_encoder_counts_by_its_commit_where_it_is_used() -> None:
    commit = ["one"]

    def models(settings: SimilaritySettings) -> Models:
        found: Any = RunModels().select(settings)
        identity = EmbedderIdentity("huggingface", "cross", commit[0], 1)
        found.cross_encoder = lambda: SimpleNamespace(identity=identity)
        selected: Models = found
        return selected

    embedder = EmbedderSettings(cross_encoder="cross")

    def keys() -> list[str]:
        products = (Product.ANSWER_SIMILARITY, Product.ANSWER_SIMILARITY_BY_CROSS_ENCODER)
        wanted = [SimilaritySettings(products=products[:count], embedder=embedder) for count in (1, 2)]
        return [settings_fingerprint(settings, models(settings)) for settings in wanted]

    before = keys()
    commit[0] = "two"
    after = keys()
    assert (before[0] == after[0], before[1] == after[1]) == (True, False)


def test_only_judges_that_are_asked_are_part_of_the_key_of_verdicts() -> None:
    def key(judge: Judge, *products: Product) -> str:
        settings = VerdictsSettings(products=products)
        models: Any = SimpleNamespace(judge=lambda: judge, pipeline=RunModels().select(settings).pipeline)
        return settings_fingerprint(settings, models, STAGES[Stage.VERDICTS].asks)

    writer, other, verifier = Named("writer"), Named("other"), Named("verifier", {"verdict"})
    on_claims, useful = Product.RESPONSE_CLAIMS_BY_CONTEXTS, Product.USEFULNESS_FOR_REFERENCE
    before, after = (RoutedJudge(default, {KindGroup.VERDICTS: verifier}) for default in (writer, other))
    assert key(before, on_claims) == key(after, on_claims) == key(verifier, on_claims)
    assert key(before, useful) == key(writer, useful) != key(after, useful)
    both = {key(judge, on_claims, useful) for judge in (before, after, writer, verifier)}
    assert len(both) == 4
    swapped = RoutedJudge(writer, {KindGroup.VERDICTS: other})
    assert key(swapped, on_claims) == key(other, on_claims) != key(before, on_claims)
