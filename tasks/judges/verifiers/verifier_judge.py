"""A judge that only verifies: it says whether a premise supports a claim, and answers no other question."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from metric_core import reasons
from metric_core.judge_questions import (
    CLAIM,
    CONTEXT,
    NO,
    YES,
    ChoiceQuestion,
    GenerateQuestion,
    Kind,
    QuestionKind,
)
from metric_core.records import AnswerStatus
from tasks.judges.openai.context_window import TOO_LONG
from tasks.judges.protocol import (
    ChoiceAnswer,
    GenerateAnswer,
    JudgeIdentity,
    OnChoiceAnswer,
    OnGenerateAnswer,
    notify_all,
)
from tasks.judges.verifiers.chunking import divide_texts, size
from tasks.judges.verifiers.engine import Engine, Pair
from tasks.judges.verifiers.forms import guard
from tasks.judges.verifiers.marked_words import spans_reply
from tasks.judges.verifiers.readings import (
    Verdict,
    merge_chunks,
    merge_sentences,
    unsupported_spans,
)
from tasks.model_clients.served_model import RecognizedModel
from tasks.profiles.profile import Profile

VERSION = 1
"""Increase it whenever the same question would be asked, or its answer combined, in another way."""

SMALLEST_ROOM = 32
"""Tokens of a premise that a request must have room for."""


@dataclass(frozen=True, slots=True)
class VerifierFeatures:
    """The profile of a verifier and the facts about its model; part of a run's manifest.

    Args:
        profile: Name of the profile.
        version: Version of the profile.
        digest: Digest of the profile.
        license: License of the weights.
        route: Endpoint that is asked, or the library that runs the model.
        model: Name of the model at its server, or of its folder.
        software: Name and version of the server or library.
        window: Tokens of a request.
        tokenizer: True if tokens are counted exactly; otherwise their number is bounded by that of the bytes.
        canaries: "passed", or "overridden: " and what failed.
    """

    profile: str
    version: int
    digest: str
    license: str
    route: str
    model: str
    software: str
    window: int
    tokenizer: bool
    canaries: str


@dataclass(frozen=True, slots=True)
class _Plan:
    """The requests of a question: sentences of the claim, each with the positions of its pairs."""

    claim: str
    sentences: tuple[tuple[int, ...], ...]
    problem: str | None = None
    detail: str = ""


@dataclass(slots=True)
class _Collector:
    """A thread-safe collector of the verdicts on the pairs that several questions share."""

    wanted: Mapping[int, Sequence[int]]
    missing: list[int]
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def add(self, position: int, verdict: Verdict) -> list[int]:
        """Add the verdict on a pair; return the questions for which it was the last."""
        with self.lock:
            if position in self.verdicts:
                return []
            self.verdicts[position] = verdict
            complete = []
            for question in self.wanted[position]:
                self.missing[question] -= 1
                if self.missing[question] == 0:
                    complete.append(question)
            return complete


@dataclass(frozen=True, slots=True)
class SentenceSplitter:
    """The way to split claims into sentences.

    Args:
        split: Returns the sentences of each text.
        digest: Digest of everything that determines them.
    """

    split: Callable[[Sequence[str]], list[list[str]]]
    digest: str


@dataclass(frozen=True, slots=True)
class VerifierDescription:
    """The facts about an opened verifier.

    Args:
        identity: Identity of the model.
        features: Facts for the manifest.
        warnings: Sentences for users about the model.
        recognized: The model of a server, compared with those seen before; None without a server.
    """

    identity: JudgeIdentity
    features: VerifierFeatures
    warnings: tuple[str, ...] = ()
    recognized: RecognizedModel | None = None


class VerifierJudge:
    """A judge for verdicts on claims. Thread-safe if its engine is.

    A claim is divided into sentences if its profile says so, and a premise into parts that fit into the window. A
    sentence is supported as by the part that supports it most, a claim as its least supported sentence.

    Args:
        profile: Form of requests and replies.
        engine: The model.
        description: Facts about the model.
        splitter: Splits claims.
    """

    def __init__(
        self, profile: Profile, engine: Engine, description: VerifierDescription, splitter: SentenceSplitter
    ) -> None:
        self.profile = profile
        self.identity = description.identity
        self.features = description.features
        self.warnings = description.warnings
        self.recognized = description.recognized
        self._engine = engine
        self._splitter = splitter

    def can_answer(self, kind: Kind) -> bool:
        """Return whether the question asks for a verdict on a claim."""
        return kind is QuestionKind.VERDICT

    def fingerprint(self, kind: Kind) -> str:
        """Return a digest of the profile, the model and the rules that combine its answers."""
        identity = self.identity
        content = [VERSION, str(kind), self.profile.name, self.profile.version, self.profile.digest()]
        content += [identity.model, identity.revision, identity.served, self._engine.window]
        content += [self._splitter.digest if self.profile.chunks.claim == "sentences" else ""]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        """Answer questions for verdicts, with the probability of support."""
        plans, pairs = self._plan(questions)
        wanted: dict[int, list[int]] = {position: [] for position in range(len(pairs))}
        missing = []
        for number, plan in enumerate(plans):
            positions = {position for sentence in plan.sentences for position in sentence}
            missing.append(len(positions))
            for position in positions:
                wanted[position].append(number)
        collector = _Collector(wanted, missing)
        answers: dict[int, ChoiceAnswer] = {}

        def finish(number: int) -> None:
            answers[number] = self._answer(questions[number], plans[number], collector.verdicts)
            if on_answer is not None:
                on_answer(number, answers[number])

        def on_verdict(position: int, verdict: Verdict) -> None:
            for number in collector.add(position, verdict):
                finish(number)

        for number, count in enumerate(missing):
            if count == 0:
                finish(number)
        self._engine.ask(pairs, on_verdict)
        return [answers[number] for number in range(len(questions))]

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        """Answer no question: a verifier writes nothing."""
        answers = [GenerateAnswer(AnswerStatus.UNDEFINED, reason=reasons.NEEDS_LANGUAGE_MODEL) for _ in questions]
        notify_all(answers, on_answer)
        return answers

    def close(self) -> None:
        """Release what the engine holds."""
        self._engine.close()

    def _plan(self, questions: Sequence[ChoiceQuestion]) -> tuple[list[_Plan], list[Pair]]:
        """Return the plan of each question, and the distinct pairs to ask about, ordered by premise."""
        delimiters = self.profile.delimiters
        texts = [
            (guard(question.texts[CONTEXT], delimiters), guard(question.texts[CLAIM], delimiters))
            if question.kind is QuestionKind.VERDICT
            else None
            for question in questions
        ]
        sentences = self._sentences(list(dict.fromkeys(pair[1] for pair in texts if pair is not None)))
        rooms = self._rooms([sentence for parts in sentences.values() for sentence in parts])
        by_room: dict[int, dict[str, int]] = {}
        for pair in texts:
            for sentence in sentences[pair[1]] if pair is not None else ():
                room = rooms[sentence]
                if room >= SMALLEST_ROOM and pair is not None:
                    by_room.setdefault(room, {})[pair[0]] = room
        overlap = self.profile.chunks.overlap
        divided = {room: divide_texts(budgets, self._engine.count, overlap) for room, budgets in by_room.items()}
        positions: dict[Pair, int] = {}
        plans = []
        for pair in texts:
            if pair is None:
                plans.append(_Plan("", (), reasons.NEEDS_LANGUAGE_MODEL))
                continue
            premise, claim = pair
            short = [sentence for sentence in sentences[claim] if rooms[sentence] < SMALLEST_ROOM]
            if short:
                detail = f"the claim leaves {rooms[short[0]]} of {self._engine.window} tokens for the premise"
                plans.append(_Plan(claim, (), TOO_LONG, detail))
                continue
            plans.append(
                _Plan(
                    claim,
                    tuple(
                        tuple(
                            positions.setdefault(Pair(part, sentence), len(positions))
                            for part in divided[rooms[sentence]][premise]
                        )
                        for sentence in sentences[claim]
                    ),
                )
            )
        return plans, list(positions)

    def _sentences(self, claims: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the sentences of each claim; the claim itself if it is asked about as a whole."""
        if self.profile.chunks.claim == "whole" or not claims:
            return {claim: (claim,) for claim in claims}
        split = self._splitter.split(claims)
        return {claim: tuple(parts) or (claim,) for claim, parts in zip(claims, split, strict=True)}

    def _rooms(self, sentences: Sequence[str]) -> dict[str, int]:
        """Return the tokens that a request has for the premise beside each sentence.

        Most sentences are shorter than what is reserved, so that the parts of a premise are the same for all of them.
        """
        chunks = self.profile.chunks
        distinct = list(dict.fromkeys(sentences))
        tokens = {sentence: size(sentence) for sentence in distinct}
        long = [sentence for sentence in distinct if tokens[sentence] > chunks.reserve]
        tokens |= dict(zip(long, self._engine.count(long) if long else [], strict=True))
        left = self._engine.window - self._engine.overhead
        most = left if chunks.premise is None else chunks.premise
        return {sentence: min(left - max(chunks.reserve, tokens[sentence]), most) for sentence in distinct}

    def _answer(self, question: ChoiceQuestion, plan: _Plan, verdicts: Mapping[int, Verdict]) -> ChoiceAnswer:
        if plan.problem is not None:
            is_other_kind = plan.problem == reasons.NEEDS_LANGUAGE_MODEL
            status = AnswerStatus.UNDEFINED if is_other_kind else AnswerStatus.FAILED
            return ChoiceAnswer(status, reason=plan.problem, reply=plan.detail or None)
        merged = merge_sentences(
            [merge_chunks([verdicts[position] for position in sentence]) for sentence in plan.sentences]
        )
        if merged.probability is None:
            return ChoiceAnswer(AnswerStatus.FAILED, reason=merged.problem, reply=merged.reply, usage=merged.usage)
        yes = merged.probability
        label = YES if self.profile.supports(yes) else NO
        reply = merged.reply
        if merged.tokens and len(plan.sentences) == 1:
            reply = spans_reply(unsupported_spans(plan.claim, merged.tokens, self.profile.threshold))
        return ChoiceAnswer(
            AnswerStatus.ANSWERED,
            (label,) * question.votes,
            {YES: yes, NO: 1 - yes} if merged.is_graded else None,
            reply=reply,
            usage=merged.usage,
        )
