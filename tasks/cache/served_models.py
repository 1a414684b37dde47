"""Remember the models behind servers beside their answers: an answer is reused for the same model only."""

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tasks.cache.answer_cache import DAMAGE, AnswerCache
from tasks.cache.codec import Codec
from tasks.model_clients.observed_model import UNKNOWN, Kind, ObservedModel, RecognizedModel, place_of, recognize_nobody

_MOST_MODELS = 64
"""Number of models of one name that are remembered; the oldest is forgotten."""

_MOST_URLS = 16

_logger = logging.getLogger(__name__)


def known_models(cache: AnswerCache, kind: Kind, name: str) -> list[ObservedModel]:
    """Return the models of a name that gave cached answers, the latest last."""
    key = _MODELS.key(kind, name)
    return [model for _, model in cache.find([key], _MODELS.decode).get(key, [])]


def recognize_model(cache: AnswerCache, model: ObservedModel) -> RecognizedModel:
    """Compare a model with those of the same name that gave cached answers, and remember it.

    Args:
        model: Model as its servers show it now.
    """
    key = _MODELS.key(model.kind, model.name)
    known = cache.find([key], _MODELS.decode).get(key, [])
    differences = [(token, seen, model.find_difference(seen)) for token, seen in known]
    same = next(((token, seen) for token, seen, difference in differences if difference is None), None)
    if not model.is_read:
        return recognize_nobody(model) if same is None else RecognizedModel(same[0])
    if same is None:
        token = model.token
        if token in {name for name, _ in known}:  # equal but for the context window
            token = hashlib.sha256(f"{token} {model.length}".encode()).hexdigest()[: len(token)]
        cache.add(_MODELS.step, {key: _dump([*known, (token, model)][-_MOST_MODELS:])}, replace=True)
        # Replies differ, too, if the server was asked in another way because some of its features are unknown.
        comparable = [] if UNKNOWN in model.learnt else [each for each in differences if UNKNOWN not in each[1].learnt]
        if not comparable:
            return RecognizedModel(token)
        _, seen, difference = comparable[-1]
        return RecognizedModel(
            token,
            f"{' and '.join(model.urls)} serves another model as {model.name!r} than {' and '.join(seen.urls)} did: "
            f"{difference}. Cached answers of that model are not used",
        )
    token, seen = same
    places = set(map(place_of, seen.urls))
    urls = (*seen.urls, *(url for url in model.urls if place_of(url) not in places))[-_MOST_URLS:]
    is_news = bool(model.learnt) and not (seen.learnt and UNKNOWN in model.learnt)
    latest = replace(seen, urls=urls, learnt=model.learnt if is_news else seen.learnt)
    if latest != seen:
        updated = [(name, latest if name == token else each) for name, each in known]
        cache.add(_MODELS.step, {key: _dump(updated)}, replace=True)
    return RecognizedModel(token, foreign=describe_origin(seen.urls, model.urls))


def describe_origin(origins: Sequence[str], urls: Sequence[str]) -> str | None:
    """Return a warning if cached answers may come from other servers; None if they come from the same ones.

    Ports of this machine count as one server, because a judge that a run launches has another port each time.

    >>> describe_origin(["http://gpu1:8000/v1"], ["http://gpu2:8000/v1"])
    'cached answers come from http://gpu1:8000/v1, which served the same model by its metadata and replies'
    >>> describe_origin(["http://localhost:8001/v1"], ["http://127.0.0.1:8002/v1"]) is None
    True
    """
    here = set(map(place_of, urls))
    others = [url for url in origins if place_of(url) not in here]
    if not others:
        return None
    return f"cached answers come from {' and '.join(others)}, which served the same model by its metadata and replies"


def _dump(models: Sequence[tuple[str, ObservedModel]]) -> bytes:
    return json.dumps([[token, model.to_json()] for token, model in models]).encode()


def _load(content: bytes) -> list[tuple[str, ObservedModel]]:
    entries: list[Any] = json.loads(content)
    models = []
    for token, fields in entries:
        try:
            models.append((str(token), ObservedModel.from_json(fields)))
        except DAMAGE:
            _logger.debug("a remembered model of another version of rag-assay was skipped")
    return models


_MODELS: Codec[list[tuple[str, ObservedModel]]] = Codec("served", 2, _dump, _load)
