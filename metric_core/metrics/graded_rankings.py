"""The grades of ranked passages: given with the data, made by the judge, or both."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from metric_core import columns, reasons
from metric_core.declarations.metric import MetricRequest, Parameter, Parameters
from metric_core.declarations.parameter_checks import allow_none, require_positive_integer
from metric_core.evidence import Evidence
from metric_core.evidence_spans import PlacedSpan
from metric_core.metrics._votes import exact_label
from metric_core.prompts.judge_questions import CONTEXT, USER_INPUT, ChoiceQuestion, RatingRequest
from metric_core.question_kinds import QuestionKind
from metric_core.records import Sample, Score
from metric_core.stages import Product

GIVEN, JUDGE, BOTH = "given", "judge", "both"
_TEMPLATE = "passage"

RELEVANCE_GRADES = ("0", "1", "2", "3")
"""Grades of relevance that a judge gives to a passage, in ascending order."""

CUT_OFF = Parameter(
    summary="number of ranks that are looked at; none for all that were retrieved",
    check=allow_none(require_positive_integer),
)
JUDGMENTS = Parameter(
    summary="where grades come from: relevance_judgments (given), the judge (0 to 3), or both, the given ones first",
    default=GIVEN,
    choices=(GIVEN, JUDGE, BOTH),
)


@dataclass(frozen=True, slots=True)
class GradedRanking:
    """The retrieved passages of a row with their grades, each passage once.

    Args:
        ranked: Grade of each distinct passage at its first rank, best rank first; None if it is unjudged.
        judged: Grades of all judged passages, retrieved or not.
        by_judge: True if the judge was asked about every passage without a given grade.
        passages: Ids of the passages of `ranked`, if spans of evidence are judged.
        spans: The judged spans that count.
    """

    ranked: tuple[float | None, ...]
    judged: tuple[float, ...]
    by_judge: bool = False
    passages: tuple[str, ...] = ()
    spans: tuple[PlacedSpan, ...] = ()

    def units(self, k: int | None) -> tuple[tuple[float | None, ...], tuple[float, ...] | None]:
        """Return the grades in the order of the ranks, and how much of a rank each takes; None for whole ranks.

        A passage that holds evidence takes as much of a rank as it holds of spans that no passage before it held, so a
        span counts once, in however many passages its parts are. Any other passage takes one rank.

        >>> from metric_core.evidence_spans import EvidenceSpan, SpanPart, SpanState
        >>> halves = (SpanPart("a", 0.0, 0.5, 1.0), SpanPart("b", 0.5, 1.0, 1.0))
        >>> span = PlacedSpan(EvidenceSpan("It rains.", grade=2.0), SpanState.CARRIED, halves)
        >>> GradedRanking((2.0, None, 2.0), (2.0,), passages=("a", "x", "b"), spans=(span,)).units(None)
        ((2.0, None, 2.0), (0.5, 1.0, 0.5))

        Args:
            k: Number of passages that count; None for all.
        """
        if not self.spans:
            return self.ranked[:k], None
        held: dict[str, list[tuple[int, float, float]]] = {}
        for number, span in enumerate(self.spans):
            for part in span.parts:
                held.setdefault(part.passage, []).append((number, part.start, part.end))
        seen: dict[int, list[tuple[float, float]]] = {}
        units: list[tuple[float | None, float]] = []
        for name, grade in zip(self.passages[:k], self.ranked, strict=False):
            if name not in held:
                units.append((grade, 1.0))
                continue
            new: list[tuple[float | None, float]] = []
            for number, start, end in held[name]:
                size = _new_length(start, end, seen.setdefault(number, []))
                if size > 0 and self.spans[number].span.grade > 0:
                    new.append((self.spans[number].span.grade, size))
            units += sorted(new, reverse=True) or [(0.0, 1.0)]
        return tuple(grade for grade, _ in units), tuple(size for _, size in units)


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A distinct retrieved passage.

    Args:
        index: Index of its first rank, from 0.
        key: Id; the text if the data have no ids.
        text: Text; None if it is not read.
        grade: Given grade; None if there is none, or it is not read.
    """

    index: int
    key: str
    text: str | None = None
    grade: float | None = None

    @property
    def is_asked(self) -> bool:
        """True if the judge is asked for the grade: none is given, and there is a text to grade."""
        return self.grade is None and bool((self.text or "").strip())

    @property
    def template(self) -> str:
        """Name of the rating question about the passage."""
        return f"{_TEMPLATE}:{self.index}"


def ask_passage_relevance(user_input: str, context: str) -> ChoiceQuestion:
    """Ask for the relevance of one passage to the user question, graded from 0 to 3.

    Source of the grades: Upadhyay et al., "UMBRELA: UMbrela is the (Open-Source Reproduction of the) Bing RELevance
    Assessor" (2024). The wording is our own.
    """
    texts = {CONTEXT: context, USER_INPUT: user_input}
    return ChoiceQuestion(QuestionKind.PASSAGE_RELEVANCE, texts, RELEVANCE_GRADES)


def _new_length(start: float, end: float, seen: list[tuple[float, float]]) -> float:
    """Return the length of an interval that is not in those seen before, and add it to them."""
    length, reached = 0.0, start
    for seen_start, seen_end in sorted(seen):
        length += max(min(seen_start, end) - reached, 0.0)
        reached = max(reached, min(seen_end, end))
    seen.append((start, end))
    return length + max(end - reached, 0.0)


def is_passage_template(template: str) -> bool:
    """Return whether the name of a rating question is that of a question about one passage.

    >>> is_passage_template("passage:3"), is_passage_template("accuracy_1")
    (True, False)
    """
    return template.startswith(f"{_TEMPLATE}:")


def ranking_columns(parameters: Parameters) -> tuple[str, ...]:
    """Return the columns that a metric over graded rankings needs.

    >>> ranking_columns({"judgments": "given"})
    ('retrieved_context_ids', 'relevance_judgments')
    """
    if parameters["judgments"] == GIVEN:
        return columns.RETRIEVED_CONTEXT_IDS, columns.RELEVANCE_JUDGMENTS
    asked = (columns.USER_INPUT, columns.RETRIEVED_CONTEXTS)
    return asked if parameters["judgments"] == JUDGE else (*asked, columns.RETRIEVED_CONTEXT_IDS)


def optional_ranking_columns(parameters: Parameters) -> tuple[str, ...]:
    """Return the columns that a metric over graded rankings uses if the data have them."""
    optional = {
        GIVEN: (columns.EVIDENCE_SPANS,),
        JUDGE: (columns.RETRIEVED_CONTEXT_IDS,),
        BOTH: (columns.RELEVANCE_JUDGMENTS, columns.EVIDENCE_SPANS),
    }
    return optional[parameters["judgments"]]


def ranking_products(parameters: Parameters) -> tuple[Product, ...]:
    """Return the products that a metric over graded rankings reads: ratings, if the judge makes grades."""
    return () if parameters["judgments"] == GIVEN else (Product.RATINGS,)


def questions_about_all(sample: Sample, parameters: Parameters) -> list[RatingRequest] | Score:
    """Return the questions about all retrieved passages without a grade, for metrics that count relevant passages.

    >>> row = Sample(user_input="Why?", retrieved_contexts=("So.", "So.", " ", "Thus."))
    >>> [asked.template for asked in questions_about_all(row, {"judgments": "judge"})]
    ['passage:0', 'passage:3']
    """
    if parameters["judgments"] == GIVEN:
        return []
    passages = ranked_passages(sample, parameters["judgments"])
    if isinstance(passages, Score):
        return passages
    question = sample.user_input or ""
    if not question.strip():
        return Score.undefined(reasons.empty_column(columns.USER_INPUT))
    return [
        RatingRequest(passage.template, ask_passage_relevance(question, passage.text or ""))
        for passage in passages
        if passage.is_asked
    ]


def questions_about_top(sample: Sample, parameters: Parameters) -> list[RatingRequest] | Score:
    """Return the questions about the passages up to the cut-off, for metrics that look no further."""
    questions = questions_about_all(sample, parameters)
    if isinstance(questions, Score) or parameters["k"] is None or parameters["judgments"] == GIVEN:
        return questions
    passages = ranked_passages(sample, parameters["judgments"])
    if isinstance(passages, Score):
        return passages
    top = {passage.template for passage in passages[: parameters["k"]]}
    return [question for question in questions if question.template in top]


def ranked_passages(sample: Sample, judgments: str) -> list[RankedPassage] | Score:
    """Return the distinct retrieved passages of a row, each at its first rank, with the given grades.

    Ranks are the order of the list: it is never sorted again, whatever scores the retriever gave. A passage is known by
    its id; by its text if the data have no ids and the judge makes all grades.

    >>> row = Sample(retrieved_context_ids=("b", "a", "b"), relevance_judgments={"a": 2.0, "z": 1.0})
    >>> [(passage.index, passage.key, passage.grade) for passage in ranked_passages(row, "given")]
    [(0, 'b', None), (1, 'a', 2.0)]

    Args:
        judgments: Value of the parameter `judgments`.
    """
    grades: Mapping[str, float] = (sample.relevance_judgments or {}) if judgments != JUDGE else {}
    ids = sample.retrieved_context_ids
    if judgments == GIVEN:
        keys, texts = ids or (), None
    else:
        texts = sample.retrieved_contexts or ()
        keys = texts if ids is None else ids
        if len(keys) != len(texts):
            return Score.undefined(reasons.IDS_OF_OTHER_PASSAGES)
    passages: dict[str, RankedPassage] = {}
    for index, key in enumerate(keys):
        if key not in passages:
            passages[key] = RankedPassage(index, key, None if texts is None else texts[index], grades.get(key))
    return list(passages.values())


def given_grades(evidence: Evidence) -> tuple[float | None, ...]:
    """Return the given grade of each distinct retrieved id, at its first rank; None if it is unjudged."""
    grades: Mapping[str, float] = evidence.column(columns.RELEVANCE_JUDGMENTS)
    return tuple([grades.get(name) for name in dict.fromkeys(evidence.column(columns.RETRIEVED_CONTEXT_IDS))])


def graded_ranking(request: MetricRequest, evidence: Evidence, *, only_top: bool) -> GradedRanking | Score:
    """Return the graded ranking of a row, or its score if a grade is missing.

    Args:
        only_top: True if the metric reads no grade beyond the cut-off; the judge is not asked for them.
    """
    parameters = request.parameters
    judgments, k = parameters["judgments"], parameters["k"]
    sample = evidence.sample
    spans = () if judgments == JUDGE else tuple(span for span in sample.evidence_spans or () if span.counts)
    if judgments == GIVEN:
        names = tuple(dict.fromkeys(evidence.column(columns.RETRIEVED_CONTEXT_IDS)))
        judged = _judged_grades(evidence.column(columns.RELEVANCE_JUDGMENTS), spans)
        return GradedRanking(given_grades(evidence), judged, passages=names, spans=spans)
    passages = ranked_passages(sample, judgments)
    if isinstance(passages, Score):
        return passages
    given: Mapping[str, float] = (sample.relevance_judgments or {}) if judgments == BOTH else {}
    if not evidence.column(columns.USER_INPUT).strip():
        return Score.undefined(reasons.empty_column(columns.USER_INPUT))
    ratings = {rating.template: rating.value for rating in evidence.ratings_of(request.key)}
    ranked: list[float | None] = []
    made: list[float] = []
    for rank, passage in enumerate(passages):
        grade = passage.grade
        if grade is None and (not only_top or k is None or rank < k):
            grade = _made_grade(passage, ratings)
            if grade is None:
                return Score.failed(reasons.NO_USABLE_RATING)
            made.append(grade)
        ranked.append(grade)
    names = tuple(passage.key for passage in passages)
    judged = (*_judged_grades(given, spans), *made)
    return GradedRanking(tuple(ranked), judged, by_judge=True, passages=names, spans=_within(spans, given))


def _within(spans: Sequence[PlacedSpan], graded: Collection[str]) -> tuple[PlacedSpan, ...]:
    """Return spans with their parts in graded passages: the judge grades any other passage as a whole."""
    return tuple(replace(span, parts=tuple(part for part in span.parts if part.passage in graded)) for span in spans)


def _judged_grades(given: Mapping[str, float], spans: Sequence[PlacedSpan]) -> tuple[float, ...]:
    """Return the grades of all that is judged: of spans, and of passages that hold no part of one."""
    held = {part.passage for span in spans for part in span.parts}
    return (*(span.span.grade for span in spans), *(grade for name, grade in given.items() if name not in held))


def _made_grade(passage: RankedPassage, ratings: Mapping[str, Any]) -> float | None:
    """Return the grade that the judge gave; 0 for a passage without a text, which it is not asked about."""
    if not passage.is_asked:
        return 0.0
    label = exact_label(ratings.get(passage.template), RELEVANCE_GRADES)
    return None if label is None else float(label)
