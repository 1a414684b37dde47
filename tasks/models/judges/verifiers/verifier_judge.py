"""A judge that only verifies: it says whether a premise supports a claim, and answers no other question."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from metric_core import reasons
from metric_core.prompts.judge_questions import NO, YES, ChoiceQuestion, GenerateQuestion, Kind
from metric_core.question_kinds import ON_CLAIMS
from metric_core.records import AnswerStatus
from tasks.models.clients.observed_model import RecognizedModel
from tasks.models.clients.probe_result import describe_unprobed
from tasks.models.judges.highlights import spans_reply
from tasks.models.judges.protocol import (
    ChoiceAnswer,
    GenerateAnswer,
    JudgeIdentity,
    OnChoiceAnswer,
    OnGenerateAnswer,
    notify_all,
)
from tasks.models.judges.verifiers.engine import Engine
from tasks.models.judges.verifiers.probabilities import Verdict, merge_chunks, merge_sentences, unsupported_spans
from tasks.models.judges.verifiers.question_plan import QuestionPlan, SentenceSplitter, plan_questions
from tasks.options.profile import Profile
from tasks.runtime.usage import Usage

VERSION = 1
"""Increase it whenever the same question would be asked, or its answer combined, in another way."""


@dataclass(frozen=True, slots=True)
class VerifierFeatures:
    """The profile of a verifier and the facts about its model; part of a run's manifest.

    Args:
        profile: Name of the profile.
        license: License of the weights.
        route: Endpoint that is asked, or the library that runs the model.
        model: Name of the model at its server, or of its folder.
        software: Name and version of the server or library.
        window: Tokens of a request.
        tokenizer: True if tokens are counted exactly; otherwise their number is bounded by that of the bytes.
        canaries: "passed", or "overridden: " and what failed.
        unknown: Why a feature could not be probed, by its name; the feature then counts as missing.
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
    unknown: Mapping[str, str] = field(default_factory=dict)


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


SMALLEST_DIFFERENCE = 1e-6
"""Difference of two probabilities that is not the rounding of JSON."""


@dataclass(frozen=True, slots=True)
class VerifierModel:
    """The model of a verifier, as it was found.

    Args:
        backend: Backend that opened it.
        name: Name of the model at its server, or at the hub, or its folder.
        software: Name and version of the server or library.
        route: Endpoint that is asked, or where the model runs.
        tokenizer: True if tokens are counted exactly.
        place: Addresses of its servers; empty without a server.
        recognized: The model of a server, compared with those seen before; None without a server.
        repeated: Largest difference of two probabilities of one claim in equal requests, as far as any were repeated.
        unknown: Why a feature of its server could not be probed, by its name.
    """

    backend: str
    name: str
    revision: str
    software: str
    route: str
    tokenizer: bool
    place: str = ""
    recognized: RecognizedModel | None = None
    repeated: float = 0.0
    unknown: Mapping[str, str] = field(default_factory=dict)


class VerifierJudge:
    """A judge for verdicts on claims. Thread-safe if its engine is.

    A claim is divided into sentences if its profile says so, and a premise into parts that fit into the window. A
    sentence is supported as by the part that supports it most, a claim as its least supported sentence.

    Args:
        problems: Sentences on canaries that the model answers wrongly, which the user overrides.
    """

    def __init__(
        self,
        profile: Profile,
        engine: Engine,
        model: VerifierModel,
        splitter: SentenceSplitter,
        problems: Sequence[str] = (),
    ) -> None:
        self.profile = profile
        self.recognized = model.recognized
        self.features = VerifierFeatures(
            profile.name,
            profile.version,
            profile.digest(),
            profile.license,
            model.route,
            model.name,
            model.software,
            engine.window,
            model.tokenizer,
            f"overridden: {problems[0]}" if problems else "passed",
            model.unknown,
        )
        self.identity = JudgeIdentity(
            model.backend,
            model.name,
            model.revision,
            _describe(profile, model),
            language_model=False,
            languages=profile.languages,
            served="" if model.recognized is None else model.recognized.token,
        )
        warning = None if model.recognized is None else model.recognized.warning
        overridden = [f"canaries = false: the verdicts of a verifier are used that fails them. {p}" for p in problems]
        unprobed = [describe_unprobed("the server of the verifier", model.unknown)] if model.unknown else []
        self.warnings = (*(() if warning is None else (warning,)), *unprobed, *overridden)
        self._engine = engine
        self._splitter = splitter

    def can_answer(self, kind: Kind) -> bool:
        """Return whether the question asks for a verdict on a claim."""
        return kind in ON_CLAIMS

    def fingerprint(self, kind: Kind) -> str:
        """Return a digest of the profile, the model and the rules that combine its answers."""
        identity = self.identity
        content = [VERSION, str(kind), self.profile.name, self.profile.version, self.profile.digest()]
        content += [identity.model, identity.revision, identity.served, self._engine.window]
        content += [self._splitter.digest if self.profile.chunks.needs_sentences else ""]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        """Answer questions for verdicts, with the probability of support."""
        plans, pairs = plan_questions(self.profile, self._splitter, self._engine, questions)
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
            # A pair that several questions need is asked about once, and costs the first of them.
            mine = {each for sentence in plans[number].sentences for each in sentence if wanted[each][0] == number}
            usage = sum((collector.verdicts[position].usage for position in mine), Usage())
            answers[number] = self._answer(questions[number], plans[number], collector.verdicts, usage)
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

    def _answer(
        self, question: ChoiceQuestion, plan: QuestionPlan, verdicts: Mapping[int, Verdict], usage: Usage
    ) -> ChoiceAnswer:
        if plan.problem is not None:
            is_other_kind = plan.problem == reasons.NEEDS_LANGUAGE_MODEL
            status = AnswerStatus.UNDEFINED if is_other_kind else AnswerStatus.FAILED
            return ChoiceAnswer(status, reason=plan.problem, reply=plan.detail or None)
        merged = merge_sentences(
            [merge_chunks([verdicts[position] for position in sentence]) for sentence in plan.sentences]
        )
        if merged.probability is None:
            return ChoiceAnswer(AnswerStatus.FAILED, reason=merged.problem, reply=merged.reply, usage=usage)
        yes = merged.probability
        label = YES if self.profile.supports(yes) else NO
        reply = merged.reply
        if merged.tokens and len(plan.sentences) == 1:
            reply = spans_reply(unsupported_spans(plan.claim, merged.tokens, self.profile.threshold))
        return ChoiceAnswer(
            AnswerStatus.ANSWERED,
            (label,) * question.votes,
            {YES: yes, NO: 1 - yes},
            reply=reply,
            usage=usage,
        )


def _describe(profile: Profile, model: VerifierModel) -> str:
    """Return the sentence of reports about a verifier."""
    where = f"served by {model.software} at {model.place}" if model.place else f"with {model.software}"
    note = f" {profile.note}" if profile.note else ""
    accuracy = f" Published: {profile.accuracy}." if profile.accuracy else ""
    return (
        f"{model.name} {where}, asked by the profile {profile.name} version {profile.version} ({profile.license})."
        f"{note}{accuracy}{_describe_repetition(model.repeated)}"
    )


def _describe_repetition(difference: float) -> str:
    """Return a sentence about a server that answers equal requests differently; nothing about one that does not."""
    if difference < SMALLEST_DIFFERENCE:
        return ""
    return (
        f" Equal requests were answered with probabilities that differ by up to {difference:.2g}, because the server "
        "is not batch-invariant (VLLM_BATCH_INVARIANT=1 makes vLLM so); the cache keeps the first answer."
    )
