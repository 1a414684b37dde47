"""Identify the model behind a server by its metadata and its replies to fixed probes.

The name of a model says little: `default` is whatever was started last. Replies are compared with a tolerance, because
the arithmetic of a busy server depends on what else it computes; see docs/design/served-models.md.
"""

import hashlib
import json
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

from tasks.runtime.proxies import is_loopback

_TOLD = ("root", "parent", "revision", "sha", "digest", "hash", "version", "quantization", "dtype", "meta")
"""Fields of a model's entry in `/v1/models` that describe the model, not the server or its start."""

_LENGTH, _LENGTH_IN_META = "max_model_len", "n_ctx"

MEAN_DISTANCE, LARGEST_DISTANCE = 0.03, 0.15
"""Largest distances of the label probabilities of one model, over all probe questions and for one of them."""

LARGEST_ANGLE = 0.002
"""Largest difference from 1 of the cosine of two vectors of one text by one embedder."""

_CERTAIN = 0.99
_FEWEST_UNCERTAIN = 3
_DIGITS = 2

Kind: TypeAlias = Literal["judge", "embedder"]
Traits: TypeAlias = tuple[tuple[tuple[float, ...], ...], str | None]
"""The replies to the probe questions, and the text: what tells one model from another."""

NOT_READ: tuple[float, ...] = ()
"""Stands for the reply to a probe question that could not be read."""

UNKNOWN = "unknown"
"""Name of the fact that some features of a server could not be probed, among those learnt about it."""


@dataclass(frozen=True, slots=True)
class ObservedModel:
    """A model as its server shows it.

    Args:
        name: Name of the model at the server.
        told: Description of the model by the server.
        length: Context window that the server reports; None if it reports none.
        replies: Replies to the probe questions: the probabilities of the labels, or the vectors of the probe texts;
            `NOT_READ` for one that could not be read.
        text: Reply to a probe question that is answered with a text; None if it could not be read.
        urls: Addresses of its servers.
        learnt: Facts about the servers that need not be probed again; models are not compared by them.
    """

    kind: Kind
    name: str
    told: Mapping[str, Any]
    length: int | None
    replies: tuple[tuple[float, ...], ...]
    text: str | None
    urls: tuple[str, ...] = ()
    learnt: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_read(self) -> bool:
        """Whether all replies could be read; others identify no model, and are not remembered."""
        return self.text is not None and NOT_READ not in self.replies

    @property
    def is_distinctive(self) -> bool:
        """Whether the replies alone tell the model from others: several hold graded numbers, which differ by model."""
        if self.kind == "embedder":
            return True
        return sum(0 < max(reply, default=0.0) < _CERTAIN for reply in self.replies) >= _FEWEST_UNCERTAIN

    @property
    def token(self) -> str:
        """A short digest of the model, the same for servers that reply exactly alike."""
        content: list[Any] = [self.kind, self.name, dict(self.told)]
        content += [[[round(number, _DIGITS) for number in reply] for reply in self.replies]]
        if not self.is_distinctive:
            content += [self.text]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def find_difference(self, other: "ObservedModel") -> str | None:
        """Return the difference from another model of the same name; None if it is the same model."""
        for name in sorted({*self.told, *other.told}):
            if self.told.get(name) != other.told.get(name):
                return f"{name} {_short(other.told.get(name))} is now {_short(self.told.get(name))}"
        if 2 * len(self._read_pairs(other)) < len(self.replies):
            return "its replies to the probe questions cannot be read"
        if not self._replies_like(other):
            return "its replies to the probe questions are others"
        if self.is_distinctive and other.is_distinctive:
            return None
        if self.length != other.length:
            return f"{_LENGTH} {other.length} is now {self.length}"
        is_same = None in (self.text, other.text) or self.text == other.text
        return None if is_same else "its replies to the probe questions are others"

    def select(self, positions: Sequence[int]) -> "ObservedModel":
        """Return the model with its replies to some of the probe questions."""
        return replace(self, replies=tuple(self.replies[position] for position in positions))

    def to_json(self) -> dict[str, Any]:
        """Return the model as JSON can hold it."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "ObservedModel":
        """Return the model from its JSON.

        Raises:
            KeyError: A field is missing.
            TypeError: A field has another type, or there is another field.
        """
        replies = tuple(tuple(map(float, reply)) for reply in content["replies"])
        return cls(**{**content, "replies": replies, "urls": tuple(content["urls"])})

    def _read_pairs(self, other: "ObservedModel") -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
        """Return the replies that could be read of both models, question by question."""
        pairs = zip(self.replies, other.replies, strict=False)
        return [(mine, theirs) for mine, theirs in pairs if NOT_READ not in (mine, theirs)]

    def _replies_like(self, other: "ObservedModel") -> bool:
        pairs = self._read_pairs(other)
        if len(self.replies) != len(other.replies) or any(len(mine) != len(theirs) for mine, theirs in pairs):
            return False
        if self.kind == "embedder":
            return all(1 - _cosine(mine, theirs) <= LARGEST_ANGLE for mine, theirs in pairs)
        distances = [math.fsum(abs(a - b) for a, b in zip(mine, theirs, strict=True)) / 2 for mine, theirs in pairs]
        return not distances or (
            max(distances) <= LARGEST_DISTANCE and math.fsum(distances) / len(distances) <= MEAN_DISTANCE
        )


@dataclass(frozen=True, slots=True)
class RecognizedModel:
    """A model that was compared with those seen before.

    Args:
        token: Digest of the model in cache keys: that of the same model when it was first seen.
        warning: Sentence for users if answers of another model with this name are cached; None otherwise.
        foreign: Sentence for users if cached answers of this model may come from other servers; None otherwise.
    """

    token: str
    warning: str | None = None
    foreign: str | None = None


class ModelMemory(Protocol):
    """The models that were seen before."""

    def recall(self, kind: Kind, name: str) -> Sequence[ObservedModel]:
        """Return the models with this name, the latest last."""

    def recognize(self, model: ObservedModel) -> RecognizedModel:
        """Compare a model with those seen before, and remember it."""


class NoMemory:
    """The memory of a client that compares its model with no other."""

    def recall(self, kind: Kind, name: str) -> Sequence[ObservedModel]:  # noqa: ARG002
        """Return nothing."""
        return ()

    def recognize(self, model: ObservedModel) -> RecognizedModel:
        """Return the model."""
        return RecognizedModel(model.token) if model.is_read else unreadable_model(model)


def unreadable_model(model: ObservedModel) -> RecognizedModel:
    """Return a model whose replies could not be read: no other run shares its answers."""
    warning = (
        f"{' and '.join(model.urls)} gave replies that cannot be read to questions that tell which model it serves, so "
        "this run uses no cached answers of it, and no other run uses the answers of this one. Check the server (vLLM: "
        "a wrong --reasoning-parser leaves the text of a reply empty)"
    )
    return RecognizedModel(secrets.token_hex(8), warning)


def place_of(url: str) -> str:
    """Return the host and port of a URL; all ports of this machine count as one place.

    A judge that a run launches has another port each time.

    >>> place_of("http://gpu1:8000/v1"), place_of("http://localhost:8001/v1")
    ('gpu1:8000', 'this machine')
    """
    return "this machine" if is_loopback(url) else urlsplit(url).netloc


def describe_card(card: Mapping[str, object]) -> tuple[dict[str, Any], int | None]:
    """Return what an entry of `/v1/models` says about the model, and its context window.

    Left out are fields that change with each start, such as `created`.

    >>> describe_card({"id": "default", "created": 1767225600, "root": "Qwen/Qwen3-8B", "max_model_len": 8192})
    ({'root': 'Qwen/Qwen3-8B'}, 8192)
    """
    told = {name: card[name] for name in _TOLD if card.get(name) is not None}
    length = card.get(_LENGTH)
    if isinstance(meta := card.get("meta"), Mapping) and _LENGTH_IN_META in meta:
        length = meta[_LENGTH_IN_META]
        told["meta"] = {name: value for name, value in meta.items() if name != _LENGTH_IN_META}
    return told, length if type(length) is int else None


def find_disagreement(models: Sequence[ObservedModel]) -> str | None:
    """Return which replicas serve different models, and the difference; None if all serve the same.

    Replicas of one model may have context windows of different length. Those that give no reply that can be read do not
    disagree.
    """
    if not any(reply for model in models for reply in model.replies):
        return None
    for other in models[1:]:
        if (difference := replace(other, length=models[0].length).find_difference(models[0])) is not None:
            return f"{' and '.join(models[0].urls)} and {' and '.join(other.urls)} serve different models: {difference}"
    return None


def _cosine(a: Sequence[float], b: Sequence[float]) -> float:
    norm = math.sqrt(math.fsum(x * x for x in a) * math.fsum(x * x for x in b))
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / norm if norm else float(tuple(a) == tuple(b))


def _short(value: Any) -> str:
    text = "(nothing)" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
