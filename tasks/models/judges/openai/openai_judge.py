"""The server judge: asks a language model behind one or several OpenAI-compatible servers."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, TypeVar

from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, JudgeQuestion, Kind
from metric_core.prompts.prompt_set import RenderedPrompt, load_prompts
from metric_core.records import AnswerStatus
from tasks.metering.accounts import account_of
from tasks.models.clients.jobs import Request, RequestObserver
from tasks.models.clients.joint_requests import Companions
from tasks.models.clients.observed_model import UNKNOWN, ModelMemory, NoMemory, RecognizedModel
from tasks.models.clients.probe_result import ProbeResult, describe_unknown, describe_unprobed
from tasks.models.clients.replica import Reply
from tasks.models.clients.served_model import ServedModel
from tasks.models.judges.openai import label_probabilities
from tasks.models.judges.openai.batch_probe import batch_request, takes_batches
from tasks.models.judges.openai.context_window import MIN_REPLY_TOKENS, TOO_LONG, estimate_max_tokens, remaining_tokens
from tasks.models.judges.openai.grouping import Grouping
from tasks.models.judges.openai.model_probe import CHAT, FEW, model_requests, read_model
from tasks.models.judges.openai.probe import (
    PROBES,
    TOKENIZE,
    VLLM,
    find_window,
    probe,
    read_software,
    read_token_count,
    simplest_request,
)
from tasks.models.judges.openai.reply_collector import ReplyCollector
from tasks.models.judges.openai.reply_limits import fills_its_list, max_reply_tokens, repeats_itself
from tasks.models.judges.openai.reply_parsing import (
    ENDLESS,
    OTHER_MODEL,
    describe_impossible,
    find_other_model,
    parse_choice_answer,
    parse_generate_answer,
)
from tasks.models.judges.openai.request_body import Body, chat_messages, generate_request_body
from tasks.models.judges.openai.request_mode import RequestMode, all_request_modes, determinants, get_request_mode
from tasks.models.judges.openai.server_features import ServerFeatures
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer, JudgeIdentity, OnChoiceAnswer, OnGenerateAnswer
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.runtime.wording import NO_REVISION

VERSION = 2
"""Increase it whenever the same question would be asked, or its answer parsed, in another way."""

_AFFINITY_CHARACTERS = 512
"""Beginning of a prompt that selects its replica: joined contexts go where their first passage went."""

_NEARLY = 0.9
"""Servers count the tokens of a reply differently, with or without its end."""

A = TypeVar("A", ChoiceAnswer, GenerateAnswer)


def _generate_overflow(description: str) -> GenerateAnswer:
    return GenerateAnswer(AnswerStatus.FAILED, reason=TOO_LONG, reply=description)


@dataclass(frozen=True, slots=True)
class _PendingQuestion:
    """A question with its prompt and requests; instead of requests it may have the description of an overflow."""

    prompt: RenderedPrompt
    bodies: Sequence[Body]
    overflow: str | None = None
    companions: Sequence[Companions | None] | None = None
    """With which other requests each may be sent; None if all must be sent alone."""
    writes: bool = False
    """Whether the reply is a text."""


class OpenAIJudge:
    """A judge that asks a language model on a server. Thread-safe; threads share the connection.

    Creating the judge probes the features of the server.

    Args:
        options: URLs of the servers, model and sampling options.
        memory: The models that gave cached answers, with what was learnt about their servers.

    Raises:
        ConfigError: The environment variable of the key is not set, or the prompts cannot be loaded.
        JudgeError: No server can be reached, the key is rejected, or the model is not available.
    """

    def __init__(self, options: ServerJudgeOptions, memory: ModelMemory | None = None) -> None:
        self._options = options
        self._prompts = load_prompts(options.prompt_source)
        self._fingerprints: dict[RequestMode, str] = {}
        self._refused: str | None = None  # why probabilities are not used, once a reply had impossible ones
        with ServedModel.opening("judge", options) as self._served:
            memory, learnt = memory or NoMemory(), self._describe_probes()
            known = self._recall(memory, learnt)
            self.features = known or self._probe_model(probe(self._served, options, self._prompts.system))
            self._grouping = Grouping(self.features, options)
            unknown = self.features.unknown
            self._served.recognize(
                memory, {UNKNOWN: list(unknown)} if unknown else learnt | {"features": asdict(self.features)}
            )

    @property
    def recognized(self) -> RecognizedModel:
        """The model behind the servers, compared with those seen before."""
        return self._served.recognized

    @property
    def identity(self) -> JudgeIdentity:
        """The identity of the model."""
        features = self.features
        note = f"{features.model} served by {features.software} at {self._served.place}"
        revision, served = self._options.revision or NO_REVISION, self.recognized.token
        return JudgeIdentity("server", features.model, revision, note, language_model=True, served=served)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences for users about the servers, found when the judge was opened."""
        features = self.features
        found = [*self._served.warnings]
        if features.unknown:
            found.append(describe_unprobed("the judge server", features.unknown))
        if features.impossible_logprobs is not None:
            found.append(describe_impossible(features.impossible_logprobs))
        root = str(self._served.observed.told.get("root", features.model))
        strange = [
            name for name in features.reply_models if not name.startswith((features.model, root)) and name not in root
        ]
        if strange:
            found.append(
                f"the judge server was asked for {features.model!r}, but its replies name {', '.join(strange)}"
            )
        return tuple(found)

    def _describe_probes(self) -> dict[str, Any]:
        """Return what the features depend on besides the server's model, in the form of JSON."""
        options = self._options
        software, _ = read_software(self._served)
        told = [PROBES, software, self._prompts.system, options.thinking, options.extra_body]
        return {"probes": hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]}

    def _recall(self, memory: ModelMemory, learnt: Mapping[str, object]) -> ServerFeatures | None:
        """Return the features of a known server if it still has its model, which a few questions show."""
        served, options = self._served, self._options
        for known in reversed(memory.recall("judge", served.name)):
            features = ServerFeatures.from_json(known.learnt.get("features", {}))
            if features is None or known.learnt.get("probes") != learnt["probes"] or not served.seems(known):
                continue
            served.connection.set_simplest(
                replace(simplest_request(features, options, self._prompts.system), optional=False)
            )
            served.observe(
                model_requests(features, options, FEW), partial(read_model, features=features, positions=FEW)
            )
            if served.is_still(known, FEW):
                return replace(features, window=find_window(served, options))
            break
        return None

    def _probe_model(self, features: ServerFeatures) -> ServerFeatures:
        """Identify the model of each replica, and return the features with those that its replies show."""
        requests = model_requests(features, self._options)
        replies = self._served.observe(requests, lambda given: read_model(given, features))
        (together,) = self._served.connection.send([batch_request(requests, features)])
        alone = next(iter(replies.values()))
        result = takes_batches(together, requests, alone, features)
        unknown = {"batches": describe_unknown(together)} if result is ProbeResult.UNKNOWN else {}
        return replace(features, batches=result is ProbeResult.YES, unknown={**features.unknown, **unknown})

    def can_answer(self, kind: Kind) -> bool:  # noqa: ARG002
        """Return True: a language model can answer any kind."""
        return True

    def fingerprint(self, kind: Kind) -> str:
        """Return a digest of everything but the questions that determines answers of a kind, in any request mode.

        URLs, connection settings and the context window are not part of it.
        """
        digests = [self._fingerprint(mode) for mode in all_request_modes(kind)]
        return digests[0] if len(digests) == 1 else hashlib.sha256(json.dumps(digests).encode()).hexdigest()

    def fingerprint_of(self, question: JudgeQuestion) -> str:
        """Return a digest of everything but the question's content that determines its answer."""
        return self._fingerprint(get_request_mode(question))

    def _fingerprint(self, mode: RequestMode) -> str:
        if mode not in self._fingerprints:
            record: dict[str, object] = {"version": VERSION, "prompt": self._prompts.digest(mode.kind)}
            record["model"] = self.recognized.token
            record |= {} if mode.wants_json else {"labels": label_probabilities.VERSION}
            record |= determinants(mode, self.features, self._options)
            self._fingerprints[mode] = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
        return self._fingerprints[mode]

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        """Answer choice questions, with the probabilities of the labels if the server returns log-probabilities."""
        pending = []
        for question in questions:
            prompt = self._prompts.render(question)
            messages = chat_messages(prompt, self.features.system_role)
            grouped = self._grouping.of_choice(question)
            bodies = [{**parameters, "messages": messages} for parameters, _ in grouped]
            pending.append(_PendingQuestion(prompt, bodies, companions=[companions for _, companions in grouped]))

        def parse(position: int, replies: Sequence[Reply]) -> ChoiceAnswer:
            question = questions[position]
            answer = parse_choice_answer(replies, question.labels, question.votes, self.features)
            if answer.status is AnswerStatus.ANSWERED and self._refused is None:
                self._refused = answer.warning
            if self._refused is None or answer.status is not AnswerStatus.ANSWERED:
                return answer
            return replace(answer, probabilities=None, warning=self._refused)

        def overflow_answer(description: str) -> ChoiceAnswer:
            return ChoiceAnswer(AnswerStatus.FAILED, reason=TOO_LONG, reply=description)

        return self._ask(pending, parse, overflow_answer, lambda i, answer: self._report(i, answer, on_answer))

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        """Answer generate questions. A reply that is cut off and does not repeat itself is asked for once more."""
        pending = []
        for question in questions:
            prompt = self._prompts.render(question)
            body = generate_request_body(prompt, question, self.features, self._options)
            companions = self._grouping.of_text(body)
            pending.append(_PendingQuestion(prompt, [body], companions=[companions], writes=True))
        cut: dict[int, GenerateAnswer] = {}

        def deserves_more(position: int, answer: GenerateAnswer) -> bool:
            if answer.cut_off is None or repeats_itself(answer.reply or ""):
                return False
            limit = max_reply_tokens(questions[position], self.features, self._options)
            # A reply that ends before its limit was cut off by the context window, or by the server.
            return _NEARLY * limit <= answer.cut_off < self._options.max_output_tokens

        def on_first(position: int, answer: GenerateAnswer) -> None:
            if deserves_more(position, answer):
                cut[position] = answer
            else:
                self._report(position, answer, on_answer)

        answers = self._ask(pending, self._generate_parser(questions), _generate_overflow, on_first)
        again = sorted(cut)

        def on_second(index: int, answer: GenerateAnswer) -> None:
            position = again[index]
            answers[position] = replace(answer, usage=cut[position].usage + answer.usage)
            self._report(position, answers[position], on_answer)

        if again:
            longest = {self.features.limit_field: self._options.max_output_tokens}
            longer = [
                replace(pending[i], bodies=[body | longest for body in pending[i].bodies], companions=None)
                for i in again
            ]
            parse = self._generate_parser([questions[i] for i in again])
            self._ask(longer, parse, _generate_overflow, on_second)
        return answers

    def _generate_parser(
        self, questions: Sequence[GenerateQuestion]
    ) -> Callable[[int, Sequence[Reply]], GenerateAnswer]:
        def parse(position: int, replies: Sequence[Reply]) -> GenerateAnswer:
            question = questions[position]
            if (other := find_other_model(replies, self.features)) is not None:
                return GenerateAnswer(AnswerStatus.FAILED, reason=OTHER_MODEL, warning=other)
            limit = max_reply_tokens(question, self.features, self._options)
            answer = parse_generate_answer(replies[0], question.schema, limit, self.features.cached_tokens)
            if answer.status is AnswerStatus.ANSWERED and fills_its_list(question, answer.value):
                return replace(answer, status=AnswerStatus.FAILED, value=None, reason=ENDLESS)
            return answer

        return parse

    def _report(self, position: int, answer: A, on_answer: Callable[[int, A], None] | None) -> None:
        """Report an answer, and count it for the display if its reply was cut off."""
        if answer.cut_off is not None:
            self._served.connection.activity.count_cut_off(answer.cut_off)
        if on_answer is not None:
            on_answer(position, answer)

    def close(self) -> None:
        """Close the connections to the servers. Happens automatically at the end of the process."""
        self._served.close()

    def _ask(
        self,
        pending: Sequence[_PendingQuestion],
        parse: Callable[[int, Sequence[Reply]], A],
        overflow_answer: Callable[[str], A],
        on_answer: Callable[[int, A], None] | None,
    ) -> list[A]:
        """Send the requests and return the answers, in the order of the questions.

        Requests are sorted by prompt prefix, which makes the server's prefix cache effective. Replies are parsed
        while other requests are in flight.
        """
        fitted = self._fit_to_window(pending)
        collector = ReplyCollector([len(question.bodies) for question in fitted], parse, on_answer)
        requests, sources = [], []
        for i in sorted(range(len(fitted)), key=lambda i: fitted[i].prompt.prefix_key):
            overflow = fitted[i].overflow
            if overflow is not None:
                collector.set_answer(i, overflow_answer(overflow))
            affinity, companions = fitted[i].prompt.prefix_key[:_AFFINITY_CHARACTERS], fitted[i].companions
            for number, body in enumerate(fitted[i].bodies):
                together = None if companions is None else companions[number]
                requests.append(Request(CHAT, body, affinity, companions=together, writes=fitted[i].writes))
                sources.append((i, number))
        observer = self._observer(fitted[i].prompt for i, _ in sources)
        self._served.send(requests, lambda position, reply: collector.add(*sources[position], reply), observer)
        return collector.answers

    def _observer(self, prompts: Iterable[RenderedPrompt]) -> RequestObserver | None:
        """Return the observer of the run's questions, which counts them; None outside a run.

        Args:
            prompts: Prompts of the questions, in the order of their requests.
        """
        texts = ((f"{prompt.system}{prompt.user}", len(prompt.system) + len(prompt.prefix_key)) for prompt in prompts)
        has_counters = self.features.software.startswith(VLLM)
        return self._served.meter(account_of(self._options, self.features.model), texts, has_counters=has_counters)

    def _fit_to_window(self, pending: Sequence[_PendingQuestion]) -> list[_PendingQuestion]:
        """Limit the replies to the tokens left in the context window; mark questions whose prompts leave too few."""
        window, field = self.features.window, self.features.limit_field
        if window is None:
            return list(pending)
        fitted = list(pending)
        limits = [question.bodies[0][field] for question in pending]
        tight = [i for i, question in enumerate(pending) if estimate_max_tokens(question.prompt) + limits[i] > window]
        for i, tokens in zip(tight, self._count_tokens([pending[i] for i in tight]), strict=True):
            left = remaining_tokens(tokens, limits[i], window)
            if left is not None:
                bodies = [body | {field: left} for body in pending[i].bodies]
                # It is sent alone: its limit is that of no other.
                fitted[i] = replace(pending[i], bodies=bodies, companions=None)
            elif self._detects_overflow:
                fitted[i] = _PendingQuestion(pending[i].prompt, (), f"{tokens} of {window} tokens")
            else:
                shortest = min(MIN_REPLY_TOKENS, limits[i])
                bodies = [body | {field: shortest} for body in pending[i].bodies]
                fitted[i] = replace(pending[i], bodies=bodies, companions=None)
        return fitted

    @property
    def _detects_overflow(self) -> bool:
        """Whether the client decides that a prompt is too long, rather than the server with its error."""
        return self.features.tokenizer or self._options.context_window is not None

    def _count_tokens(self, pending: Sequence[_PendingQuestion]) -> list[int]:
        """Return the tokens of each prompt, counted by the server or estimated from above."""
        estimates = [estimate_max_tokens(question.prompt) for question in pending]
        if not self.features.tokenizer:
            return estimates
        fields = ("model", "messages", "chat_template_kwargs")
        bodies = [
            {name: question.bodies[0][name] for name in fields if name in question.bodies[0]} for question in pending
        ]
        replies = self._served.send([Request(TOKENIZE, body) for body in bodies])
        counts = [read_token_count(reply) for reply in replies]
        return [estimate if count is None else count for estimate, count in zip(estimates, counts, strict=True)]
