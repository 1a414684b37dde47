"""Embedders and cross-encoders from the Hugging Face Hub or a local folder; needs the extra `transformers`."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metric_core.errors import EmbedderError, MissingDependencyError
from tasks.embedders.protocol import EmbedderIdentity
from tasks.runtime.model_folder import folder_revision

_BATCH_SIZE = 32


class HuggingFaceEmbedder:
    """An embedder with any encoder model: the mean of the token vectors, normalized to length 1.

    The model is loaded at the first use, on a GPU if available. An empty text is embedded as a space. Thread-safe.

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
        vectors = np.zeros((len(distinct), self.identity.dimensions), dtype=np.float32)
        for rows, inputs, output in self._encoder.forward([(text,) for text in distinct]):
            mask = inputs["attention_mask"].unsqueeze(-1).to(output.last_hidden_state.dtype)
            pooled = (output.last_hidden_state * mask).sum(dim=1) / mask.sum(dim=1)
            vectors[rows] = (pooled / pooled.norm(dim=1, keepdim=True)).float().cpu().numpy()
        position = {text: i for i, text in enumerate(distinct)}
        return vectors[[position[text or " "] for text in texts]]


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
        """Return the sigmoid of the model's output per pair, shape (len(pairs),), in the order of the pairs."""
        distinct = list(dict.fromkeys(pairs))
        scores = np.zeros(len(distinct), dtype=np.float32)
        for rows, _, output in self._encoder.forward(distinct):
            scores[rows] = output.logits[:, 0].float().sigmoid().cpu().numpy()
        position = {pair: i for i, pair in enumerate(distinct)}
        return scores[[position[pair] for pair in pairs]]


class _Encoder:
    """A model with its tokenizer, run over batches sorted by length."""

    def __init__(self, model: str, revision: str, architecture: str) -> None:
        self._model = model
        self._revision = revision
        self._architecture = architecture
        self._lock = Lock()

    @cached_property
    def identity(self) -> EmbedderIdentity:
        """The identity of the model; its revision is the commit on the Hub or the digest of the folder."""
        _, transformers = _require_transformers()
        config = self._pretrained(transformers.AutoConfig)
        folder = Path(self._model)
        revision = folder_revision(folder) if folder.is_dir() else getattr(config, "_commit_hash", None)
        return EmbedderIdentity("huggingface", self._model, revision or self._revision, config.hidden_size)

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        torch, transformers = _require_transformers()
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

    def forward(self, texts: Sequence[tuple[str, ...]]) -> Iterator[tuple[list[int], Any, Any]]:
        """Run texts or pairs through the model; yield the positions, inputs and outputs of each batch."""
        torch, _ = _require_transformers()
        with self._lock:
            tokenizer, model = self._loaded
            by_length = sorted(range(len(texts)), key=lambda i: sum(map(len, texts[i])))
            for start in range(0, len(by_length), _BATCH_SIZE):
                rows = by_length[start : start + _BATCH_SIZE]
                sides = [list(side) for side in zip(*(texts[row] for row in rows), strict=True)]
                inputs = tokenizer(*sides, padding=True, truncation=True, return_tensors="pt").to(model.device)
                with torch.inference_mode():
                    yield rows, inputs, model(**inputs)


def _require_transformers() -> tuple[Any, Any]:
    """Import and return the packages torch and transformers.

    Raises:
        MissingDependencyError: One of them is not installed.
    """
    try:
        import torch  # noqa: PLC0415
        import transformers  # noqa: PLC0415
    except ModuleNotFoundError as error:
        name = error.name or "transformers"
        raise MissingDependencyError(name, "a Hugging Face model", "pip install 'rag-assay[transformers]'") from error
    return torch, transformers
