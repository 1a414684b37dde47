"""Ask the judge to explain its verdicts on claims, and its ratings: the stage `explanations`.

The verdicts and ratings exist already, so asking for explanations cannot change them. A verdict that needed no judge
question, such as one against an empty premise, is not explained, nor is a rating that came with feedback.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from metric_core.evidence import BY_EARLIER_ANSWERS, premise_text
from metric_core.prompts.judge_questions import NO, YES, GenerateQuestion, ask_explanation, ask_rating_explanation
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus, Sample, Score, VerdictKind
from metric_core.stages import Stage
from tasks.models.judges.answer_cells import reply_cell
from tasks.models.judges.batching import JudgeBatcher
from tasks.models.judges.protocol import GenerateAnswer
from tasks.models.protocol import Models
from tasks.options.judged_settings import JudgedSettings
from tasks.options.metric_settings import MetricSettings
from tasks.rows.records import build_table, read_asked_samples
from tasks.stages.definition import Progress, StageOutput, Tables, stage

Explained: TypeAlias = Literal["unsupported", "all", "ratings"]
"""Explained answers: verdicts on claims that say no, all verdicts on claims and all ratings, or all ratings."""

RATING = "rating"
"""Kind of the explanation of a rating."""


class ExplanationsSettings(JudgedSettings):
    """Settings of the stage `explanations`.

    Args:
        explained: Verdicts and ratings to explain.
        metrics: Metrics that have rating questions.
    """

    explained: Explained = "unsupported"
    metrics: tuple[MetricSettings, ...] = ()


@stage(
    Stage.EXPLANATIONS,
    version=3,
    reads=(Stage.SAMPLES, Stage.FOLLOW_UPS, Stage.CLAIMS, Stage.RATINGS, Stage.VERDICTS),
    asks=(QuestionKind.EXPLANATION, QuestionKind.RATING_EXPLANATION),
)
def explanations(tables: Tables, settings: ExplanationsSettings, models: Models, progress: Progress) -> StageOutput:
    """Ask the judge to explain each selected verdict and rating."""
    batcher = JudgeBatcher(models.judge(), progress)
    samples = {sample.row_id: sample for sample in read_asked_samples(tables)}
    claims_table = tables[Stage.CLAIMS].to_pylist() if Stage.CLAIMS in tables else ()
    claims = {(row["row_id"], row["claim_id"]): row["text"] for row in claims_table}
    verdicts = tables[Stage.VERDICTS].to_pylist() if Stage.VERDICTS in tables else ()
    chosen = list(_select(verdicts, settings.explained))
    questions = [
        ask_explanation(
            row["statement"] or claims[row["row_id"], row["claim_id"]],
            row["premise_text"] or premise_text(samples[row["row_id"]], row["premise"]),
            YES if row["verdict"] else NO,
        )
        for row in chosen
    ]
    rated = list(_select_ratings(tables, samples, settings)) if settings.explained != "unsupported" else []
    answers = iter(batcher.generate([*questions, *(question for _, question in rated)]))
    rows = [_row(verdict, next(answers)) for verdict in chosen]
    rows += [_rating_row(rating, next(answers)) for rating, _ in rated]
    return StageOutput(build_table(Stage.EXPLANATIONS, rows), batcher.usage)


def _select_ratings(
    tables: Tables, samples: Mapping[str, Sample], settings: ExplanationsSettings
) -> Iterator[tuple[Mapping[str, Any], GenerateQuestion]]:
    """Yield the ratings to explain, one per metric and template, with the question about the most frequent answer."""
    votes: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in tables[Stage.RATINGS].to_pylist() if Stage.RATINGS in tables else ():
        if row["status"] == AnswerStatus.ANSWERED and row["value"] is not None and not row["feedback"]:
            votes.setdefault((row["row_id"], row["metric"], row["template"]), []).append(row)
    for metric in settings.metrics:
        request = metric.request()
        for row_id, sample in samples.items():
            asked = request.rating_requests(sample)
            for rating in () if isinstance(asked, Score) else asked:
                given = votes.get((row_id, metric.key, rating.template))
                # The rubric of a row is untrusted, and would be among the instructions.
                if given and rating.question.kind is not QuestionKind.INSTANCE_RUBRIC:
                    value = Counter(row["value"] for row in given).most_common(1)[0][0]
                    yield given[0], ask_rating_explanation(rating.question, value)


def _rating_row(rating: Mapping[str, Any], answer: GenerateAnswer) -> dict[str, Any]:
    key = {"row_id": rating["row_id"], "kind": RATING, "claim_id": "", "premise": ""}
    return {**key, "metric": rating["metric"], "template": rating["template"], **_cells(answer)}


def _select(verdicts: Iterable[Mapping[str, Any]], explained: Explained) -> Iterator[Mapping[str, Any]]:
    for row in verdicts if explained != "ratings" else ():
        # An answered verdict that has a reason needed no judge question.
        was_asked = row["status"] == AnswerStatus.ANSWERED and row["reason"] is None
        is_unsupported = row["verdict"] == 0 and row["premise"] != BY_EARLIER_ANSWERS
        if row["kind"] == VerdictKind.SUPPORT and was_asked and (explained == "all" or is_unsupported):
            yield row


def _row(verdict: Mapping[str, Any], answer: GenerateAnswer) -> dict[str, Any]:
    return {
        **{name: verdict[name] for name in ("row_id", "kind", "claim_id", "premise")},
        **_cells(answer),
    }


def _cells(answer: GenerateAnswer) -> dict[str, Any]:
    return {
        "text": answer.value["explanation"] if answer.status is AnswerStatus.ANSWERED else None,
        "status": answer.status,
        "reason": answer.reason,
        "reply": reply_cell(answer),
    }
