"""Embedders and cross-encoders from the Hugging Face Hub or a local folder; needs the extra `transformers`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metric_core import reasons
from metric_core.errors import EmbedderError
from tasks.models.embedders.protocol import EmbedderIdentity, TextCoverage
from tasks.models.embedders.unknown_text import find_vector_problem
from tasks.models.embedders.windows import split_evenly
from tasks.runtime.model_folder import folder_revision
from tasks.runtime.transformers_packages import require_transformers

_BATCH_SIZE = 32
_HELLO = "hello"


class HuggingFaceEmbedder:
    """An embedder with any encoder model: the mean of the token vectors, normalized to length 1.

    The model is loaded at the first use, on a GPU if available. A text longer than the model reads at once is covered
    by windows of equal size, and its vector is the mean of the token vectors of all windows. A text whose letters the
    tokenizer does not know gets a zero vector; see `find_vector_problem`. An empty text is embedded as a space.
    Thread-safe.

    Args:
        model: Name on the Hub or path of a local folder.
        revision: Branch, tag or commit on the Hub.
    """

    def __init__(self, model: str, revision: str = "main") -> None:
        self._encoder = _Encoder(model, revision, "AutoModel")

    @property
    def identity(self) -> EmbedderIdentity:
        """The identity of the model."""
        return self._encoder.identity

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of shape (len(texts), dimensions), in order. Equal texts are embedded once."""
        distinct = list(dict.fromkeys(text or " " for text in texts))
        windows = [
            (i, window)
            for i, (text, tokens) in enumerate(zip(distinct, self._encoder.tokenize(distinct), strict=True))
            if tokens.find_problem(text) is None
            for window in tokens.windows
        ]
        sums = np.zeros((len(distinct), self.identity.dimensions), dtype=np.float64)
        for rows, inputs, output in self._encoder.forward_windows([window for _, window in windows]):
            mask = inputs["attention_mask"].unsqueeze(-1).to(output.last_hidden_state.dtype)
            summed = (output.last_hidden_state * mask).sum(dim=1).double().cpu().numpy()
            np.add.at(sums, [windows[row][0] for row in rows], summed)
        # The mean points in the direction of the sum.
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        vectors = (sums / np.where(norms, norms, 1.0)).astype(np.float32)
        position = {text: i for i, text in enumerate(distinct)}
        return vectors[[position[text or " "] for text in texts]]

    def coverage(self, texts: Sequence[str]) -> list[TextCoverage]:
        """Return the number of windows of each text, and why it has no vector if so."""
        found = self._encoder.tokenize(texts)
        return [
            TextCoverage(len(tokens.windows), tokens.find_problem(text))
            for text, tokens in zip(texts, found, strict=True)
        ]


class HuggingFaceCrossEncoder:
    """A scorer of text pairs with a one-output sequence classifier, such as the cross-encoders trained on STS.

    Args:
        model: Name on the Hub or path of a local folder.
        revision: Branch, tag or commit on the Hub.
    """

    def __init__(self, model: str, revision: str = "main") -> None:
        self._encoder = _Encoder(model, revision, "AutoModelForSequenceClassification")

    @property
    def identity(self) -> EmbedderIdentity:
        """The identity of the model."""
        return self._encoder.identity

    def similarity(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Return the sigmoid of the model's output per pair, shape (len(pairs),), in the order of the pairs.

        It is NaN for a pair that the model cannot read; `coverage` says why.
        """
        distinct = list(dict.fromkeys(pairs))
        scores = np.full(len(distinct), np.nan, dtype=np.float32)
        readable = [i for i, covered in enumerate(self.coverage(distinct)) if covered.problem is None]
        for rows, _, output in self._encoder.forward_pairs([distinct[i] for i in readable]):
            scores[[readable[row] for row in rows]] = output.logits[:, 0].float().sigmoid().cpu().numpy()
        position = {pair: i for i, pair in enumerate(distinct)}
        return scores[[position[pair] for pair in pairs]]

    def coverage(self, pairs: Sequence[tuple[str, str]]) -> list[TextCoverage]:
        """Return why a pair has no score: it is longer than the model reads at once, or the text is unknown to it."""
        tokens = iter(self._encoder.tokenize([text for pair in pairs for text in pair]))
        limit = self._encoder.read_limit(is_pair=True)
        return [_cover_pair(pair, next(tokens), next(tokens), limit) for pair in pairs]


class _Encoder:
    """A model with its tokenizer, run over batches sorted by length. Nothing that it reads is truncated."""

    def __init__(self, model: str, revision: str, architecture: str) -> None:
        self._model = model
        self._revision = revision
        self._architecture = architecture
        self._lock = Lock()

    @cached_property
    def identity(self) -> EmbedderIdentity:
        """The identity of the model; its revision is the commit on the Hub or the digest of the folder."""
        _, transformers = require_transformers("a Hugging Face model")
        config = self._pretrained(transformers.AutoConfig)
        folder = Path(self._model)
        revision = folder_revision(folder) if folder.is_dir() else getattr(config, "_commit_hash", None)
        return EmbedderIdentity("huggingface", self._model, revision or self._revision, config.hidden_size)

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        torch, transformers = require_transformers("a Hugging Face model")
        tokenizer = self._pretrained(transformers.AutoTokenizer)
        model = self._pretrained(getattr(transformers, self._architecture)).eval()
        return tokenizer, model.to("cuda" if torch.cuda.is_available() else "cpu")

    def _pretrained(self, part: Any) -> Any:
        try:
            return part.from_pretrained(self._model, revision=self._revision)
        except (OSError, ValueError) as error:
            raise EmbedderError(
                f"the model {self._model!r} (revision {self._revision!r}) cannot be loaded: {error}. Name a model "
                "on the Hub that this machine can reach or has cached, or a local folder that contains one"
            ) from error

    def read_limit(self, is_pair: bool) -> int:
        """Return the number of tokens, besides special ones, that the model reads at once.

        Args:
            is_pair: True for two texts read together.
        """
        with self._lock:
            tokenizer, model = self._loaded
            limits = [tokenizer.model_max_length]
            positions = getattr(model.config, "max_position_embeddings", None)
            if isinstance(positions, int) and positions > 0:
                # Models of the RoBERTa family number their positions from behind the padding token.
                offset = (tokenizer.pad_token_id or 0) + 1 if "roberta" in str(model.config.model_type) else 0
                limits.append(positions - offset)
            return max(int(min(limits)) - int(tokenizer.num_special_tokens_to_add(is_pair)), 1)

    def tokenize(self, texts: Sequence[str]) -> list["_Tokens"]:
        """Return the tokens of each text, without special ones, in windows that the model reads at once."""
        limit = self.read_limit(is_pair=False)
        with self._lock:
            tokenizer, _ = self._loaded
            # No warning about a text longer than the model reads: windows cover it.
            return [
                _split(tokenizer, tokenizer(text, add_special_tokens=False, verbose=False), limit) for text in texts
            ]

    def forward_windows(self, windows: Sequence[Sequence[int]]) -> Iterator[tuple[list[int], Any, Any]]:
        """Run windows of tokens through the model; yield the positions, inputs and outputs of each batch."""

        def inputs_of(tokenizer: Any, rows: Sequence[int]) -> Any:
            before, after = _special_ids(tokenizer)
            ids = [[*before, *windows[row], *after] for row in rows]
            return tokenizer.pad({"input_ids": ids}, return_tensors="pt")

        return self._forward([len(window) for window in windows], inputs_of)

    def forward_pairs(self, pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[list[int], Any, Any]]:
        """Run pairs of texts through the model; yield the positions, inputs and outputs of each batch."""

        def inputs_of(tokenizer: Any, rows: Sequence[int]) -> Any:
            sides = [list(side) for side in zip(*(pairs[row] for row in rows), strict=True)]
            return tokenizer(*sides, padding=True, return_tensors="pt")

        return self._forward([sum(map(len, pair)) for pair in pairs], inputs_of)

    def _forward(
        self, lengths: Sequence[int], inputs_of: Callable[[Any, Sequence[int]], Any]
    ) -> Iterator[tuple[list[int], Any, Any]]:
        torch, _ = require_transformers("a Hugging Face model")
        with self._lock:
            tokenizer, model = self._loaded
            by_length = sorted(range(len(lengths)), key=lambda i: lengths[i])
            for start in range(0, len(by_length), _BATCH_SIZE):
                rows = by_length[start : start + _BATCH_SIZE]
                inputs = inputs_of(tokenizer, rows).to(model.device)
                with torch.inference_mode():
                    yield rows, inputs, model(**inputs)


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The tokens of a text in windows, and the spans of the unknown ones, which slow tokenizers do not give."""

    windows: list[list[int]]
    unknown: list[tuple[int, int]]

    @property
    def count(self) -> int:
        """The number of tokens."""
        return sum(map(len, self.windows))

    def find_problem(self, text: str) -> str | None:
        """Return why the vector of the text says nothing about it; None if it does."""
        return find_vector_problem(text, self.unknown)


def _special_ids(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return the special tokens that a tokenizer puts before and after a text."""
    plain = list(tokenizer(_HELLO, add_special_tokens=False)["input_ids"])
    whole = list(tokenizer(_HELLO)["input_ids"])
    start = next(i for i in range(len(whole)) if whole[i : i + len(plain)] == plain)
    return whole[:start], whole[start + len(plain) :]


def _split(tokenizer: Any, encoded: Any, limit: int) -> _Tokens:
    ids = list(encoded["input_ids"])
    words = encoded.word_ids() if tokenizer.is_fast else None
    starts = None if words is None else [i == 0 or word != words[i - 1] for i, word in enumerate(words)]
    windows = [ids[start:end] for start, end in split_evenly(len(ids), limit, starts)]
    return _Tokens(windows, _unknown_spans(tokenizer, encoded, ids))


def _unknown_spans(tokenizer: Any, encoded: Any, ids: Sequence[int]) -> list[tuple[int, int]]:
    if tokenizer.unk_token_id is None or not tokenizer.is_fast:
        return []
    spans = (encoded.token_to_chars(i) for i, token in enumerate(ids) if token == tokenizer.unk_token_id)
    return [(span.start, span.end) for span in spans if span is not None]


def _cover_pair(pair: tuple[str, str], one: _Tokens, other: _Tokens, limit: int) -> TextCoverage:
    if one.count + other.count > limit:
        return TextCoverage(2, reasons.TOO_LONG_FOR_CROSS_ENCODER)
    return TextCoverage(1, one.find_problem(pair[0]) or other.find_problem(pair[1]))
