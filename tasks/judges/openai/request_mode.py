"""In which manner a question is put, and what its answer depends on besides it: of all that can be set, what is sent.

Kept answers lie under a digest of that. What can change an answer must be in it, or a stale answer would be taken for
a new one; what can not is left out, or the same answer would be paid for twice.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from metric_core.judge_questions import RATING_KINDS, ChoiceQuestion, JudgeQuestion, QuestionKind
from tasks.judges.openai.server_features import ChoiceConstraint, JsonConstraint, ServerFeatures
from tasks.options.judge_server_options import ServerJudgeOptions

_CHOSEN = (QuestionKind.VERDICT, QuestionKind.USEFULNESS_FOR_REFERENCE, QuestionKind.USEFULNESS_FOR_RESPONSE)
_VOTE = re.compile(r"vote (\d+)")

# The prompt's text stands for its language, and the model that the server has for the one that was asked for.
_NEVER_FEATURES = {"software", "window", "limit_field", "tokenizer", "cached_tokens", "prompt_lists"}
_NEVER_OPTIONS = {"model", "window", "language"}
_QUESTIONS, _OTHERS = ("questions_temperature",), ("temperature", "votes_temperature")

_ABLE = ServerFeatures(
    "", choice=ChoiceConstraint.STRUCTURED_OUTPUTS, json=JsonConstraint.RESPONSE_FORMAT, top_logprobs=20, seed=True
)
_UNSET = {name: field.default for name, field in ServerJudgeOptions.model_fields.items()}
"""What stands in the place of a feature, or of an option, that can not change an answer."""


@dataclass(frozen=True, slots=True)
class RequestMode:
    """How a question is put, as far as options tell apart.

    Args:
        kind: what is asked.
        is_written: JSON is wanted, not a label.
        is_voted: several answers are wanted, which are to differ.
    """

    kind: QuestionKind
    is_written: bool = False
    is_voted: bool = False

    @property
    def temperature(self) -> str:
        """The name of the option with its temperature."""
        if self.kind is QuestionKind.QUESTIONS:
            return "questions_temperature"
        return "votes_temperature" if self.is_voted else "temperature"


def request_mode_of(question: JudgeQuestion) -> RequestMode:
    """How a question is put.

    >>> from metric_core.judge_questions import ask_verdict
    >>> request_mode_of(ask_verdict("It rains.", "Rain.")).temperature
    'temperature'
    """
    if isinstance(question, ChoiceQuestion):
        return RequestMode(question.kind, is_voted=question.votes > 1)
    return RequestMode(question.kind, is_written=True, is_voted=vote_number(question.schema) is not None)


def all_request_modes(kind: QuestionKind) -> Iterator[RequestMode]:
    """The manners in which stages put questions of a kind: ratings in any, as their metrics want it."""
    if kind in RATING_KINDS:
        yield from (RequestMode(kind, written, voted) for written in (False, True) for voted in (False, True))
    else:
        yield RequestMode(kind, is_written=kind not in _CHOSEN)


def vote_number(schema: Mapping[str, Any]) -> int | None:
    """Which of several votes on one question wants this JSON: its title says so; None: there is only one.

    >>> vote_number({"title": "vote 2"}), vote_number({"title": "Rating"})
    (2, None)
    """
    found = _VOTE.fullmatch(str(schema.get("title")))
    return int(found[1]) if found else None


def sends_all_votes_at_once(features: ServerFeatures, options: ServerJudgeOptions) -> bool:
    """Whether one request gets all votes. Servers refuse to give several answers that can not differ."""
    return features.several and options.votes_temperature > 0


def determinants(
    manner: RequestMode, features: ServerFeatures, options: ServerJudgeOptions
) -> dict[str, dict[str, Any]]:
    """What an answer depends on besides its question and prompt: features of the server, and options.

    What is not sent counts as if it was not set; whatever is not known to be without effect, counts.

    Args:
        manner: how the question is put.
        features: what the server can do.
        options: what is set.
    """
    is_sampled = getattr(options, manner.temperature) > 0
    server = {name: value for name, value in asdict(features).items() if name not in _NEVER_FEATURES}
    said = {name: value for name, value in options.determining().items() if name not in _NEVER_OPTIONS}
    if manner.is_written or not manner.is_voted or not is_sampled:
        del server["several"]
    for name in _OTHERS if manner.kind is QuestionKind.QUESTIONS else _QUESTIONS:
        del said[name]
    server |= {name: getattr(_ABLE, name) for name in _idle_features(manner, is_sampled)}
    said |= {name: _UNSET[name] for name in _idle_options(manner, features, options, is_sampled) if name in said}
    return {"server": server, "options": said}


def _idle_features(manner: RequestMode, is_sampled: bool) -> Iterator[str]:
    yield from ("choice", "top_logprobs") if manner.is_written else ("json",)
    if not is_sampled:
        yield "seed"


def _idle_options(
    manner: RequestMode, features: ServerFeatures, options: ServerJudgeOptions, is_sampled: bool
) -> Iterator[str]:
    yield from (name for name in (*_QUESTIONS, *_OTHERS) if name != manner.temperature)
    if not (is_sampled and features.seed):
        yield "seed"
    if not (manner.is_written or options.thinking):
        yield "max_output_tokens"
    if manner.is_written and not features.thinking_switch:
        yield "thinking"
