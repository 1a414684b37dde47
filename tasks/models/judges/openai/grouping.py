"""Group requests with equal parameters for the batch endpoint.

Sixteen labels: on a server that reads 55,000 prompt tokens a second, as an H200 does with a model of eight
billion parameters, their prompts take less than a tenth of a second, so that the first answers come as soon as before,
and sixteen times fewer requests leave the client with little to do. Texts have replies of different length, and all
wait for the longest: a quarter as many. Beyond that, a request never holds more than a quarter of the conversations
that may be in flight, so that the server has work while the client reads a reply. What a killed run loses does not
depend on it: the conversations in flight.
"""

import json
from collections.abc import Mapping
from typing import Any

from metric_core.prompts.judge_questions import ChoiceQuestion
from tasks.models.clients.joint_requests import Companions
from tasks.models.judges.openai.request_body import Body, choice_parameters
from tasks.models.judges.openai.server_features import ServerFeatures
from tasks.options.judge_server_options import ServerJudgeOptions

LABELS_PER_REQUEST = 16
"""Number of labels that are asked for together at most."""

LABELS_PER_TEXT = 4
"""Number of labels that are asked for together, per text."""

_PARTS = 4
_MOST_KEPT = 1024


class Grouping:
    """The parameters of requests, and which requests may be sent together. May be used from several threads."""

    def __init__(self, features: ServerFeatures, options: ServerJudgeOptions) -> None:
        self._features = features
        self._options = options
        self._choices: dict[tuple[Any, ...], list[tuple[Body, Companions | None]]] = {}
        most = min(LABELS_PER_REQUEST, max(1, options.concurrency // _PARTS))
        texts = max(1, most // LABELS_PER_TEXT)
        self._labels = texts if options.thinking or features.reasons else most
        self._texts = texts

    def of_choice(self, question: ChoiceQuestion) -> list[tuple[Body, Companions | None]]:
        """Return the parameters of each request for a choice question, and with which others it may be sent."""
        key = (question.kind, tuple(question.labels), question.votes)
        found = self._choices.get(key)
        if found is None:
            parameters = choice_parameters(question, self._features, self._options)
            found = [(each, self._companions(each, self._labels)) for each in parameters]
            if len(self._choices) < _MOST_KEPT:
                self._choices[key] = found
        return found

    def of_text(self, body: Body) -> Companions | None:
        """Return with which others a request for a text may be sent; their token limits are of one magnitude."""
        return self._companions({**body, "messages": None}, self._texts)

    def _companions(self, parameters: Mapping[str, Any], most: int) -> Companions | None:
        if not self._features.batches or most < 2 or "n" in parameters:
            return None
        field = self._features.limit_field
        magnitude = {field: int(parameters[field]).bit_length()}
        return Companions(json.dumps({**parameters, **magnitude}, sort_keys=True), field, most)
