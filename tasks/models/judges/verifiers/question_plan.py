"""Find the requests that questions to a verifier take: the sentences of claims, and the parts of long premises."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from metric_core import reasons
from metric_core.prompts.judge_questions import CLAIM, CONTEXT, ChoiceQuestion
from metric_core.question_kinds import ON_CLAIMS
from tasks.models.judges.openai.context_window import TOO_LONG
from tasks.models.judges.verifiers.chunking import divide_texts, size
from tasks.models.judges.verifiers.engine import ClaimPair
from tasks.models.judges.verifiers.prompt_formats import guard
from tasks.models.judges.verifiers.sentence_parts import make_parts
from tasks.options.profile import Profile

SMALLEST_ROOM = 32
"""Tokens of a premise that a request must have room for."""


class Window(Protocol):
    """The size of a verifier's requests, and the way to count tokens."""

    @property
    def window(self) -> int:
        """The largest number of tokens of a request, with its reply."""

    @property
    def overhead(self) -> int:
        """The number of tokens of a request besides premise and claim, with its reply."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""


@dataclass(frozen=True, slots=True)
class SentenceSplitter:
    """The way to split texts into sentences.

    Args:
        split: Returns the sentences of each text, verbatim, without the white space around them.
        digest: Digest of everything that determines them.
    """

    split: Callable[[Sequence[str]], list[list[str]]]
    digest: str


@dataclass(frozen=True, slots=True)
class QuestionPlan:
    """The requests of a question.

    Args:
        claim: The claim, guarded.
        sentences: The sentences of the claim, each with the positions of its pairs.
        problem: Reason why nothing is asked.
        detail: Explanation of the problem.
    """

    claim: str
    sentences: tuple[tuple[int, ...], ...]
    problem: str | None = None
    detail: str = ""


def plan_questions(
    profile: Profile, splitter: SentenceSplitter, window: Window, questions: Sequence[ChoiceQuestion]
) -> tuple[list[QuestionPlan], list[ClaimPair]]:
    """Return the plan of each question, and the distinct pairs to ask about, ordered by premise.

    Args:
        questions: Questions; one of another kind than a verdict on a claim has a problem.
    """
    premises = _premises(profile, splitter, window, [q.texts[CONTEXT] for q in questions if q.kind in ON_CLAIMS])
    texts = [
        (premises[question.texts[CONTEXT]], guard(question.texts[CLAIM], profile.delimiters))
        if question.kind in ON_CLAIMS
        else None
        for question in questions
    ]
    sentences = _sentences(profile, splitter, list(dict.fromkeys(pair[1] for pair in texts if pair is not None)))
    rooms = _rooms(profile, window, [sentence for parts in sentences.values() for sentence in parts])
    by_room: dict[int, dict[str, int]] = {}
    for pair in texts:
        for sentence in sentences[pair[1]] if pair is not None else ():
            room = rooms[sentence]
            if room >= SMALLEST_ROOM and pair is not None:
                by_room.setdefault(room, {}).update(dict.fromkeys(pair[0], room))
    overlap = profile.chunks.overlap
    divided = {room: divide_texts(budgets, window.count, overlap) for room, budgets in by_room.items()}
    positions: dict[ClaimPair, int] = {}
    plans = []
    for pair in texts:
        if pair is None:
            plans.append(QuestionPlan("", (), reasons.NEEDS_LANGUAGE_MODEL))
            continue
        parts_of_premise, claim = pair
        short = [sentence for sentence in sentences[claim] if rooms[sentence] < SMALLEST_ROOM]
        if short:
            detail = f"the claim leaves {rooms[short[0]]} of {window.window} tokens for the premise"
            plans.append(QuestionPlan(claim, (), TOO_LONG, detail))
            continue
        asked = tuple(
            tuple(
                positions.setdefault(ClaimPair(part, sentence), len(positions))
                for premise in parts_of_premise
                for part in divided[rooms[sentence]][premise]
            )
            for sentence in sentences[claim]
        )
        plans.append(QuestionPlan(claim, asked))
    return plans, list(positions)


def _premises(
    profile: Profile, splitter: SentenceSplitter, window: Window, premises: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Return the parts of each premise, guarded: as the profile makes them of sentences, else the premise itself."""
    distinct = list(dict.fromkeys(premises))
    if profile.chunks.parts is None or not distinct:
        return {premise: (guard(premise, profile.delimiters),) for premise in distinct}
    made = make_parts(profile.chunks.parts, distinct, splitter.split, window.count)
    return {
        premise: tuple(guard(part, profile.delimiters) for part in parts or (premise,))
        for premise, parts in zip(distinct, made, strict=True)
    }


def _sentences(profile: Profile, splitter: SentenceSplitter, claims: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the sentences of each claim; the claim itself if it is asked about as a whole."""
    if profile.chunks.claim == "whole" or not claims:
        return {claim: (claim,) for claim in claims}
    split = splitter.split(claims)
    return {claim: tuple(parts) or (claim,) for claim, parts in zip(claims, split, strict=True)}


def _rooms(profile: Profile, window: Window, sentences: Sequence[str]) -> dict[str, int]:
    """Return the tokens that a request has for the premise beside each sentence.

    Most sentences are shorter than what is reserved, so that the parts of a premise are the same for all of them.
    """
    chunks = profile.chunks
    distinct = list(dict.fromkeys(sentences))
    tokens = {sentence: size(sentence) for sentence in distinct}
    long = [sentence for sentence in distinct if tokens[sentence] > chunks.reserve]
    tokens |= dict(zip(long, window.count(long) if long else [], strict=True))
    left = window.window - window.overhead
    return {sentence: left - max(chunks.reserve, tokens[sentence]) for sentence in distinct}
