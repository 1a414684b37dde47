"""Embedders and cross-encoders from the Hugging Face hub or a local folder, for the extra `transformers`."""

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
    """Embeds with any encoder: mean of the token vectors, length 1.

    The model is loaded at the first use, on a GPU where there is one. An empty text is embedded as a space. May be
    used from several threads.

    Args:
        model: name on the hub or a local folder.
        revision: branch, tag or commit.
    """

    def __init__(self, model: str, revision: str = "main") -> None:
        self._encoder = _Encoder(model, revision, "AutoModel")

    @property
    def identity(self) -> EmbedderIdentity:
        """Which model."""
        return self._encoder.identity

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of shape (len(texts), dimensions), in the order of the texts. Equal texts are embedded once."""
        distinct = list(dict.fromkeys(text or " " for text in texts))
        vectors = np.zeros((len(distinct), self.identity.dimensions), dtype=np.float32)
        for rows, inputs, output in self._encoder.forward([(text,) for text in distinct]):
            mask = inputs["attention_mask"].unsqueeze(-1).to(output.last_hidden_state.dtype)
            pooled = (output.last_hidden_state * mask).sum(dim=1) / mask.sum(dim=1)
            vectors[rows] = (pooled / pooled.norm(dim=1, keepdim=True)).float().cpu().numpy()
        position = {text: i for i, text in enumerate(distinct)}
        return vectors[[position[text or " "] for text in texts]]


class HuggingFaceCrossEncoder:
    """Scores pairs of texts with a sequence classifier of one output, such as the cross-encoders trained on STS.

    Args:
        model: name on the hub or a local folder.
        revision: branch, tag or commit.
    """

    def __init__(self, model: str, revision: str = "main") -> None:
        self._encoder = _Encoder(model, revision, "AutoModelForSequenceClassification")

    @property
    def identity(self) -> EmbedderIdentity:
        """Which model."""
        return self._encoder.identity

    def similarity(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Sigmoid of the model's output for each pair, shape (len(pairs),), in the order of the pairs."""
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
        """Which model: the commit where the hub tells it, the content of a local folder, else the revision as given."""
        _, transformers = _require_transformers()
        config = self._pretrained(transformers.AutoConfig)
        folder = Path(self._model)
        found = folder_revision(folder) if folder.is_dir() else getattr(config, "_commit_hash", None)
        return EmbedderIdentity("huggingface", self._model, found or self._revision, config.hidden_size)

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
                f"the model {self._model!r} (revision {self._revision!r}) can not be loaded: {error}. Name a model of "
                "the hub that this machine can reach or has in its cache, or a folder that holds one"
            ) from error

    def forward(self, texts: Sequence[tuple[str, ...]]) -> Iterator[tuple[list[int], Any, Any]]:
        """Runs texts or pairs through the model; yields, a batch, their positions, the inputs and the outputs."""
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
    """The packages torch and transformers.

    Raises:
        MissingDependencyError: one of them is not installed.
    """
    try:
        import torch  # noqa: PLC0415
        import transformers  # noqa: PLC0415
    except ModuleNotFoundError as error:
        name = error.name or "transformers"
        raise MissingDependencyError(name, "a Hugging Face model", "pip install 'rag-assay[transformers]'") from error
    return torch, transformers
