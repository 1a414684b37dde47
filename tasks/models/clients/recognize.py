"""Compare a model behind servers with those seen before: the same model keeps its token, another one gets its own."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tasks.models.clients.observed_model import (
    UNKNOWN,
    ObservedModel,
    RecognizedModel,
    place_of,
    unreadable_model,
)

_MOST_URLS = 16

Seen = tuple[str, ObservedModel]
"""A model that was seen before, with its token."""


@dataclass(frozen=True, slots=True)
class Recognition:
    """A model compared with those seen before.

    Args:
        entry: The model as it is to be remembered; None if it is not.
    """

    recognized: RecognizedModel
    entry: Seen | None = None


def recognize(model: ObservedModel, known: Sequence[Seen], elsewhere: Sequence[Seen] = ()) -> Recognition:
    """Compare a model with those of the same name.

    Args:
        model: Model as its servers show it now.
        known: Models that were seen before, the latest last.
        elsewhere: Further ones; of two that match, one of `known` is taken.
    """
    differences = [(token, seen, model.find_difference(seen)) for token, seen in (*known, *elsewhere)]
    same = next(((token, seen) for token, seen, difference in differences if difference is None), None)
    if not model.is_read:
        return Recognition(unreadable_model(model) if same is None else RecognizedModel(same[0]))
    if same is None:
        token = model.token
        if token in {name for name, *_ in differences}:  # equal but for the context window
            token = hashlib.sha256(f"{token} {model.length}".encode()).hexdigest()[: len(token)]
        differences = [*differences[len(known) :], *differences[: len(known)]]
        # Replies differ, too, if the server was asked in another way because some of its features are unknown.
        comparable = [] if UNKNOWN in model.learnt else [each for each in differences if UNKNOWN not in each[1].learnt]
        warning = None
        if comparable:
            _, seen, difference = comparable[-1]
            warning = (
                f"{' and '.join(model.urls)} serves another model as {model.name!r} than {' and '.join(seen.urls)} "
                f"did: {difference}. Cached answers of that model are not used"
            )
        return Recognition(RecognizedModel(token, warning), (token, model))
    token, seen = same
    places = set(map(place_of, seen.urls))
    urls = (*seen.urls, *(url for url in model.urls if place_of(url) not in places))[-_MOST_URLS:]
    is_news = bool(model.learnt) and not (seen.learnt and UNKNOWN in model.learnt)
    latest = replace(seen, urls=urls, learnt=model.learnt if is_news else seen.learnt)
    return Recognition(RecognizedModel(token, foreign=describe_origin(seen.urls, model.urls)), (token, latest))


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
