"""Finds out what a server can do by asking it small things, and believes only what it sees done.

A server that does not know a field may refuse the request, but may as well ignore it. So a constraint counts as
supported if a reply obeys it that nobody would give by themselves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from metric_core.judge_questions import object_schema
from metric_core.prompts.prompt_set import RenderedPrompt
from tasks.judges.openai.reply_parsing import choice_answer, generate_answer
from tasks.judges.openai.request_body import Body, chat_messages, choice_constraint, json_constraint
from tasks.judges.openai.server_features import ChoiceConstraint, JsonConstraint, ServerFeatures
from tasks.model_clients.connection import Connection
from tasks.model_clients.model_names import list_models
from tasks.model_clients.replica import Reply
from tasks.model_clients.replica_pool import Request, UnusableError
from tasks.model_clients.reply_fields import get_choices, get_mapping, get_reported_count
from tasks.options.judge_server_options import ServerJudgeOptions

CHAT = "chat/completions"
COMPLETIONS = "completions"
TOKENIZE = "/tokenize"

TASK = "Reply with the word hello."
LABELS = ("qx7", "zk4")
SCHEMA = object_schema({"qx7": {"type": "string", "enum": ["zk4"]}})
"""What no model writes by itself when asked for the word hello."""

LOGPROBS = (20, 10, 5)
"""Numbers of top log-probabilities to ask for; servers have limits of their own."""

SHORT = 32


def probe(connection: Connection, options: ServerJudgeOptions, system: str) -> ServerFeatures:
    """What the servers can do.

    Args:
        connection: to servers that all serve the same model.
        options: the model, and whether it may think.
        system: the system message of the prompts, so that what works is what will be used.

    Raises:
        UnusableError: the servers can not be reached, do not have the model, or do not answer the simplest request.
    """
    cards = list_models(connection.look("models"), options.model)
    windows = [window for card in cards if isinstance(window := card.get("max_model_len"), int) and window > 0]
    window = options.window or min(windows, default=None)
    found = ServerFeatures(cards[0]["id"], _software(connection, cards[0]), window)
    return _Probe(connection, options, RenderedPrompt(system, TASK, "")).run(found)


class _Probe:
    def __init__(self, connection: Connection, options: ServerJudgeOptions, prompt: RenderedPrompt) -> None:
        self._connection = connection
        self._options = options
        self._prompt = prompt
        self._tells_cached = False

    def run(self, found: ServerFeatures) -> ServerFeatures:
        found = self._basics(found)
        (switched,) = self._try(found, [{"chat_template_kwargs": {"enable_thinking": self._options.thinking}}])
        found = self._independent(replace(found, thinking_switch=switched.is_answer))
        return replace(found, top_logprobs=self._top_logprobs(found), cached_tokens=self._tells_cached)

    def _independent(self, found: ServerFeatures) -> ServerFeatures:
        """What does not depend on one another, asked at the same time."""
        choices = {how: choice_constraint(how, LABELS) for how in ChoiceConstraint if how is not ChoiceConstraint.NONE}
        schemas = {how: json_constraint(how, SCHEMA) for how in JsonConstraint if how is not JsonConstraint.NONE}
        sampled: list[Body] = [{"temperature": 0.7, "seed": 0}, {"temperature": 0.7, "n": 2}]
        *held, seeded, several = self._try(found, [*choices.values(), *schemas.values(), *sampled])
        chosen = [how for how, reply in zip(choices, held[: len(choices)], strict=True) if _is_label(reply, found, how)]
        written = [how for how, reply in zip(schemas, held[len(choices) :], strict=True) if _fits_schema(reply)]
        (counted,) = self._post(found, TOKENIZE, [{}])
        listed = {"model": found.model, "prompt": [TASK, TASK], "max_tokens": 1}
        (both,) = self._connection.send([Request(COMPLETIONS, listed, optional=True)])
        return replace(
            found,
            choice=next(iter(chosen), ChoiceConstraint.NONE),
            json=next(iter(written), JsonConstraint.NONE),
            seed=seeded.is_answer,
            several=len(get_choices(several)) == 2,
            tokenizer=read_count(counted) is not None,
            prompt_lists=len(get_choices(both)) == 2,
        )

    def _basics(self, found: ServerFeatures) -> ServerFeatures:
        """How the simplest request must look."""
        forms = [
            replace(found, system_role=system_role, limit_field=field)
            for system_role in (True, False)
            for field in ("max_tokens", "max_completion_tokens")
        ]
        refusals = []
        for form in forms:
            extra = {form.limit_field: 1, "temperature": 0.0}
            (reply,) = self._post(form, CHAT, [extra])
            if reply.is_answer:
                self._connection.expect(Request(CHAT, self._body(form, extra)))
                return form
            refusals.append(f"{reply.status}: {reply.message}")
        raise UnusableError(
            f"the judge server does not answer a simple chat request to the model {found.model!r}: {refusals[0]}. "
            "The model must be a chat model (with a chat template)"
        )

    def _top_logprobs(self, found: ServerFeatures) -> int:
        for number in LOGPROBS:
            asked = choice_constraint(found.choice, LABELS) | {"logprobs": True, "top_logprobs": number}
            (reply,) = self._try(found, [asked])
            if any(_has_top_logprobs(choice) for choice in get_choices(reply)):
                return number
        return 0

    def _try(self, found: ServerFeatures, extras: Sequence[Body]) -> list[Reply]:
        """The replies to chat requests, each with something in it that the server may not know and then refuses."""
        limit = self._options.max_output_tokens if self._options.thinking else SHORT
        return self._post(found, CHAT, [{found.limit_field: limit, "temperature": 0.0} | extra for extra in extras])

    def _post(self, found: ServerFeatures, path: str, extras: Sequence[Body]) -> list[Reply]:
        replies = self._connection.send([Request(path, self._body(found, extra), optional=True) for extra in extras])
        self._tells_cached = self._tells_cached or any(
            get_reported_count(reply, "cached_tokens") is not None for reply in replies
        )
        return replies

    def _body(self, found: ServerFeatures, extra: Body) -> Body:
        switch: Body = {}
        if found.thinking_switch:
            switch = {"chat_template_kwargs": {"enable_thinking": self._options.thinking}}
        return {"model": found.model, "messages": chat_messages(self._prompt, found.system_role)} | switch | extra


def read_count(reply: Reply) -> int | None:
    """The number of tokens in a reply of `/tokenize`; None if it is none."""
    count = reply.content.get("count") if reply.is_answer else None
    return count if isinstance(count, int) else None


def _software(connection: Connection, card: Mapping[str, Any]) -> str:
    """What the server calls itself. For people: nothing depends on it."""
    if card.get("owned_by") != "vllm":
        return ServerFeatures("").software
    versions = [reply.content.get("version") for reply in connection.look("/version").values() if reply.is_answer]
    return f"vLLM {versions[0] or ''}".strip() if versions else "vLLM"


def _is_label(reply: Reply, found: ServerFeatures, how: ChoiceConstraint) -> bool:
    """Whether a reply is one of the labels that it was to be held to."""
    return reply.is_answer and choice_answer([reply], LABELS, 1, replace(found, choice=how)).label is not None


def _fits_schema(reply: Reply) -> bool:
    """Whether a reply fits the schema that it was to be held to."""
    return reply.is_answer and generate_answer(reply, SCHEMA).value is not None


def _has_top_logprobs(choice: Mapping[str, Any]) -> bool:
    content = get_mapping(choice, "logprobs").get("content")
    tokens = content if isinstance(content, list) else []
    return any(isinstance(token, Mapping) and token.get("top_logprobs") for token in tokens)
