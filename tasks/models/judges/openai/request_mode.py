"""Request modes, and the server features and options that determine an answer in each of them.

The cache key of an answer contains a digest of these determinants. A setting that can change an answer must be among
them, or a stale answer would be reused; a setting that cannot must not, or the same answer would be paid for twice.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from metric_core.prompts.judge_questions import ChoiceQuestion, CustomKind, JudgeQuestion, Kind
from metric_core.question_kinds import ON_CLAIMS, RATING_KINDS, QuestionKind
from tasks.models.judges.openai.reply_limits import TOKENS_PER_BYTE
from tasks.models.judges.openai.server_features import ChoiceConstraint, JsonConstraint, ServerFeatures
from tasks.options.judge_server_options import ServerJudgeOptions

_CHOICE_KINDS = (*ON_CLAIMS, QuestionKind.USEFULNESS_FOR_REFERENCE, QuestionKind.USEFULNESS_FOR_RESPONSE)
QUESTIONS_TEMPERATURE = 0.7
"""Temperature of regenerated questions, which are meant to differ."""
VOTES_TEMPERATURE = 0.7
"""Temperature of answers that are asked for several times."""


_VOTE_TITLE = re.compile(r"vote (\d+)")

# The digest of the prompt covers its language or folder, and the model of the server covers the model option.
_IRRELEVANT_FEATURES = {
    "software",
    "window",
    "limit_field",
    "tokenizer",
    "cached_tokens",
    "prompt_lists",
    "batches",
    "impossible_logprobs",
    "unknown",
}
_IRRELEVANT_OPTIONS = {"model", "context_window", "language", "prompts"}

_UNUSED_FEATURES = ServerFeatures(
    "", choice=ChoiceConstraint.STRUCTURED_OUTPUTS, json=JsonConstraint.RESPONSE_FORMAT, top_logprobs=20, seed=True
)
_UNUSED_OPTIONS = {name: field.default for name, field in ServerJudgeOptions.model_fields.items()}
"""Placeholders for features and options that have no effect on an answer."""


@dataclass(frozen=True, slots=True)
class RequestMode:
    """The properties of a question that decide which options apply to it.

    Args:
        wants_json: True if the reply is JSON rather than a label.
        has_votes: True if several answers are requested, which may differ.
    """

    kind: Kind
    wants_json: bool = False
    has_votes: bool = False

    def temperature(self, options: ServerJudgeOptions) -> float:
        """Return the temperature of the answer."""
        if self.kind is QuestionKind.QUESTIONS:
            return QUESTIONS_TEMPERATURE
        return VOTES_TEMPERATURE if self.has_votes else options.temperature


def get_request_mode(question: JudgeQuestion) -> RequestMode:
    """Return the mode in which a question is asked.

    >>> from metric_core.prompts.judge_questions import ask_verdict
    >>> get_request_mode(ask_verdict("It rains.", "Rain."))
    RequestMode(kind=<QuestionKind.VERDICT: 'verdict'>, wants_json=False, has_votes=False)
    """
    if isinstance(question, ChoiceQuestion):
        return RequestMode(question.kind, has_votes=question.votes > 1)
    return RequestMode(question.kind, wants_json=True, has_votes=vote_number(question.schema) is not None)


def all_request_modes(kind: Kind) -> Iterator[RequestMode]:
    """Yield the modes in which stages ask questions of a kind; metrics may ask ratings in any mode."""
    if isinstance(kind, CustomKind) or kind in RATING_KINDS:
        yield from (
            RequestMode(kind, wants_json, has_votes) for wants_json in (False, True) for has_votes in (False, True)
        )
    else:
        yield RequestMode(kind, wants_json=kind not in _CHOICE_KINDS)


def vote_number(schema: Mapping[str, object]) -> int | None:
    """Return the number of the vote that a schema's title names; None if the question has only one vote.

    >>> vote_number({"title": "vote 2"}), vote_number({"title": "Rating"})
    (2, None)
    """
    match = _VOTE_TITLE.fullmatch(str(schema.get("title")))
    return int(match[1]) if match else None


def determinants(mode: RequestMode, features: ServerFeatures, options: ServerJudgeOptions) -> dict[str, dict[str, Any]]:
    """Return the server features and options that an answer depends on, besides its question and prompt.

    Options that are not sent count as unset. All others are included unless they are known to have no effect.

    Returns:
        The features under `server` and the options under `options`.
    """
    is_sampled = mode.temperature(options) > 0
    server = {name: value for name, value in asdict(features).items() if name not in _IRRELEVANT_FEATURES}
    settings = {name: value for name, value in options.determining().items() if name not in _IRRELEVANT_OPTIONS}
    if mode.wants_json or not mode.has_votes:
        del server["several"]
    settings["max_tokens_per_byte"] = TOKENS_PER_BYTE
    if mode.kind is QuestionKind.QUESTIONS:
        del settings["temperature"]
        settings["questions_temperature"] = QUESTIONS_TEMPERATURE
    else:
        settings["votes_temperature"] = VOTES_TEMPERATURE
    server["reasons"] = features.reasons or options.thinking  # either gives the reply the full limit
    server |= {name: getattr(_UNUSED_FEATURES, name) for name in _unused_features(mode, features, is_sampled)}
    settings |= {
        name: _UNUSED_OPTIONS[name] for name in _unused_options(mode, features, options, is_sampled) if name in settings
    }
    return {"server": server, "options": settings}


def _unused_features(mode: RequestMode, features: ServerFeatures, is_sampled: bool) -> Iterator[str]:
    yield from ("choice", "top_logprobs") if mode.wants_json else ("json", "list_limits", "reasons")
    if features.json is JsonConstraint.NONE:
        yield "list_limits"
    if not is_sampled:
        yield "seed"


def _unused_options(
    mode: RequestMode, features: ServerFeatures, options: ServerJudgeOptions, is_sampled: bool
) -> Iterator[str]:
    if mode.has_votes:
        yield "temperature"
    if not (is_sampled and features.seed):
        yield "seed"
    if not (mode.wants_json or options.thinking):
        yield "max_output_tokens"
    if mode.wants_json and not features.thinking_switch:
        yield "thinking"
