"""An embedder on any server with an OpenAI-compatible `/v1/embeddings`, such as vLLM with an embedding model."""

import base64
from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metric_core.errors import EmbedderError
from tasks.models.clients.jobs import Request
from tasks.models.clients.observed_model import NOT_READ, ModelMemory, NoMemory, RecognizedModel, Traits
from tasks.models.clients.probe_result import ProbeResult, describe_unknown, describe_unprobed, read_probe
from tasks.models.clients.replica import Reply, get_count, get_model
from tasks.models.clients.served_model import ServedModel
from tasks.models.embedders.protocol import EmbedderIdentity, TextCoverage
from tasks.models.embedders.windows import split_bytes
from tasks.options.embedding_server_options import ServerEmbedderOptions
from tasks.runtime.usage import Usage
from tasks.runtime.wording import NO_REVISION

EMBEDDINGS = "embeddings"
BLANK = " "
"""The replacement for an empty text, which servers reject."""

HELLO = "hello"
"""A text that any embedder accepts, and whose vector identifies the model."""

ASSUMED_WINDOW = 512
"""Tokens that a model reads at once if nothing says how many: what most embedding models read."""

BYTES_PER_TOKEN = 3
"""A conservative ratio: English has more than 4 bytes per token, Chinese about 3."""

_SPECIAL_TOKENS = 8


class OpenAIEmbedder:
    """An embedder with the model of a server. Thread-safe.

    Some servers truncate a text that is longer than the model reads at once without an error. So a text that may be
    longer, by its bytes, is sent in windows, and its vector is the mean of their unit vectors, weighted by length.

    Args:
        options: URLs of the servers and name of the model.
        memory: The models that gave cached vectors.

    Raises:
        ConfigError: The environment variable of the key is not set.
        EmbedderError: No server can be reached, it returns no embeddings, or two servers have different models.
    """

    def __init__(self, options: ServerEmbedderOptions, memory: ModelMemory | None = None) -> None:
        self._options = options
        self._encoding: dict[str, str] = {}
        self._unknown: dict[str, str] = {}
        self._usage = Usage()
        self._usage_lock = Lock()
        with ServedModel.opening("embedder", options) as self._served:
            usable = [window for window in self._served.windows if window > _SPECIAL_TOKENS]
            self._window = options.context_window or min(usable, default=ASSUMED_WINDOW)
            self._dimensions = self._probe_dimensions()
            self._served.observe([self._request([HELLO], "", optional=True)], _read_model)
            self._served.recognize(memory or NoMemory())

    @property
    def recognized(self) -> RecognizedModel:
        """The model behind the servers, compared with those seen before."""
        return self._served.recognized

    @property
    def identity(self) -> EmbedderIdentity:
        """The identity of the model."""
        revision = f"{self._options.revision or NO_REVISION}, windows of {self._window} tokens"
        return EmbedderIdentity("server", self._served.name, revision, self._dimensions, served=self.recognized.token)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences for users about the servers, found when the embedder was opened."""
        unprobed = [describe_unprobed("the embedding server", self._unknown)] if self._unknown else []
        return (*self._served.warnings, *unprobed)

    @property
    def usage(self) -> Usage:
        """The usage of all threads so far, without the requests of the constructor.

        Seconds are the summed durations of the requests.
        """
        with self._usage_lock:
            return self._usage

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the server's vectors, in the order of the texts. Equal texts are embedded once.

        Raises:
            EmbedderError: The server is lost or rejects a text, or the length of its vectors has changed.
        """
        windows = {text or BLANK: self._windows(text or BLANK) for text in texts}
        distinct = list(dict.fromkeys(window for parts in windows.values() for window in parts))
        vectors = dict(zip(distinct, self._embed(distinct), strict=True))
        pooled = {text: _pool(parts, [vectors[part] for part in parts]) for text, parts in windows.items()}
        return np.stack([pooled[text or BLANK] for text in texts]) if texts else self._no_vectors(0)

    def coverage(self, texts: Sequence[str]) -> list[TextCoverage]:
        """Return the number of windows of each text."""
        return [TextCoverage(len(self._windows(text or BLANK))) for text in texts]

    def _windows(self, text: str) -> list[str]:
        return split_bytes(text, (self._window - _SPECIAL_TOKENS) * BYTES_PER_TOKEN)

    def _no_vectors(self, count: int) -> NDArray[np.float32]:
        return np.zeros((count, self._dimensions), dtype=np.float32)

    def _embed(self, distinct: Sequence[str]) -> NDArray[np.float32]:
        batches = [
            distinct[start : start + self._options.batch] for start in range(0, len(distinct), self._options.batch)
        ]
        replies = self._served.send([self._request(batch, str(i)) for i, batch in enumerate(batches)])
        self._count(replies)
        self._check_names(replies)
        vectors = self._no_vectors(len(distinct))
        for i, (batch, reply) in enumerate(zip(batches, replies, strict=True)):
            start = i * self._options.batch
            vectors[start : start + len(batch)] = self._check_dimensions(_vectors(reply, batch))
        return vectors

    def close(self) -> None:
        """Close the connections to the servers. Happens automatically at the end of the process."""
        self._served.close()

    def _count(self, replies: Sequence[Reply]) -> None:
        with self._usage_lock:
            self._usage += Usage(
                requests=sum(reply.requests for reply in replies),
                prompt_tokens=sum(get_count(reply, "prompt_tokens") for reply in replies),
                seconds=sum(reply.seconds for reply in replies),
            )

    def _probe_dimensions(self) -> int:
        """Return the length of the vectors, and probe whether the server supports base64, which is faster."""
        connection = self._served.connection
        self._encoding = {"encoding_format": "base64"}
        (reply,) = connection.send([self._request([HELLO], "", optional=True)])
        result = read_probe(reply, is_read=True, shows=True)
        if result is ProbeResult.UNKNOWN:
            self._unknown = {"base64": describe_unknown(reply)}
        if result is not ProbeResult.YES:
            self._encoding = {}
            (reply,) = connection.send([self._request([HELLO], "")])
        connection.set_simplest(self._request([HELLO], ""))
        return int(_vectors(reply, [HELLO]).shape[1])

    def _check_names(self, replies: Sequence[Reply]) -> None:
        other = next((name for reply in replies if (name := get_model(reply)) not in (None, *self._served.names)), None)
        if other is not None:
            raise EmbedderError(
                f"a reply of the embedding server names the model {other!r}, wanted {self._served.name!r}; check what "
                "the server, or the gateway before it, serves"
            )

    def _request(self, batch: Sequence[str], affinity: str, optional: bool = False) -> Request:
        body = {"model": self._served.name, "input": list(batch)} | self._encoding
        return Request(EMBEDDINGS, body, affinity, optional)

    def _check_dimensions(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        if vectors.shape[1] != self._dimensions:
            raise EmbedderError(
                f"the embedding server returns vectors of length {vectors.shape[1]}, previously of length "
                f"{self._dimensions}; all replicas must serve the same model"
            )
        return vectors


def _read_model(replies: Sequence[Reply]) -> Traits:
    """Return the vector of the text that identifies the model, where a replica gives one."""
    if not replies[0].is_answer:
        return (NOT_READ,), ""
    vectors = _vectors(replies[0], [HELLO]).tolist()
    return tuple(tuple(round(number, 6) for number in vector) for vector in vectors), ""


def _pool(windows: Sequence[str], vectors: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return the vector of a text from those of its windows."""
    if len(vectors) == 1:
        return vectors[0]
    stacked = np.stack(vectors).astype(np.float64)
    norms = np.linalg.norm(stacked, axis=1, keepdims=True)
    units = stacked / np.where(norms, norms, 1.0)
    weights = [len(window.encode("utf-8", "replace")) for window in windows]
    pooled: NDArray[np.float32] = np.average(units, axis=0, weights=weights).astype(np.float32)
    return pooled


def _vectors(reply: Reply, batch: Sequence[str]) -> NDArray[np.float32]:
    if not reply.is_answer:
        raise EmbedderError(
            f"the embedding server returned an error ({reply.status}) for {len(batch)} texts, the longest of "
            f"{max(map(len, batch))} characters: {reply.message}"
        )
    try:
        data = sorted(reply.content["data"], key=lambda item: int(item["index"]))
        vectors = np.stack([_vector(item["embedding"]) for item in data])
    except (KeyError, TypeError, ValueError) as error:
        raise EmbedderError(f"the embedding server's reply cannot be read: {error!r}") from error
    if [int(item["index"]) for item in data] != list(range(len(batch))) or vectors.ndim != 2 or not vectors.size:
        raise EmbedderError(
            f"the embedding server was sent {len(batch)} texts and returned {len(data)} vectors, or not one per text; "
            "check that it serves an embedding model that returns one vector per text"
        )
    if not np.isfinite(vectors).all():
        raise EmbedderError(
            "the embedding server returned a vector with numbers that are not finite, which half precision can cause; "
            "serve the model with another dtype (vLLM: --dtype float32)"
        )
    return vectors


def _vector(embedding: Any) -> NDArray[np.float32]:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding), dtype="<f4")
    return np.asarray(embedding, dtype=np.float32)
