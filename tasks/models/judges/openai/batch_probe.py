"""Probe whether a server takes several conversations in one request, and answers each as it answers it alone.

The questions are those that identify the model, which were asked one by one: their answers are compared.
"""

from collections.abc import Mapping, Sequence

from tasks.models.clients.jobs import Request
from tasks.models.clients.joint_requests import BATCH, join_bodies, split_reply
from tasks.models.clients.probe_result import ProbeResult, read_probe
from tasks.models.clients.replica import Reply, get_choices
from tasks.models.judges.openai.completion import is_readable
from tasks.models.judges.openai.model_probe import PASSAGES, QUESTIONS
from tasks.models.judges.openai.reply_parsing import parse_choice_answer
from tasks.models.judges.openai.server_features import ServerFeatures

LARGEST_DIFFERENCE = 0.05
"""Largest difference between two probabilities of one answer that the arithmetic of a busy server explains."""


def batch_request(requests: Sequence[Request], features: ServerFeatures) -> Request:
    """Return one request with the passages of the model probe."""
    bodies = [request.body for request in requests[: len(PASSAGES)]]
    return Request(BATCH, join_bodies(bodies, features.limit_field), optional=True)


def takes_batches(
    reply: Reply, requests: Sequence[Request], alone: Sequence[Reply], features: ServerFeatures
) -> ProbeResult:
    """Return whether the reply has the answers that single requests got.

    Args:
        reply: Reply to the joint request.
        alone: Replies to the single requests.
    """
    bodies = [request.body for request in requests[: len(PASSAGES)]]
    singles = alone[: len(bodies)]
    together = split_reply(reply, bodies) if reply.is_answer else None
    if together is None:
        return read_probe(reply, is_read=bool(get_choices(reply)), shows=False)
    is_read = all(map(is_readable, (*together, *singles)))
    pairs = zip(QUESTIONS, together, singles, strict=False)
    is_same = all(_is_same(each, single, question.labels, features) for question, each, single in pairs)
    return read_probe(reply, is_read=is_read, shows=is_same)


def _is_same(one: Reply, other: Reply, labels: Sequence[str], features: ServerFeatures) -> bool:
    first, second = (parse_choice_answer([reply], labels, 1, features) for reply in (one, other))
    if first.status is not second.status or (first.probabilities is None) != (second.probabilities is None):
        return False
    if first.probabilities is None or second.probabilities is None:
        return first.label == second.label
    return _distance(first.probabilities, second.probabilities) <= LARGEST_DIFFERENCE


def _distance(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return max(abs(one[label] - other[label]) for label in one)
