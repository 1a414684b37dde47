"""Tests of Hugging Face models: the errors without the extra, and the vectors and scores with it."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from metric_core import reasons
from metric_core.errors import EmbedderError, MissingDependencyError
from tasks.models.embedders.huggingface_embedder import HuggingFaceCrossEncoder, HuggingFaceEmbedder


def test_an_embedder_without_the_extra_names_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'rag-assay\[transformers\]'"):
        HuggingFaceEmbedder("any/model").embed(["text"])


def test_a_cross_encoder_without_the_extra_names_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"torch.*pip install 'rag-assay\[transformers\]'"):
        HuggingFaceCrossEncoder("any/model").similarity([("a", "b")])


def test_a_model_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_model: str, revision: str) -> None:
        raise OSError(f"no such repository at {revision}")

    transformers = SimpleNamespace(AutoConfig=SimpleNamespace(from_pretrained=refuse))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    with pytest.raises(
        EmbedderError, match=r"'any/model' \(revision 'v2'\) cannot be loaded: no such repository at v2"
    ):
        assert HuggingFaceEmbedder("any/model", "v2").identity


@pytest.fixture
def tiny_model(tmp_path: Path) -> Path:
    """A BERT of two layers with random weights and a vocabulary of a few words."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc")
    transformers.BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=7, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, num_labels=1
    )
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path)
    return tmp_path


def test_embeddings_are_unit_vectors_independent_of_their_batch(tiny_model: Path) -> None:
    embedder = HuggingFaceEmbedder(str(tiny_model))
    together = embedder.embed(["a b c", "a", "", "a b c"])
    assert together.shape == (4, 8)
    assert (together**2).sum(axis=1) == pytest.approx([1.0] * 4, abs=1e-5)
    assert together[1] == pytest.approx(embedder.embed(["a"])[0], abs=1e-5)
    assert (together[0] == together[3]).all()


def test_a_cross_encoder_gives_a_share_for_each_pair(tiny_model: Path) -> None:
    encoder = HuggingFaceCrossEncoder(str(tiny_model))
    scores = encoder.similarity([("a", "b"), ("b", "a c"), ("a", "b")])
    assert scores.shape == (3,)
    assert ((scores > 0) & (scores < 1)).all()
    assert scores[0] == scores[2]


def test_no_text_is_truncated(tiny_model: Path) -> None:
    embedder = HuggingFaceEmbedder(str(tiny_model))
    start = "a b " * 400
    one, other = embedder.embed([start + "a a a a", start + "c c c c"])
    assert [covered.windows for covered in embedder.coverage([start, "a b c"])] == [2, 1]
    assert (one**2).sum() == pytest.approx(1.0, abs=1e-5)
    assert not np.allclose(one, other, atol=1e-6)


def test_a_text_without_known_tokens_has_no_vector_but_a_reason(tiny_model: Path) -> None:
    embedder = HuggingFaceEmbedder(str(tiny_model))
    assert not embedder.embed(["xyz"]).any()
    assert [covered.problem for covered in embedder.coverage(["xyz", "a b"])] == [reasons.UNKNOWN_SCRIPT, None]


def test_a_pair_longer_than_the_cross_encoder_reads_has_no_score_but_a_reason(tiny_model: Path) -> None:
    scorer, pairs = HuggingFaceCrossEncoder(str(tiny_model)), [("a " * 300, "b " * 300), ("a", "b")]
    assert np.isnan(scorer.similarity(pairs)).tolist() == [True, False]
    assert [covered.problem for covered in scorer.coverage(pairs)] == [reasons.TOO_LONG_FOR_CROSS_ENCODER, None]
