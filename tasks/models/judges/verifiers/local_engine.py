"""The engine that runs a verifier in this process, in batches of texts of about equal length."""

import time
from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from metric_core.errors import ConfigError, JudgeError
from tasks.models.judges.openai.context_window import TOO_LONG
from tasks.models.judges.verifiers.canaries import canary_questions, find_verifier_problem
from tasks.models.judges.verifiers.engine import ClaimPair, OnVerdict
from tasks.models.judges.verifiers.local_model import Encoded, LocalModel
from tasks.models.judges.verifiers.probabilities import Verdict, class_support, fail, span_support
from tasks.models.judges.verifiers.prompt_formats import pair_of, text_of, whole_text
from tasks.models.judges.verifiers.question_plan import SMALLEST_ROOM, SentenceSplitter
from tasks.models.judges.verifiers.verifier_judge import VerifierJudge, VerifierModel
from tasks.options.profile import ClassReading, InProcess, PairForm, Profile, SpanReading, TextForm
from tasks.runtime.cancellation import current_cancellation
from tasks.runtime.usage import Usage

MAX_BATCH_TOKENS = 8192
"""Number of tokens of a batch, padding included."""

MOST_ROWS = 64
"""Texts of a batch, however short they are."""

_SPECIAL_TOKENS = 8


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distribution over the classes, by softmax over the last axis.

    >>> softmax(np.array([0.0, np.log(3.0)])).tolist()
    [0.25, 0.75]
    """
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    distribution: NDArray[np.float64] = powers / powers.sum(axis=-1, keepdims=True)
    return distribution


class LocalEngine:
    """A verifier in this process. Threads take turns."""

    def __init__(self, profile: Profile, model: LocalModel) -> None:
        self._profile = profile
        self._model = model
        self._lock = Lock()
        self.window = min([profile.chunks.window, *([model.window] if model.window is not None else [])])
        self.overhead = self.count([whole_text(profile, "", "")])[0] + _SPECIAL_TOKENS

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""
        with self._lock:
            return self._model.count(texts)

    def ask(self, pairs: Sequence[ClaimPair], on_verdict: OnVerdict) -> None:
        """Ask about each pair, those of about equal length together."""
        cancellation = current_cancellation()
        with self._lock:
            encoded = [self._encode(pair) for pair in pairs]
        fitting = [i for i, one in enumerate(encoded) if len(one.ids) <= self.window]
        for i in sorted(set(range(len(pairs))) - set(fitting)):
            on_verdict(i, fail(TOO_LONG, f"{len(encoded[i].ids)} of {self.window} tokens"))
        for batch in self._batches(fitting, encoded):
            cancellation.check()
            with self._lock:
                verdicts = self._run([encoded[i] for i in batch])
            for i, verdict in zip(batch, verdicts, strict=True):
                on_verdict(i, verdict)

    def close(self) -> None:
        """Do nothing: the model is released with the engine."""

    def _encode(self, pair: ClaimPair) -> Encoded:
        form = self._profile.form
        if isinstance(form, TextForm):
            return self._model.encode(text_of(form, pair.premise, pair.claim), None)
        if not isinstance(form, PairForm):
            raise TypeError(f"a form of kind {form.kind} is for servers")
        encoded = self._model.encode(*pair_of(form, pair.premise, pair.claim))
        place = form.second.find("{claim}")
        within = [(i, start - place, end - place) for i, start, end in encoded.second]
        return Encoded(encoded.ids, encoded.type_ids, tuple(within))

    def _batches(self, positions: Sequence[int], encoded: Sequence[Encoded]) -> list[list[int]]:
        batches: list[list[int]] = []
        for i in sorted(positions, key=lambda i: len(encoded[i].ids)):
            size = len(encoded[i].ids)  # the longest so far
            if batches and len(batches[-1]) < MOST_ROWS and size * (len(batches[-1]) + 1) <= MAX_BATCH_TOKENS:
                batches[-1].append(i)
            else:
                batches.append([i])
        return batches

    def _run(self, batch: Sequence[Encoded]) -> list[Verdict]:
        how = self._profile.in_process or InProcess()
        started = time.perf_counter()
        scores = self._model.scores(batch, how.output, how.decoder_start)
        usage = Usage(seconds=(time.perf_counter() - started) / len(batch))
        reading = self._profile.reading
        found = []
        for one, given in zip(batch, scores, strict=True):
            if isinstance(reading, SpanReading):
                rows = softmax(given[[place for place, _, _ in one.second]]).tolist()
                found.append(span_support(rows, [(start, end) for _, start, end in one.second], reading, usage))
            elif isinstance(reading, ClassReading):
                chosen = softmax(given[list(reading.classes)])
                found.append(class_support(chosen.tolist(), reading, usage))
        return found


def open_local_verifier(
    profile: Profile,
    name: str,
    model: LocalModel,
    splitter: SentenceSplitter,
    *,
    check_canaries: bool = True,
) -> VerifierJudge:
    """Return the judge that runs a verifier in this process.

    Args:
        name: Name or folder of the model.
        check_canaries: False only warns about a verifier that answers questions wrongly whose answers are beyond doubt.

    Raises:
        ConfigError: The profile is for a server.
        JudgeError: The model is not that of the profile.
    """
    require_in_process(profile)
    engine = LocalEngine(profile, model)
    room = engine.window - engine.overhead - profile.chunks.reserve
    if room < SMALLEST_ROOM:
        raise JudgeError(f"the model {name!r} reads {engine.window} tokens, too few for the profile {profile.name}")
    questions = canary_questions(profile, profile.chunks.longest_part(room), engine.count)
    verdicts: dict[int, Verdict] = {}
    engine.ask([question.pair for question in questions], verdicts.__setitem__)
    problem = find_verifier_problem(profile, questions, [verdicts[i] for i in range(len(questions))])
    if problem is not None and check_canaries:
        raise JudgeError(f"the verifier does not answer as its profile {profile.name} says. {problem}")
    described = VerifierModel("verifier", name, model.revision, model.software, "in this process", tokenizer=True)
    problems = [] if problem is None else [problem]
    return VerifierJudge(profile, engine, described, splitter, problems)


def require_in_process(profile: Profile) -> InProcess:
    """Return how a profile runs its model in this process.

    Raises:
        ConfigError: It does not.
    """
    if profile.in_process is None:
        raise ConfigError(
            f"the profile {profile.name} is for a model behind a server; set judge.backend = 'server' and "
            f"judge.server.urls, or launch it: assay judge start --profile {profile.name}"
        )
    return profile.in_process
