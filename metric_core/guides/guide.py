"""The guide to a metric: what `docs/metrics.md` and `assay metrics NAME` say beyond its declaration."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metric_core.claims.joint_contexts import contexts_of
from metric_core.evidence import Evidence
from metric_core.judge_questions import QuestionKind
from metric_core.records import Rating, Sample, Side, Support, VerdictKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A worked example, whose score the metric computes.

    Args:
        evidence: Evidence of the row.
        value: The score, or its label.
        parameters: Parameters that differ from their defaults.
        comment: Calculation in one or two sentences.
    """

    evidence: Evidence
    value: float | str
    comment: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """The guide to a metric.

    Args:
        formula: Formula in one or more lines of plain text.
        example: Worked example.
        notes: Sentences on what the metric reads, and on its special cases.
        differences: Sentences on what differs from Ragas and the documents that define the metric, and why.
    """

    formula: str
    example: Example
    notes: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()


def judge(
    sample: Sample,
    claims: Mapping[Side, Mapping[str, Mapping[str, Support]]],
    kind: VerdictKind = VerdictKind.SUPPORT,
    **more: Any,
) -> Evidence:
    """Return the evidence of a row whose claims have verdicts.

    Args:
        sample: The row.
        claims: Side -> text of a claim -> premise -> support.
        kind: Kind of the verdicts.
        **more: Other arguments of `Evidence`.

    >>> judge(Sample(), {Side.RESPONSE: {"It rains.": {"contexts": 1.0}}}).verdicts
    {(<VerdictKind.SUPPORT: 'support'>, 'response:0', 'contexts'): 1.0}
    """
    ids = {side: {f"{side}:{number}": text for number, text in enumerate(texts)} for side, texts in claims.items()}
    verdicts = {
        (kind, claim, premise): support
        for side, texts in ids.items()
        for claim, text in texts.items()
        for premise, support in claims[side][text].items()
    }
    return Evidence(sample, claims=ids, verdicts=verdicts, **more)


def rate(sample: Sample, metric: str, *values: str | float, kind: QuestionKind = QuestionKind.ASPECT) -> Evidence:
    """Return the evidence of a row with ratings for a metric, named by its key."""
    ratings = [Rating(f"{kind}:{number}", value) for number, value in enumerate(values)]
    return Evidence(sample, ratings={metric: ratings})


def describe_evidence(evidence: Evidence, columns: Collection[str] = ()) -> list[str]:
    """Return the evidence of a row in words, a line per fact.

    Args:
        evidence: Evidence of the row.
        columns: Columns of the sample to show; empty for all that it has.

    >>> describe_evidence(judge(Sample(response="It rains."), {Side.RESPONSE: {"It rains.": {"reference": 0.0}}}))
    ['response: It rains.', 'response claim "It rains.": supported by the reference: no']
    """
    sample = evidence.sample
    shown = [name for name in _COLUMNS if name in columns or not columns]
    lines = [f"{name}: {_format(value)}" for name in shown if (value := getattr(sample, name)) is not None]
    for side, claims in evidence.claims.items():
        for claim, text in claims.items():
            found = {premise: _yes(value) for (_, of, premise), value in evidence.verdicts.items() if of == claim}
            facts = [f"{_WORDS.get(premise) or _context(premise)}: {found[premise]}" for premise in found]
            place = evidence.places.get(claim)
            cited = [] if place is None else [f"cites {' and '.join(place.citations) or 'nothing'}"]
            lines.append(f'{_SIDES[side]} "{text}": {", ".join((*cited, *facts))}')
    lines += [
        f"{_context(premise)} is useful: {_yes(value)}"
        for (_, claim, premise), value in evidence.verdicts.items()
        if not claim
    ]
    lines += [f"entities of the {_OWNERS[side]}: {', '.join(names)}" for side, names in evidence.entities.items()]
    for question, cosine in zip(evidence.questions or (), evidence.question_similarities or (), strict=True):
        lines.append(f'regenerated question "{question.text}": cosine with the user question {cosine:g}')
    lines += [f"{product}: {value:g}" for product, value in evidence.answer_similarities.items() if value is not None]
    lines += [f"answers of the judge: {_format([r.value for r in rated])}" for rated in evidence.ratings.values()]
    return lines


_COLUMNS = (
    *("user_input", "response", "retrieved_contexts", "reference", "reference_contexts"),
    *("retrieved_context_ids", "reference_context_ids", "rubrics", "retrieved_context_scores"),
    *("session_id", "conversation", "earlier_turns", "earlier_contexts", "tool_results", "earlier_answers"),
    "relevance_judgments",
)
_WORDS = {
    "contexts": "supported by the contexts",
    "reference": "supported by the reference",
    "response": "supported by the response",
    "user_input": "helps to answer the question",
}
_OWNERS = {Side.REFERENCE: "reference", Side.CONTEXT: "contexts"}
_SIDES = {
    Side.RESPONSE: "response claim",
    Side.RESPONSE_SENTENCE: "response sentence",
    Side.REFERENCE: "reference claim",
    Side.REFERENCE_SENTENCE: "reference sentence",
    Side.CONTEXT_SENTENCE: "context sentence",
}


def _context(premise: str) -> str:
    numbers = [str(index + 1) for index in contexts_of(premise)]
    return f"context {numbers[0]}" if len(numbers) == 1 else f"contexts {' and '.join(numbers)} together"


def _yes(support: Support) -> str:
    return {1.0: "yes", 0.0: "no", None: "no usable verdict"}.get(support, f"{support:g}" if support else "")


def _format(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {text}" for key, text in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "; ".join(f"({number}) {item}" for number, item in enumerate(value, 1)) or "none"
    return str(value)
