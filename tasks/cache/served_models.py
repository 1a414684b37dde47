"""Remember the models behind servers beside their answers: an answer is reused for the same model only."""

import json
import logging
from collections.abc import Sequence
from typing import Any

from tasks.cache.answer_cache import DAMAGE, AnswerCache
from tasks.cache.codec import Codec
from tasks.models.clients.observed_model import Kind, ObservedModel
from tasks.models.clients.recognize import Seen

_MOST_MODELS = 64
"""Number of models of one name that are remembered; the oldest is forgotten."""

_logger = logging.getLogger(__name__)


def cached_models(cache: AnswerCache, kind: Kind, name: str) -> list[Seen]:
    """Return the models of a name that gave cached answers, the latest last."""
    key = _MODELS.key(kind, name)
    return cache.find([key], _MODELS.decode).get(key, [])


def cache_model(cache: AnswerCache, known: Sequence[Seen], entry: Seen) -> None:
    """Remember a model that gives answers to a cache, in the place of the one with its token.

    Args:
        known: Models of its name in the cache.
    """
    token, model = entry
    if entry in known:
        return
    is_known = token in {name for name, _ in known}
    updated = [entry if name == token else (name, each) for name, each in known] if is_known else [*known, entry]
    cache.add(_MODELS.step, {_MODELS.key(model.kind, model.name): _dump(updated[-_MOST_MODELS:])}, replace=True)


def _dump(models: Sequence[Seen]) -> bytes:
    return json.dumps([[token, model.to_json()] for token, model in models]).encode()


def _load(content: bytes) -> list[Seen]:
    entries: list[Any] = json.loads(content)
    models = []
    for token, fields in entries:
        try:
            models.append((str(token), ObservedModel.from_json(fields)))
        except DAMAGE:
            _logger.debug("a remembered model of another version of rag-assay was skipped")
    return models


_MODELS: Codec[list[Seen]] = Codec("served", 2, _dump, _load)
