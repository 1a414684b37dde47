"""Tests of the entities that the weights of a recognizer decide, against those of spaCy with the same weights."""

from typing import Any

import numpy as np
import pytest

from tasks.models.recognizers.entity_decoder import EntityDecoder, _find_distinct

pytestmark = pytest.mark.models

LABELS = ("GPE", "PERSON", "DATE")
WORDS = ("Lee", "it's", "Paris", "n't", "we'll", "1,000", "2026", "May", "\n\n", "may", "PARIS", "e.g.", "-", "cost")

BY_ATTRIBUTES = {
    "@architectures": "spacy.MultiHashEmbed.v2",
    "width": 16,
    "attrs": ["NORM", "SHAPE"],
    "rows": [50, 50],
    "include_static_vectors": False,
}
BY_CHARACTERS = {
    "@architectures": "spacy.CharacterEmbed.v2",
    "width": 16,
    "rows": 50,
    "nM": 8,
    "nC": 4,
    "include_static_vectors": False,
}


def _pipeline(embed: dict[str, Any]) -> Any:
    """Return a pipeline with random weights."""
    spacy = pytest.importorskip("spacy")
    encode = {"@architectures": "spacy.MaxoutWindowEncoder.v2", "width": 16, "window_size": 1, "maxout_pieces": 3}
    model = {
        "@architectures": "spacy.TransitionBasedParser.v2",
        "state_type": "ner",
        "extra_state_tokens": False,
        "hidden_width": 8,
        "maxout_pieces": 2,
        "use_upper": True,
        "tok2vec": {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": {**encode, "depth": 2}},
    }
    pipeline = spacy.blank("en")
    recognizer = pipeline.add_pipe("ner", config={"model": model})
    for label in LABELS:
        recognizer.add_label(label)
    pipeline.initialize()
    random = np.random.default_rng(5)
    for layer in recognizer.model.walk():
        for name in layer.param_names:
            if layer.has_param(name):
                shape = layer.get_param(name).shape
                layer.set_param(name, random.normal(0, 0.5, shape).astype(np.float32))
    return pipeline


@pytest.mark.parametrize("embed", [BY_ATTRIBUTES, BY_CHARACTERS], ids=["attributes", "characters"])
def test_entities_are_those_of_spacy_whatever_gives_tokens_their_vectors(embed: dict[str, Any]) -> None:
    pipeline = _pipeline(embed)
    random = np.random.default_rng(7)
    texts = ["", "Paris", *(" ".join(random.choice(WORDS, size)) for size in random.integers(1, 40, 60))]
    spans = EntityDecoder(pipeline.get_pipe("ner")).spans([pipeline.make_doc(text) for text in texts])
    expected = [[(e.start, e.end, e.label_) for e in document.ents] for document in pipeline.pipe(texts)]
    assert spans == expected
    assert len({label for found in spans for _, _, label in found}) > 1
    assert max(end - start for found in spans for start, end, _ in found) > 1


@pytest.mark.parametrize("embed", [BY_ATTRIBUTES, BY_CHARACTERS], ids=["attributes", "characters"])
def test_vectors_of_tokens_are_those_of_the_model(embed: dict[str, Any]) -> None:
    pipeline = _pipeline(embed)
    documents = [pipeline.make_doc(text) for text in (" ".join(WORDS), "", "Lee cost", " ".join(WORDS[::-1]))]
    component = pipeline.get_pipe("ner")
    vectors = EntityDecoder(component)._tok2vec.predict(documents)
    np.testing.assert_allclose(vectors, component.model.get_ref("tok2vec").predict(documents), rtol=1e-5)


def test_the_vector_of_a_token_alone_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = _pipeline(BY_ATTRIBUTES)
    decoder = EntityDecoder(pipeline.get_pipe("ner"))
    sizes: list[int] = []
    mix = decoder._tok2vec._mix
    monkeypatch.setattr(mix, "_func", _counted(mix._func, sizes))
    decoder.spans([pipeline.make_doc("Lee met Lee"), pipeline.make_doc("Lee met Lou")])
    assert sizes == [3]


def _counted(forward: Any, sizes: list[int]) -> Any:
    def counted(model: Any, rows: Any, is_train: bool) -> Any:
        sizes.append(len(rows))
        return forward(model, rows, is_train)

    return counted


@pytest.mark.parametrize(
    "rows",
    [[[1, 2]], [[7, 1], [5, 1], [7, 1]], [[5, 0], [0, 1], [5, 0]], [[2**64 - 1, 3], [3, 2**64 - 1], [0, 0]]],
    ids=["one", "repeated", "one number for two rows", "large"],
)
def test_distinct_rows(rows: list[list[int]]) -> None:
    given = np.array(rows, np.uint64)
    first, places = _find_distinct(given)
    assert len(first) == len({tuple(row) for row in rows})
    np.testing.assert_array_equal(given[first[places]], given)
