"""Ask questions whose answers are beyond doubt, to find out whether a model is the one that a profile describes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.models.judges.openai.batch_probe import LARGEST_DIFFERENCE
from tasks.models.judges.verifiers.chunking import CountTokens, size
from tasks.models.judges.verifiers.engine import ClaimPair
from tasks.models.judges.verifiers.probabilities import Verdict
from tasks.models.judges.verifiers.prompt_formats import guard
from tasks.options.profile import Profile

DOUBTFUL = (
    ("The Orla sails at noon and at six.", "The Orla sails on every day of the year."),
    ("Mira said that the bridge might open again in May.", "The bridge opens again in May."),
    ("Of the forty seats in the hall, twelve are still free.", "Fewer than thirty seats are taken."),
    ("Tomas, who never drank coffee, bought a coffee house.", "Tomas dislikes coffee."),
)
"""Questions without a right answer, whose probabilities tell one model from another."""

_ORDERED = (
    "Anna Berg wrote the report in 2019. It has 48 pages, and the council read most of it in May.",
    (
        "The report has 48 pages.",
        "Anna Berg wrote the report in 2018.",
        "The council read the report in May.",
        "Anna Berg sits on the council.",
    ),
)
"""A premise and claims about it, to be asked together in both orders and once more, and each alone."""

_FILLER = (
    "The garden behind the house has {number} apple trees.",
    "In the {number}th week of the year the hall was painted.",
    "Room {number} is on the upper floor and looks to the north.",
    "The bus with the number {number} stops near the library.",
)
_FACT = "The lighthouse of Skagerhavn was built in 1851."
_LONGEST = 3600
"""Tokens of the longest canary: enough to find a server that reads 2,048 of them, and cheap."""
_BYTES_PER_TOKEN = 4
"""About; used where a server does not count tokens."""

_SHARE = 0.7
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class CanaryQuestion:
    """A canary, guarded.

    Args:
        supported: The answer; None if there is no right one.
        is_long: True if the premise fills a request, with the fact at one of its ends.
    """

    pair: ClaimPair
    supported: bool | None
    is_long: bool = False


def canary_questions(
    profile: Profile, room: int, count: CountTokens, *, counts_bytes: bool = False
) -> list[CanaryQuestion]:
    """Return the canaries of a profile, two with long premises, and questions that identify the model.

    Args:
        room: Largest number of tokens of a premise.
        counts_bytes: True if `room` and `count` are in bytes, as a bound of the tokens.
    """
    longest = _LONGEST * (_BYTES_PER_TOKEN if counts_bytes else 1)
    questions = [CanaryQuestion(_pair(profile, each.premise, each.claim), each.supported) for each in profile.canaries]
    questions += [CanaryQuestion(_pair(profile, premise, claim), None) for premise, claim in DOUBTFUL]
    if "en" in profile.languages:
        filler = _fill(int(min(room, longest) * _SHARE), count)
        premises = (f"{_FACT} {filler}", f"{filler} {_FACT}")
        count(premises)  # a reply that counts fewer tokens shows that the server cut the prompt
        for premise in premises:
            questions.append(CanaryQuestion(_pair(profile, premise, _FACT), supported=True, is_long=True))
    return questions


def ordered_pairs(profile: Profile) -> list[list[ClaimPair]]:
    """Return requests that a decision model must answer alike: claims in an order, reversed, again, and each alone."""
    premise, claims = _ORDERED
    pairs = [_pair(profile, premise, claim) for claim in claims]
    return [pairs, pairs[::-1], pairs, *([pair] for pair in pairs)]


def find_order_problem(answers: Sequence[Sequence[Verdict]]) -> tuple[str | None, float]:
    """Return whether answers depend on what else a request asks, and how far repeated answers differ.

    Args:
        answers: Verdicts on the requests of `ordered_pairs`.

    >>> first, other = [Verdict(0.9), Verdict(0.2)], [Verdict(0.2), Verdict(0.8)]
    >>> problem, difference = find_order_problem([first, other, first, [Verdict(0.9)], [Verdict(0.2)]])
    >>> problem[:72], difference
    ('the probability of a claim differs by 0.100 with its place in a request,', 0.0)
    >>> find_order_problem([first, first[::-1], first, [Verdict(0.9)], [Verdict(0.4)]])[0][:82]
    'the probability of a claim differs by 0.200 with the other questions of a request,'
    """
    first, turned, again, *alone = (
        [math.nan if verdict.probability is None else verdict.probability for verdict in given] for given in answers
    )
    moved = max(abs(a - b) for a, b in zip(first, reversed(turned), strict=True))
    joined = max(abs(a - b) for a, (b,) in zip(first, alone, strict=True))
    repeated = max(abs(a - b) for a, b in zip(first, again, strict=True))
    largest, with_what = joined, "the other questions of a request"
    if not joined > moved:
        largest, with_what = moved, "its place in a request"
    if not largest > LARGEST_DIFFERENCE or largest <= repeated:
        return None, repeated
    problem = (
        f"the probability of a claim differs by {largest:.3f} with {with_what}, so the model does not read each "
        "question by itself. Use another model, or set canaries = false to use it anyway"
    )
    return problem, repeated


def _pair(profile: Profile, premise: str, claim: str) -> ClaimPair:
    return ClaimPair(guard(premise, profile.delimiters), guard(claim, profile.delimiters))


def _fill(tokens: int, count: CountTokens) -> str:
    """Return sentences of about as many tokens, including those of the fact."""
    sentences = [sentence.format(number=number) for number, sentence in enumerate(_FILLER * 8, start=11)]
    per_sentence = max(count([" ".join(sentences)])[0] / len(sentences), 1.0)
    wanted = max(int((tokens - size(_FACT)) / per_sentence), 1)
    return " ".join(_FILLER[number % len(_FILLER)].format(number=number) for number in range(11, 11 + wanted))


def find_verifier_problem(
    profile: Profile, questions: Sequence[CanaryQuestion], verdicts: Sequence[Verdict]
) -> str | None:
    """Return what is wrong with a verifier; None if it answers all canaries correctly.

    Args:
        questions: Canaries that were asked.
    """
    asked = [(question, verdict) for question, verdict in zip(questions, verdicts, strict=True)]
    checked = [(question, verdict) for question, verdict in asked if question.supported is not None]
    wrong = [(question, verdict) for question, verdict in checked if not _is_right(profile, question, verdict)]
    if not wrong:
        return None
    question, verdict = wrong[0]
    advice = _advise(profile, checked, wrong)
    return (
        f"{len(wrong)} of {len(checked)} questions whose answers are beyond doubt were answered wrongly. For the claim "
        f"{question.pair.claim!r} and the premise {_shorten(question.pair.premise)!r} wanted "
        f"{_name(question.supported)}, got {_describe(profile, verdict)}. {advice}"
    )


def _is_right(profile: Profile, question: CanaryQuestion, verdict: Verdict) -> bool:
    return verdict.probability is not None and profile.supports(verdict.probability) is question.supported


def _describe(profile: Profile, verdict: Verdict) -> str:
    if verdict.probability is None:
        return f"{verdict.problem} (the reply: {_shorten(verdict.reply)!r})"
    label = _name(profile.supports(verdict.probability))
    return f"{label} with the probability of support {verdict.probability:.3f} (the reply: {_shorten(verdict.reply)!r})"


def _advise(
    profile: Profile,
    checked: Sequence[tuple[CanaryQuestion, Verdict]],
    wrong: Sequence[tuple[CanaryQuestion, Verdict]],
) -> str:
    """Return what the wrong answers have in common, and what to do."""
    answered = [(question, verdict) for question, verdict in checked if verdict.probability is not None]
    short = [(question, verdict) for question, verdict in answered if not question.is_long]
    made_for = profile.model or "models that answer such questions"
    end = (
        f"The profile {profile.name} is for {made_for}: check the model behind it, its chat template and the profile, "
        "or set canaries = false to use it anyway"
    )
    if not answered:
        return f"No reply has the form that the profile reads, so the model or its template is another. {end}"
    if all(question.is_long for question, _ in wrong):
        return (
            "Only those with long premises are wrong, as if the server cut long prompts. Serve the model with a larger "
            f"window, or set a smaller context_window. {end}"
        )
    said = {profile.supports(verdict.probability or 0.0) for _, verdict in short}
    if len(short) > 1 and all(not _is_right(profile, question, verdict) for question, verdict in short):
        return f"Every short one is the reverse of what is right, so the polarity of the profile is swapped. {end}"
    if len(said) == 1:
        return (
            f"Every short one was answered {_name(said.pop())}, as if the premise did not reach the model (a chat "
            f"template that drops documents), or as by a model that was not trained for this. {end}"
        )
    return end


def _name(supported: bool | None) -> str:
    return "supported" if supported else "not supported"


def _shorten(text: str) -> str:
    words = " ".join(text.split())
    if len(words) <= _SHOWN:
        return words
    return f"{words[: _SHOWN // 2]} ... {words[-_SHOWN // 2 :]}"
