"""Read the probability that the premise supports the claim from a verifier's reply."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tasks.models.clients.replica import Reply
from tasks.models.judges.openai.completion import Completion, read_completions
from tasks.models.judges.openai.label_probabilities import TokenStep
from tasks.options.profile import ClassReading, DecisionReading, ScoreReading, SpanReading, TokenReading
from tasks.runtime.usage import Usage

NO_VERDICT = "reply without a verdict in the form of the profile"
CUT_BY_SERVER = "prompt cut by the judge server"
IMPOSSIBLE = "the judge server gave impossible probabilities"

_SUM_EXCESS = 0.02
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class TokenSupport:
    """A token of a claim.

    Args:
        start: Position of its first character in the claim.
        end: Position behind its last character.
        unsupported: Probability that the premise does not support it.
    """

    start: int
    end: int
    unsupported: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a verifier on one request.

    Args:
        probability: Probability that the premise supports the claim; 0 or 1 if the verifier gives labels only; None if
            there is none.
        problem: Reason why there is no probability.
        reply: Short form of the reply.
        tokens: Tokens of the claim, for a verifier that marks them.
    """

    probability: float | None
    problem: str | None = None
    reply: str = ""
    usage: Usage = field(default_factory=Usage)
    tokens: tuple[TokenSupport, ...] = ()


def fail(problem: str, reply: str = "", usage: Usage | None = None) -> Verdict:
    """Return the verdict of a request without a usable reply."""
    return Verdict(None, problem=problem, reply=reply, usage=usage or Usage())


def read_chat(reply: Reply, reading: TokenReading, usage: Usage) -> Verdict:
    """Read the reply to a chat request."""
    completion = read_completions(reply)[0]
    if completion.impossible is not None:
        return fail(f"{IMPOSSIBLE}: {completion.impossible}", completion.text, usage)
    # A reply of the guard may be all inside of the tags that other models put around their thoughts.
    if completion.problem is not None and not completion.steps:
        return fail(completion.problem, completion.text, usage)
    return _read_token(completion, reading, usage)


def token_support(steps: Sequence[TokenStep], reading: TokenReading) -> tuple[float | None, str]:
    """Return the probability of support from the tokens of a reply, and the tokens that it was read from.

    >>> reading = TokenReading(supported=("yes",), unsupported=("no",), normalized=False, strip=False)
    >>> steps = [TokenStep("Yes", 0.5, [("Yes", 0.5), ("yes", 0.125), (" Yes", 0.125), ("No", 0.25)])]
    >>> token_support(steps, reading)[0]
    0.625
    >>> token_support(steps, reading.model_copy(update={"normalized": True}))[0]
    0.7142857142857143

    Without normalization a reply that does not begin with any of these tokens supports nothing, as for the makers:

    >>> token_support([TokenStep("Hm", 1.0, [])], reading)[0]
    0.0
    """
    step = _find_step(steps, reading)
    if step is None:
        return None, "".join(one.text for one in steps)
    top = list(step.top) or [(step.text, step.probability)]
    if all(text != step.text for text, _ in top):
        top.append((step.text, step.probability))

    def mass(tokens: Sequence[str]) -> float:
        return math.fsum(p for text, p in top if (text.strip() if reading.strip else text).lower() in tokens)

    yes, no = mass(reading.supported), mass(reading.unsupported)
    shown = ", ".join(f"{text!r} {probability:.3f}" for text, probability in top[:_SHOWN])
    if reading.normalized and yes + no <= 0:
        return None, shown
    return min(yes / (yes + no) if reading.normalized else yes, 1.0), shown


def _find_step(steps: Sequence[TokenStep], reading: TokenReading) -> TokenStep | None:
    if reading.behind is None:
        return steps[0] if steps else None
    text, is_behind = "", False
    for step in steps:
        if is_behind and step.text.strip():
            return step
        text += step.text
        is_behind = is_behind or reading.behind in text
    return None


def _read_token(completion: Completion, reading: TokenReading, usage: Usage) -> Verdict:
    probability, shown = token_support(completion.steps, reading)
    if probability is None:
        return fail(NO_VERDICT, shown or completion.text, usage)
    return Verdict(probability, reply=shown, usage=usage)


def class_support(probabilities: Any, reading: ClassReading, usage: Usage) -> Verdict:
    """Return the verdict of a distribution over classes, in the order of the reading's classes.

    >>> class_support([0.25, 0.75], ClassReading(), Usage()).probability
    0.75
    """
    numbers = _numbers(probabilities)
    if numbers is None or len(numbers) != len(reading.classes):
        return fail(NO_VERDICT, f"{len(reading.classes)} classes wanted, got {str(probabilities)[:200]}", usage)
    if not _is_distribution(numbers):
        return fail(IMPOSSIBLE, str(numbers), usage)
    position = reading.classes.index(reading.supported)
    return Verdict(numbers[position], reply=", ".join(f"{number:.3f}" for number in numbers), usage=usage)


def score_support(score: Any, reading: ScoreReading, usage: Usage) -> Verdict:
    """Return the verdict of a score in [0, 1].

    >>> score_support(0.25, ScoreReading(higher_is_supported=False), Usage()).probability
    0.75
    """
    numbers = _numbers([score])
    if numbers is None or not 0 <= numbers[0] <= 1:
        return fail(NO_VERDICT, f"a score in [0, 1] wanted, got {str(score)[:200]}", usage)
    return Verdict(
        numbers[0] if reading.higher_is_supported else 1 - numbers[0], reply=f"{numbers[0]:.3f}", usage=usage
    )


def decision_support(content: Mapping[str, object], number: int, reading: DecisionReading, usage: Usage) -> Verdict:
    """Return the verdict of the answer to a question, in the reply of `/v1/systemone` or of `/v1/decisions`.

    Args:
        number: Number of the question in its request.

    >>> content = {"answers": {"q0": {"noul": 0.75}}, "diagnostics": {"q0": {"label_mass": 0.9}}}
    >>> decision_support(content, 0, DecisionReading(), Usage()).probability
    0.75
    >>> decision_support({"answers": [{"name": "q0", "probability": 0.25}]}, 0, DecisionReading(), Usage()).probability
    0.25
    """
    name, answers = f"q{number}", content.get("answers")
    if isinstance(answers, list):
        answers = {each.get("name"): each for each in answers if isinstance(each, Mapping)}
    answer = answers.get(name) if isinstance(answers, Mapping) else None
    given = answer.get("noul", answer.get("probability")) if isinstance(answer, Mapping) else None
    numbers = _numbers([given])
    if numbers is None or not 0 <= numbers[0] <= 1:
        return fail(NO_VERDICT, f"a probability in [0, 1] wanted, got {str(answer)[:200]}", usage)
    diagnostics = content.get("diagnostics")
    told = diagnostics.get(name) if isinstance(diagnostics, Mapping) else None
    mass = _numbers([told.get("label_mass")]) if isinstance(told, Mapping) else None
    if mass is not None and mass[0] < reading.least_label_mass:
        shown = f"yes and no have the probability {mass[0]:.3f}, wanted at least {reading.least_label_mass:g}"
        return fail(NO_VERDICT, shown, usage)
    return Verdict(numbers[0], reply=f"{numbers[0]:.3f}", usage=usage)


def span_support(
    probabilities: Sequence[Any], offsets: Sequence[tuple[int, int]], reading: SpanReading, usage: Usage
) -> Verdict:
    """Return the verdict of the classes of a claim's tokens.

    Args:
        probabilities: A distribution over the classes per token of the claim.
        offsets: Positions of the tokens in the claim.

    >>> read = span_support([[0.9, 0.1], [0.2, 0.8]], [(0, 2), (3, 8)], SpanReading(), Usage())
    >>> round(read.probability, 3), read.tokens[1].unsupported
    (0.2, 0.8)
    """
    tokens = []
    for (start, end), given in zip(offsets, probabilities, strict=True):
        numbers = _numbers(given)
        if numbers is None or len(numbers) != reading.classes:
            return fail(NO_VERDICT, f"{reading.classes} classes per token wanted, got {str(given)[:200]}", usage)
        if not _is_distribution(numbers):
            return fail(IMPOSSIBLE, str(numbers), usage)
        tokens.append(TokenSupport(start, end, numbers[reading.unsupported]))
    if not tokens:
        return fail(NO_VERDICT, "no token of the claim", usage)
    worst = max(token.unsupported for token in tokens)
    return Verdict(1 - worst, reply=f"{1 - worst:.3f}", usage=usage, tokens=tuple(tokens))


def merge_chunks(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on a claim from those about the parts of its premise: it is supported if one part supports it.

    Tokens are merged one by one: each is as supported as by the part that supports it most.

    >>> merge_chunks([Verdict(0.25), Verdict(0.75)]).probability
    0.75
    """
    usage = _total(verdicts)
    problem = next((verdict for verdict in verdicts if verdict.probability is None), None)
    if problem is not None:
        return fail(problem.problem or NO_VERDICT, problem.reply, usage)
    best = max(verdicts, key=lambda verdict: verdict.probability or 0.0)
    if len(verdicts) > 1 and all(verdict.tokens for verdict in verdicts):
        columns = zip(*(verdict.tokens for verdict in verdicts), strict=True)
        tokens = tuple(min(column, key=lambda token: token.unsupported) for column in columns)
        probability = 1 - max(token.unsupported for token in tokens)
        return Verdict(probability, reply=f"{probability:.3f}", usage=usage, tokens=tokens)
    return Verdict(best.probability, reply=best.reply, usage=usage, tokens=best.tokens)


def merge_sentences(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on a claim from those on its sentences: it is as supported as the least supported one.

    >>> merge_sentences([Verdict(0.25), Verdict(0.75)]).probability
    0.25
    """
    usage = _total(verdicts)
    problem = next((verdict for verdict in verdicts if verdict.probability is None), None)
    if problem is not None:
        return fail(problem.problem or NO_VERDICT, problem.reply, usage)
    worst = min(verdicts, key=lambda verdict: verdict.probability or 0.0)
    return Verdict(worst.probability, reply=worst.reply, usage=usage, tokens=worst.tokens)


def unsupported_spans(claim: str, tokens: Sequence[TokenSupport], threshold: float) -> list[dict[str, Any]]:
    """Return the parts of a claim that the premise does not support: consecutive tokens below the threshold.

    Args:
        threshold: Smallest probability of support of a supported token.

    >>> tokens = [TokenSupport(0, 4, 0.1), TokenSupport(5, 7, 0.9), TokenSupport(7, 9, 0.75)]
    >>> unsupported_spans("Pays 6999.", tokens, 0.5)
    [{'start': 5, 'end': 9, 'text': '6999', 'probability': 0.9}]
    """
    spans: list[dict[str, Any]] = []
    is_open = False
    for token in tokens:
        if token.start == token.end:
            continue
        if 1 - token.unsupported >= threshold:
            is_open = False
        elif is_open:
            spans[-1]["end"] = token.end
            spans[-1]["probability"] = max(spans[-1]["probability"], token.unsupported)
        else:
            spans.append({"start": token.start, "end": token.end, "probability": token.unsupported})
            is_open = True
    for span in spans:
        start, end = span["start"], span["end"]
        text = claim[start:end]
        start += len(text) - len(text.lstrip())
        span |= {"start": start, "end": start + len(text.strip()), "text": text.strip()}
    return [
        {name: span[name] for name in ("start", "end", "text")} | {"probability": round(span["probability"], 4)}
        for span in spans
        if span["text"]
    ]


def _total(verdicts: Sequence[Verdict]) -> Usage:
    total = Usage()
    for verdict in verdicts:
        total += verdict.usage
    return total


def _numbers(values: Any) -> list[float] | None:
    if not isinstance(values, Sequence) or isinstance(values, str):
        return None
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return None
    numbers = [float(value) for value in values]
    return numbers if all(map(math.isfinite, numbers)) else None


def _is_distribution(numbers: Sequence[float]) -> bool:
    return all(0 <= number <= 1 for number in numbers) and abs(math.fsum(numbers) - 1) <= _SUM_EXCESS
