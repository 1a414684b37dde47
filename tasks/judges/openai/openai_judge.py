"""The server judge: puts questions to a language model behind one or several OpenAI-compatible servers."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from metric_core.errors import JudgeError
from metric_core.judge_questions import ChoiceQuestion, GenerateQuestion, JudgeQuestion, QuestionKind
from metric_core.prompts.prompt_set import RenderedPrompt, load_prompts
from metric_core.records import AnswerStatus
from tasks.judges.openai import label_probabilities as labels
from tasks.judges.openai.context_window import LEAST_ROOM, TOO_LONG, estimate_most_tokens, remaining_tokens
from tasks.judges.openai.probe import CHAT, TOKENIZE, probe, read_count
from tasks.judges.openai.reply_collector import ReplyCollector
from tasks.judges.openai.reply_parsing import choice_answer, generate_answer
from tasks.judges.openai.request_body import Body, choice_request_bodies, generate_request_body
from tasks.judges.openai.request_mode import RequestMode, all_request_modes, determinants, request_mode_of
from tasks.judges.protocol import ChoiceAnswer, GenerateAnswer, JudgeIdentity, KeepChoice, KeepGenerate
from tasks.model_clients.connection import Connection
from tasks.model_clients.replica import Reply
from tasks.model_clients.replica_pool import Arrived, Request, UnusableError
from tasks.options.judge_server_options import ServerJudgeOptions

VERSION = 1
"""Raised whenever the same question would be put, or its answer be read, in another way."""

NO_REVISION = "not given"

A = TypeVar("A", ChoiceAnswer, GenerateAnswer)


@dataclass(frozen=True, slots=True)
class _PendingRequest:
    """A question as it is sent: its prompt, and its requests or the words that say why there are none."""

    prompt: RenderedPrompt
    bodies: Sequence[Body]
    unasked: str | None = None


class OpenAIJudge:
    """Judges with a language model. May be used from several threads; they share the connection.

    Opening it asks the server what it can do.

    Args:
        options: where the servers are, which model, and how it is asked.

    Raises:
        ConfigError: the key's environment variable is not set, or the prompts can not be loaded.
        JudgeError: no server can be reached, the key is refused, or the model is not there.
    """

    def __init__(self, options: ServerJudgeOptions) -> None:
        self._options = options
        self._prompts = load_prompts(options.language)
        self._fingerprints: dict[RequestMode, str] = {}
        self._connection = Connection(options)
        try:
            self.features = probe(self._connection, options, self._prompts.system)
        except UnusableError as error:
            self.close()
            raise JudgeError(f"the judge can not be used: {error}") from error
        except BaseException:
            self.close()
            raise

    @property
    def identity(self) -> JudgeIdentity:
        """Who answers."""
        features, options = self.features, self._options
        note = f"{features.model} served by {features.software} at {' and '.join(options.urls)}"
        return JudgeIdentity("server", features.model, options.revision or NO_REVISION, note, language_model=True)

    def can_answer(self, kind: QuestionKind) -> bool:  # noqa: ARG002
        """Whether questions of this kind can be asked at all: all can."""
        return True

    def fingerprint(self, kind: QuestionKind) -> str:
        """Digest of all that determines answers to questions of a kind besides the questions, whatever their manner.

        Where the server is, how it is reached and whether a prompt is too long for it is not part of it.
        """
        prints = [self._fingerprint(manner) for manner in all_request_modes(kind)]
        return prints[0] if len(prints) == 1 else hashlib.sha256(json.dumps(prints).encode()).hexdigest()

    def fingerprint_of(self, question: JudgeQuestion) -> str:
        """Digest of all that determines the answer to one question besides what it says: see FinerJudge."""
        return self._fingerprint(request_mode_of(question))

    def _fingerprint(self, manner: RequestMode) -> str:
        if manner not in self._fingerprints:
            record = {"version": VERSION, "prompt": self._prompts.digest(manner.kind)}
            record |= {} if manner.is_written else {"labels": labels.VERSION}
            record |= determinants(manner, self.features, self._options)
            self._fingerprints[manner] = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
        return self._fingerprints[manner]

    def choose(self, questions: Sequence[ChoiceQuestion], keep: KeepChoice | None = None) -> list[ChoiceAnswer]:
        """Answers to choice questions, each with the probabilities of its labels where the server gives them."""
        asked = []
        for question in questions:
            prompt = self._prompts.render(question)
            bodies = choice_request_bodies(prompt, question, self.features, self._options)
            asked.append(_PendingRequest(prompt, bodies))

        def answer(position: int, replies: Sequence[Reply]) -> ChoiceAnswer:
            question = questions[position]
            return choice_answer(replies, question.labels, question.votes, self.features)

        def unasked(words: str) -> ChoiceAnswer:
            return ChoiceAnswer(AnswerStatus.FAILED, reason=TOO_LONG, reply=words)

        return self._ask(asked, answer, unasked, keep)

    def generate(self, questions: Sequence[GenerateQuestion], keep: KeepGenerate | None = None) -> list[GenerateAnswer]:
        """Answers to generate questions."""
        asked = []
        for question in questions:
            prompt = self._prompts.render(question)
            asked.append(
                _PendingRequest(prompt, [generate_request_body(prompt, question, self.features, self._options)])
            )

        def answer(position: int, replies: Sequence[Reply]) -> GenerateAnswer:
            return generate_answer(replies[0], questions[position].schema)

        def unasked(words: str) -> GenerateAnswer:
            return GenerateAnswer(AnswerStatus.FAILED, reason=TOO_LONG, reply=words)

        return self._ask(asked, answer, unasked, keep)

    def close(self) -> None:
        """Closes the connections to the servers; happens by itself at the end of the process."""
        self._connection.close()

    def _ask(
        self,
        asked: Sequence[_PendingRequest],
        answer: Callable[[int, Sequence[Reply]], A],
        unasked: Callable[[str], A],
        keep: Callable[[int, A], None] | None,
    ) -> list[A]:
        """The answers, in the order of the questions.

        Sent in the order of their prompts' beginnings, so that the server finds those in its prefix cache. Answers are
        made while others are waited for.
        """
        fitted = self._fitted(asked)
        gathering = ReplyCollector([len(one.bodies) for one in fitted], answer, keep)
        requests, owners = [], []
        for i in sorted(range(len(fitted)), key=lambda i: fitted[i].prompt.prefix_key):
            words = fitted[i].unasked
            if words is not None:
                gathering.settle(i, unasked(words))
            for number, body in enumerate(fitted[i].bodies):
                requests.append(Request(CHAT, body, fitted[i].prompt.prefix_key))
                owners.append((i, number))
        self._send(requests, lambda position, reply: gathering.add(*owners[position], reply))
        return gathering.answers

    def _fitted(self, asked: Sequence[_PendingRequest]) -> list[_PendingRequest]:
        """The questions with room for their replies in the window, or with the reason that there is none."""
        window, field = self.features.window, self.features.limit_field
        if window is None:
            return list(asked)
        fitted = list(asked)
        tight = [i for i, one in enumerate(asked) if estimate_most_tokens(one.prompt) + one.bodies[0][field] > window]
        for i, tokens in zip(tight, self._tokens([asked[i] for i in tight]), strict=True):
            left = remaining_tokens(tokens, asked[i].bodies[0][field], window)
            if left is not None:
                fitted[i] = replace(asked[i], bodies=[body | {field: left} for body in asked[i].bodies])
            elif self._can_tell:
                fitted[i] = _PendingRequest(asked[i].prompt, (), f"{tokens} of {window} tokens")
            else:
                shortest = min(LEAST_ROOM, asked[i].bodies[0][field])
                fitted[i] = replace(asked[i], bodies=[body | {field: shortest} for body in asked[i].bodies])
        return fitted

    @property
    def _can_tell(self) -> bool:
        """Whether it is for the client to say that a prompt is too long: a server with a window says so itself."""
        return self.features.tokenizer or self._options.window is not None

    def _tokens(self, asked: Sequence[_PendingRequest]) -> list[int]:
        """The tokens of prompts: counted by the server, or estimated, and rather too many than too few."""
        estimates = [estimate_most_tokens(one.prompt) for one in asked]
        if not self.features.tokenizer:
            return estimates
        kept = ("model", "messages", "chat_template_kwargs")
        bodies = [{name: one.bodies[0][name] for name in kept if name in one.bodies[0]} for one in asked]
        replies = self._send([Request(TOKENIZE, body) for body in bodies])
        counts = [read_count(reply) for reply in replies]
        return [estimate if count is None else count for estimate, count in zip(estimates, counts, strict=True)]

    def _send(self, requests: Sequence[Request], arrived: Arrived = lambda _position, _reply: None) -> list[Reply]:
        try:
            return self._connection.send(requests, arrived)
        except UnusableError as error:
            raise JudgeError(f"the judge is lost: {error}. See to the server and run again") from error
