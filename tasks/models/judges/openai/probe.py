"""Probe the features of a server with small requests, and trust only observed behavior.

A server that does not know a field may reject the request or ignore the field. A constraint therefore counts as
supported only if the reply obeys it and no model would write that reply without it. An error that is not a refusal, or
a reply that cannot be read, proves nothing: the feature is then among those that could not be probed.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from metric_core.prompts.prompt_set import RenderedPrompt
from metric_core.prompts.reply_schemas import object_schema
from tasks.models.clients.jobs import Request, UnusableError
from tasks.models.clients.probe_result import ProbeResult, describe_unknown, read_probe
from tasks.models.clients.replica import Reply, get_choices, get_mapping, get_model, get_reported_count
from tasks.models.clients.served_model import ServedModel
from tasks.models.judges.openai.completion import UNFINISHED_THOUGHT, is_readable, read_completions
from tasks.models.judges.openai.model_probe import CHAT
from tasks.models.judges.openai.reply_parsing import parse_choice_answer, parse_generate_answer
from tasks.models.judges.openai.request_body import (
    Body,
    chat_messages,
    choice_constraint,
    common_fields,
    json_constraint,
)
from tasks.models.judges.openai.server_features import ChoiceConstraint, JsonConstraint, ServerFeatures
from tasks.options.judge_server_options import ServerJudgeOptions

PROBES = 2
"""Version of the probes; increase it when features are found in another way."""

COMPLETIONS = "completions"
TOKENIZE = "/tokenize"
TOKENIZER = "tokenizer"
"""Name of the feature that this path shows."""

VLLM, LLAMA = "vLLM", "llama.cpp"

TASK = "Reply with the word hello."
LABELS = ("qx7", "zk4")
SCHEMA = object_schema({"qx7": {"type": "string", "enum": ["zk4"]}})
"""A schema whose values no model writes unconstrained when asked for the word hello."""

LIST_SCHEMA = object_schema(
    {"qx7": {"type": "array", "items": {"type": "integer", "enum": [7]}, "minItems": 3, "maxItems": 3}}
)
"""A schema whose list has a length that no model chooses by itself."""

LIST_TOKENS = 96
"""Enough tokens for this list with a number per line."""

LOGPROBS = (20, 10, 5)
"""Numbers of top log-probabilities to try, because servers have different limits."""

SHORT_REPLY_TOKENS = 32


def probe(served: ServedModel, options: ServerJudgeOptions, system: str) -> ServerFeatures:
    """Probe the features of the servers.

    Args:
        options: Judge options with the thinking mode of the model.
        system: System message of the prompts, so that the probes match later requests.

    Raises:
        UnusableError: The servers cannot be reached, or do not answer the simplest request.
    """
    software, problem = read_software(served)
    unknown = {} if problem is None else {"version": problem}
    features = ServerFeatures(served.name, software, find_window(served, options), unknown=unknown)
    return _Probe(served, options, RenderedPrompt(system, TASK, "")).run(features)


def find_window(served: ServedModel, options: ServerJudgeOptions) -> int | None:
    """Return the tokens of the context window: as configured, else the least that a server reports."""
    return options.context_window or min(served.windows, default=None)


def simplest_request(features: ServerFeatures, options: ServerJudgeOptions, system: str) -> Request:
    """Return a request that every working server answers, in the format of its features."""
    messages = {"messages": chat_messages(RenderedPrompt(system, TASK, ""), features.system_role)}
    body = common_fields(features, options) | messages | {features.limit_field: 1, "temperature": 0.0}
    return Request(CHAT, body, optional=True)


class _Probe:
    def __init__(self, served: ServedModel, options: ServerJudgeOptions, prompt: RenderedPrompt) -> None:
        self._connection = served.connection
        self._options = options
        self._prompt = prompt
        self._reports_cached_tokens = False
        self._names: set[str] = set()
        self._unknown: dict[str, str] = {}

    def run(self, features: ServerFeatures) -> ServerFeatures:
        features = self._probe_request_format(features)
        (switched,) = self._send([self._attempt(replace(features, thinking_switch=True), {})])
        has_switch = self._find("thinking_switch", switched, is_readable(switched), switched.is_answer)
        features = self._probe_independent(replace(features, thinking_switch=has_switch))
        return replace(
            features,
            cached_tokens=self._reports_cached_tokens,
            reply_models=tuple(sorted(self._names - {features.model})),
            unknown=dict(features.unknown) | self._unknown,
        )

    def _find(self, feature: str, reply: Reply, is_read: bool, shows: bool) -> bool:
        """Return whether a probe shows a feature; note the feature if the probe does not tell."""
        result = read_probe(reply, is_read=is_read, shows=shows)
        if result is ProbeResult.UNKNOWN:
            self._unknown.setdefault(feature, describe_unknown(reply))
        return result is ProbeResult.YES

    def _probe_independent(self, features: ServerFeatures) -> ServerFeatures:
        """Probe the features that do not depend on each other, concurrently, with those of the best constraints."""
        choices = [kind for kind in ChoiceConstraint if kind is not ChoiceConstraint.NONE]
        schemas = [kind for kind in JsonConstraint if kind is not JsonConstraint.NONE]
        attempts: dict[Hashable, Request] = {
            **{("choice", kind): self._attempt(features, choice_constraint(kind, LABELS)) for kind in choices},
            **{("json", kind): self._attempt(features, json_constraint(kind, SCHEMA)) for kind in schemas},
            "seeded": self._attempt(features, {"temperature": 0.7, "seed": 0}),
            "several": self._attempt(features, {"temperature": 0.7, "n": 2}),
            "lists": self._list_attempt(features, schemas[0]),
            "logprobs": self._logprobs_attempt(features, choices[0], LOGPROBS[0]),
            TOKENIZE: Request(TOKENIZE, self._body(features, {}), optional=True),
            COMPLETIONS: Request(
                COMPLETIONS, {"model": features.model, "prompt": [TASK, TASK], "max_tokens": 1}, optional=True
            ),
        }
        replies = dict(zip(attempts, self._send(list(attempts.values())), strict=True))
        counted, completed = replies[TOKENIZE], replies[COMPLETIONS]
        written = get_choices(completed)
        # A kind that could not be probed matters only if none of the better ones is there.
        obeyed_choices = (
            kind
            for kind in choices
            if self._find_chat("choice", reply := replies["choice", kind], _is_label(reply, features, kind))
        )
        obeyed_schemas = (
            kind for kind in schemas if self._find_chat("json", reply := replies["json", kind], _fits_schema(reply))
        )
        choice = next(obeyed_choices, ChoiceConstraint.NONE)
        json = next(obeyed_schemas, JsonConstraint.NONE)
        top_logprobs, impossible = self._probe_top_logprobs(
            features, choice, replies["logprobs"] if choice is choices[0] else None
        )
        return replace(
            features,
            choice=choice,
            json=json,
            list_limits=self._probe_list_limits(features, json, replies["lists"] if json is schemas[0] else None),
            top_logprobs=top_logprobs,
            impossible_logprobs=impossible,
            reasons=any(_reasons(reply) for kind, reply in replies.items() if kind not in (TOKENIZE, COMPLETIONS)),
            seed=self._find_chat("seed", replies["seeded"], shows=True),
            several=self._find_chat("several", replies["several"], len(get_choices(replies["several"])) == 2),
            tokenizer=self._find(TOKENIZER, counted, is_read=True, shows=read_token_count(counted) is not None),
            prompt_lists=self._find("prompt_lists", completed, bool(written), len(written) == 2),
        )

    def _find_chat(self, feature: str, reply: Reply, shows: bool) -> bool:
        return self._find(feature, reply, is_readable(reply), shows)

    def _probe_request_format(self, features: ServerFeatures) -> ServerFeatures:
        """Find the format of the simplest request that the server answers."""
        candidates = [
            replace(features, system_role=system_role, limit_field=field)
            for system_role in (True, False)
            for field in ("max_tokens", "max_completion_tokens")
        ]
        refusals = []
        for candidate in candidates:
            simplest = simplest_request(candidate, self._options, self._prompt.system)
            (reply,) = self._send([simplest])
            if self._find("request format", reply, is_read=True, shows=True):
                self._connection.set_simplest(replace(simplest, optional=False))
                return candidate
            refusals.append(f"{reply.status}: {reply.message}")
        raise UnusableError(
            f"the judge server does not answer a simple chat request to the model {features.model!r}: {refusals[0]}. "
            "The model must be a chat model (with a chat template)"
        )

    def _probe_list_limits(self, features: ServerFeatures, kind: JsonConstraint, reply: Reply | None) -> bool:
        """Return whether the length of a list can be limited.

        Args:
            features: Features that are known.
            kind: Constraint to use.
            reply: Reply to the request with this constraint, if it was sent.
        """
        if kind is JsonConstraint.NONE:
            return False
        if reply is None:
            (reply,) = self._send([self._list_attempt(features, kind)])
        return self._find_chat("list_limits", reply, _fits_schema(reply, LIST_SCHEMA))

    def _list_attempt(self, features: ServerFeatures, kind: JsonConstraint) -> Request:
        return self._attempt(features, json_constraint(kind, LIST_SCHEMA) | {features.limit_field: LIST_TOKENS})

    def _probe_top_logprobs(
        self, features: ServerFeatures, kind: ChoiceConstraint, first: Reply | None
    ) -> tuple[int, str | None]:
        """Return the number of top log-probabilities, 0 with the reason if they are impossible.

        Args:
            features: Features that are known.
            kind: Constraint to use.
            first: Reply to the request with this constraint and the largest number, if it was sent.
        """
        for number in LOGPROBS:
            reply, first = first, None
            if reply is None:
                (reply,) = self._send([self._logprobs_attempt(features, kind, number)])
            if self._find_chat("top_logprobs", reply, any(map(_has_top_logprobs, get_choices(reply)))):
                impossible = next((done.impossible for done in read_completions(reply) if done.impossible), None)
                return 0 if impossible else number, impossible
        return 0, None

    def _logprobs_attempt(self, features: ServerFeatures, kind: ChoiceConstraint, number: int) -> Request:
        return self._attempt(features, choice_constraint(kind, LABELS) | {"logprobs": True, "top_logprobs": number})

    def _attempt(self, features: ServerFeatures, extra: Body) -> Request:
        """Return a chat request with extra fields that the server may not know and may reject."""
        limit = self._options.max_output_tokens if self._options.thinking else SHORT_REPLY_TOKENS
        body = self._body(features, {features.limit_field: limit, "temperature": 0.0} | extra)
        return Request(CHAT, body, optional=True)

    def _send(self, requests: Sequence[Request]) -> list[Reply]:
        """Send requests; ask with the full limit once more where a model had not finished its thoughts."""
        replies = self._connection.send(requests)
        unfinished = [
            i
            for i, reply in enumerate(replies)
            if reply.is_answer and requests[i].path == CHAT and _is_unfinished(reply)
        ]
        longer = [self._with_full_limit(requests[i]) for i in unfinished]
        for i, reply in zip(unfinished, self._connection.send(longer) if longer else (), strict=True):
            replies[i] = reply
        self._reports_cached_tokens = self._reports_cached_tokens or any(
            get_reported_count(reply, "cached_tokens") is not None for reply in replies
        )
        self._names |= {name for reply in replies if (name := get_model(reply)) is not None}
        return replies

    def _with_full_limit(self, request: Request) -> Request:
        limits = {
            name: self._options.max_output_tokens
            for name in ("max_tokens", "max_completion_tokens")
            if name in request.body
        }
        return replace(request, body={**request.body, **limits})

    def _body(self, features: ServerFeatures, extra: Body) -> Body:
        messages = {"messages": chat_messages(self._prompt, features.system_role)}
        return common_fields(features, self._options) | messages | extra


def read_token_count(reply: Reply) -> int | None:
    """Return the number of tokens in a reply of `/tokenize`; None if the reply has none."""
    count = reply.content.get("count") if reply.is_answer else None
    return count if isinstance(count, int) else None


def read_software(served: ServedModel) -> tuple[str, str | None]:
    """Return the name and version of the server software, which is informational only.

    Returns:
        The name, and why the version could not be read; None if it was, or if the server has none.
    """
    if not served.is_vllm:
        return (LLAMA if served.has_slots else ServerFeatures("").software), None
    replies = served.connection.get_all("/version").values()
    versions = [reply.content.get("version") for reply in replies if reply.is_answer]
    unknown = [
        describe_unknown(reply)
        for reply in replies
        if read_probe(reply, is_read=True, shows=True) is ProbeResult.UNKNOWN
    ]
    name = f"{VLLM} {versions[0] or ''}".strip() if versions else VLLM
    return name, unknown[0] if unknown and not versions else None


def _is_unfinished(reply: Reply) -> bool:
    return any(done.problem == UNFINISHED_THOUGHT for done in read_completions(reply))


def _is_label(reply: Reply, features: ServerFeatures, constraint: ChoiceConstraint) -> bool:
    """Return whether a reply is one of the labels that the constraint allows."""
    name = get_model(reply)
    features = replace(features, choice=constraint, reply_models=() if name is None else (name,))
    return reply.is_answer and parse_choice_answer([reply], LABELS, 1, features).label is not None


def _fits_schema(reply: Reply, schema: Mapping[str, object] = SCHEMA) -> bool:
    """Return whether a reply fits the schema of a probe."""
    return reply.is_answer and parse_generate_answer(reply, schema).value is not None


def _reasons(reply: Reply) -> bool:
    """Return whether the model reasoned before it replied, visibly or not."""
    if not reply.is_answer:
        return False
    is_visible = any(done.thought or done.problem == UNFINISHED_THOUGHT for done in read_completions(reply))
    return is_visible or bool(get_reported_count(reply, "reasoning_tokens"))


def _has_top_logprobs(choice: Mapping[str, object]) -> bool:
    content = get_mapping(choice, "logprobs").get("content")
    tokens = content if isinstance(content, list) else []
    return any(isinstance(token, Mapping) and token.get("top_logprobs") for token in tokens)
