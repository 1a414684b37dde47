"""Encode values as bytes and decode them: JSON for readable values, plain numbers for vectors, never pickle.

Decoded content is validated: bytes that are not a value of their kind raise ValueError, KeyError or TypeError.
"""

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, Generic, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

from metric_core.records import AnswerStatus
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer
from tasks.models.recognizers.protocol import Entity
from tasks.runtime.usage import Usage

T = TypeVar("T")

# Created once: every answer needs them, and creating them takes longer than using them.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_usage_numbers = attrgetter("requests", "prompt_tokens", "cached_tokens", "output_tokens", "seconds")


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """The encoding of one kind of value.

    Args:
        step: Name of the kind, part of every key.
        version: Number incremented whenever the meaning of the bytes changes; part of every key.
        encode: Function from a value to its bytes; None for a value that must not be cached.
        decode: Function from bytes to the value.
    """

    step: str
    version: int
    encode: Callable[[T], bytes | None]
    decode: Callable[[bytes], T]

    def key(self, *parts: str) -> bytes:
        """Return the digest of the parts that determine a value; ("ab", "c") and ("a", "bc") have different digests."""
        first, *others = parts
        digest = _digest_first_part(self.step, self.version, first).copy()
        for part in others:
            digest.update(_framed(part))
        return digest.digest()


def _framed(part: str) -> bytes:
    content = part.encode("utf-8", "surrogatepass")
    return b"\x00%d:%b" % (len(content), content)


@lru_cache(maxsize=256)  # most keys begin with the fingerprint of one model
def _digest_first_part(step: str, version: int, part: str) -> "hashlib._Hash":
    return hashlib.sha256(f"{step}/{version}".encode() + _framed(part))


def vectors(dimensions: int) -> Codec[NDArray[np.float32]]:
    """Return the codec of vectors of one length.

    >>> codec = vectors(2)
    >>> codec.decode(codec.encode(np.array([1.0, 0.5], np.float32)))
    array([1. , 0.5], dtype=float32)
    """

    def decode(content: bytes) -> NDArray[np.float32]:
        if len(content) != 4 * dimensions:
            raise ValueError(f"{len(content)} bytes are not a vector of {dimensions} numbers")
        return np.frombuffer(content, "<f4").astype(np.float32)

    return Codec("vector", 1, lambda vector: vector.astype("<f4").tobytes(), decode)


def _entities(content: bytes) -> list[Entity]:
    return [Entity(_text(text), _text(label)) for text, label in _load(content, list)]


def _choice(content: bytes) -> ChoiceAnswer:
    fields = _load(content, dict)
    probabilities = fields["probabilities"]
    if probabilities is not None:
        probabilities = {_text(label): float(value) for label, value in probabilities.items()}
    return ChoiceAnswer(
        AnswerStatus.ANSWERED,
        tuple(map(_text, fields["votes"])),
        probabilities,
        reply=_text_or_none(fields["reply"]),
        usage=Usage(*fields["usage"]),
        stored=True,
    )


def _generated(content: bytes) -> GenerateAnswer:
    fields = _load(content, dict)
    return GenerateAnswer(
        AnswerStatus.ANSWERED,
        fields["value"],
        reply=_text_or_none(fields["reply"]),
        usage=Usage(*fields["usage"]),
        stored=True,
    )


def _choice_bytes(answer: ChoiceAnswer) -> bytes | None:
    """Return the bytes of an answer; None if one of its votes failed, so that it is asked again."""
    if None in answer.votes:
        return None
    probabilities = None if answer.probabilities is None else dict(answer.probabilities)
    dump = _dump if probabilities is None or not all(map(_is_finite, probabilities.values())) else _dump_finite
    return _require_answered(answer, dump, votes=answer.votes, probabilities=probabilities)


def _generated_bytes(answer: GenerateAnswer) -> bytes | None:
    return _require_answered(answer, _dump, value=answer.value)


def _require_answered(
    answer: ChoiceAnswer | GenerateAnswer, dump: Callable[[Any], bytes], **fields: Any
) -> bytes | None:
    """Return the bytes of an answer; None if it is undefined, failed or doubtful, so that it is asked again."""
    if answer.status is not AnswerStatus.ANSWERED or answer.warning is not None:
        return None
    return dump({**fields, "reply": answer.reply, "usage": _usage_numbers(answer.usage)})


def _is_finite(number: object) -> bool:
    return type(number) is float and math.isfinite(number)


def _dump_finite(content: Any) -> bytes:
    """Return the JSON of numbers that are all finite, in a third of the time; orjson would write null for others."""
    try:
        return orjson.dumps(content)
    except TypeError:  # it refuses half of a surrogate pair
        return _dump(content)


def _dump(content: Any) -> bytes:
    return _ENCODER.encode(content).encode("utf-8", "surrogatepass")


def _load(content: bytes, kind: type[T]) -> T:
    value = json.loads(content.decode("utf-8", "surrogatepass"))
    if not isinstance(value, kind):
        raise TypeError(f"expected a {kind.__name__}, got {type(value).__name__}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {type(value).__name__}")
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _entity_bytes(entities: Sequence[Entity]) -> bytes:
    return _dump([(entity.text, entity.label) for entity in entities])


CHOICES = Codec("choice", 1, _choice_bytes, _choice)
"""Answers to choice questions."""

GENERATED = Codec("generate", 1, _generated_bytes, _generated)
"""Answers to generate questions."""

ENTITIES: Codec[list[Entity]] = Codec("entities", 1, _entity_bytes, _entities)
"""The entities of a text."""
