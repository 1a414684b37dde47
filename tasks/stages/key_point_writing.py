"""Have the judge write the key points of samples, from the question and the passages that answer it."""

from collections.abc import Iterable, Iterator, Sequence

from metric_core import reasons
from metric_core.columns import USER_INPUT
from metric_core.evidence_spans import SpanState
from metric_core.metrics.graded_rankings import BOTH, RankedPassage, ask_passage_relevance, ranked_passages
from metric_core.prompts.judge_questions import ask_key_points
from metric_core.records import AnswerStatus, Sample, Score
from tasks.models.judges.batching import JudgeBatcher
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer

RELEVANT = 2.0
"""Least grade of a passage that key points are written from, of grades from 0 to 3."""


def write_key_points(samples: Sequence[Sample], batcher: JudgeBatcher) -> list[GenerateAnswer]:
    """Return the answer with the key points of each sample.

    They are written from the reference contexts of a sample, or else from judged texts with a grade of 2 or more, which
    stay the same when an index is cut into other chunks, or else from its retrieved contexts with such a grade: as
    given, or else by the judge. Given grades of 0 and 1 alone mean that 1 is relevant. The passages are shown in the
    order of their texts, so that equal passages are the same question, whatever their ranks.
    """
    passages = [_passages(sample) for sample in samples]
    graded = [(s, passage) for s, found in zip(samples, passages, strict=True) for passage in found if passage.is_asked]
    asked = batcher.choose([ask_passage_relevance(_question(s), passage.text or "") for s, passage in graded])
    grades = iter(asked)
    relevant = [_relevant(sample, found, grades) for sample, found in zip(samples, passages, strict=True)]
    wanted = zip(samples, relevant, strict=True)
    questions = [ask_key_points(_question(s), texts) for s, texts in wanted if not isinstance(texts, GenerateAnswer)]
    written = iter(batcher.generate(questions))
    return [found if isinstance(found, GenerateAnswer) else next(written) for found in relevant]


def _question(sample: Sample) -> str:
    """Return the question of a sample, with what was said before it."""
    asked = sample.user_input or ""
    return f"{sample.earlier_turns}\nUser: {asked}" if sample.earlier_turns else asked


def _passages(sample: Sample) -> Sequence[RankedPassage]:
    if not (sample.user_input or "").strip():
        return ()
    if sample.reference_contexts:
        return [RankedPassage(i, text, text, RELEVANT) for i, text in enumerate(sample.reference_contexts)]
    spans = [each.span for each in sample.evidence_spans or () if each.state is not SpanState.EDITED]
    least = _least_grade(span.grade for span in spans)
    if any(span.grade >= least for span in spans):
        return [RankedPassage(i, span.text, span.text, span.grade) for i, span in enumerate(spans)]
    passages = ranked_passages(sample, BOTH)
    return () if isinstance(passages, Score) else passages


def _least_grade(grades: Iterable[float]) -> float:
    """Return the least grade of a relevant passage among given grades."""
    return RELEVANT if any(grade > 1 for grade in grades) else 1.0


def _relevant(
    sample: Sample, passages: Sequence[RankedPassage], answers: Iterator[ChoiceAnswer]
) -> list[str] | GenerateAnswer:
    """Return the texts of the relevant passages, or the answer of a sample without any.

    Args:
        answers: Grades by the judge, in the order of the passages that it was asked about.
    """
    if not (sample.user_input or "").strip():
        return GenerateAnswer(AnswerStatus.UNDEFINED, reason=reasons.empty_column(USER_INPUT))
    made = {passage.index: next(answers) for passage in passages if passage.is_asked}
    ungraded = next((answer for answer in made.values() if answer.label is None), None)
    if ungraded is not None:
        is_unable = ungraded.status is AnswerStatus.UNDEFINED
        status = AnswerStatus.UNDEFINED if is_unable else AnswerStatus.FAILED
        return GenerateAnswer(status, reason=ungraded.reason or reasons.NO_USABLE_RATING)
    given = (passage.grade for passage in passages if passage.grade is not None)
    least = _least_grade((*given, *(sample.relevance_judgments or {}).values()))
    found = {each.text for each in passages if each.index in made and float(made[each.index].label or 0) >= RELEVANT}
    found |= {each.text for each in passages if each.grade is not None and each.grade >= least}
    texts = sorted(text for text in found if text and text.strip())
    return texts or GenerateAnswer(AnswerStatus.UNDEFINED, reason=reasons.NO_RELEVANT_PASSAGE)
