"""Sample plugins, most of them with a mistake."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from metric_core.columns import ColumnType
from metric_core.declarations.diagnosis_class import ScoreClass, SystemPart
from metric_core.declarations.metric import Metric, MetricRequest, Parameters, constant
from metric_core.evidence import Evidence
from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, Kind, RatingRequest, ask_verdict
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus, Sample, Score
from metric_core.stages import Product
from tasks.models.embedders.protocol import EmbedderIdentity
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer, JudgeIdentity, OnChoiceAnswer
from tasks.models.recognizers.protocol import RecognizerIdentity

NUMBER = 3


def length(_request: MetricRequest, evidence: Evidence) -> Score:
    return Score.scored(len(evidence.column("response")))


GOOD = Metric(
    name="letters",
    summary="Number of letters.",
    source="tests",
    family="custom",
    columns=constant("response"),
    products=constant(),
    compute=length,
    bounds=constant(0.0, 10.0),
    undefined={},
)
SHOUTED = replace(
    GOOD,
    name="shouted",
    bounds=constant(0.0, 1.0),
    compute=lambda _request, evidence: Score.scored(evidence.sample.row_id == "row-0"),
    diagnosis=ScoreClass(
        name="shouted",
        meaning="The response shouts.",
        part=SystemPart.GENERATOR,
        is_lost=True,
        applies=lambda score: bool(score.value),
        before="contradicted",
    ),
)
TAKEN = replace(GOOD, name="semantic_similarity")
BAD_NAME = replace(GOOD, name="Letters!")
NO_COLUMN = replace(GOOD, columns=constant("answer"))
NO_PRODUCT = replace(GOOD, products=constant("response claim"))
NO_QUESTIONS = replace(GOOD, products=constant(Product.RATINGS))


def no_score(_request: MetricRequest, _evidence: Evidence) -> Any:
    return 0.5


def raise_error(_request: MetricRequest, _evidence: Evidence) -> Score:
    raise ZeroDivisionError("no words")


NO_SCORE = replace(GOOD, compute=no_score)
BROKEN = replace(GOOD, compute=raise_error)


def asking(*wanted: RatingRequest) -> Metric:
    def ask(_sample: Sample, _parameters: Parameters) -> Sequence[RatingRequest]:
        return wanted

    return replace(GOOD, ratings=ask, products=constant(Product.RATINGS))


ASPECT = ChoiceQuestion(QuestionKind.ASPECT, {}, ("1", "0"), {"definition": "short"})
TWICE = asking(RatingRequest("one", ASPECT), RatingRequest("one", ASPECT))
NO_RATING = asking(RatingRequest("one", ask_verdict("a", "b")))
NO_VALUE = asking(RatingRequest("one", GenerateQuestion(QuestionKind.RUBRIC, {}, {"properties": {"mark": {}}})))
NO_REQUEST = asking(ASPECT)  # type: ignore[arg-type]


def _raising(_parameters: Parameters) -> Any:
    raise RuntimeError("no such thing")


COLUMNS_TUPLE = replace(GOOD, columns=("response",))  # type: ignore[arg-type]
COLUMNS_TEXT = replace(GOOD, columns=lambda _: "response")  # type: ignore[arg-type,return-value]
PRODUCTS_NONE = replace(GOOD, products=lambda _: None)  # type: ignore[arg-type,return-value]
BOUNDS_RAISE = replace(GOOD, bounds=_raising)
BOUNDS_ONE = replace(GOOD, bounds=lambda _: (1,))  # type: ignore[arg-type,return-value]
NO_NAME = replace(GOOD, name=None)  # type: ignore[arg-type]
PLAIN_PARAMETER = replace(GOOD, parameters={"most": 5})  # type: ignore[dict-item]
OWN_ALIAS = replace(GOOD, own_columns={"answer": ColumnType.TEXT})
OWN_TYPE = replace(GOOD, own_columns={"priority": 5})  # type: ignore[dict-item]
UPWARDS = replace(GOOD, direction="higher")  # type: ignore[arg-type]
ASKS_NOTHING = replace(GOOD, ratings=lambda _sample, _parameters: None, products=constant(Product.RATINGS))  # type: ignore[arg-type,return-value]


class Judge:
    """A judge that gives the answer of its option."""

    identity = JudgeIdentity("custom", "judge", "1", "A judge.", language_model=True)

    def __init__(self, says: Any = "yes", api_key: str = "") -> None:
        self.says = says
        self.key = api_key

    def can_answer(self, _kind: Kind) -> bool:
        return True

    def fingerprint(self, _kind: Kind) -> str:
        return "1"

    def choose(self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None) -> Any:
        if self.says == "raise":
            raise RuntimeError("out of order")
        if self.says == "nothing":
            return []
        if self.says == "text":
            return ["yes"] * len(questions)
        answers = [ChoiceAnswer(AnswerStatus.ANSWERED, (self.says,), {self.says: 1.0}) for _ in questions]
        if on_answer is not None:
            on_answer(0, answers[0])
        return answers

    def generate(self, questions: Sequence[GenerateQuestion], _on_answer: Any = None) -> list[GenerateAnswer]:
        return [GenerateAnswer(AnswerStatus.ANSWERED, self.says) for _ in questions]


READY = Judge()


class FixedAnswer(Judge):
    """A judge that gives the same answer to every question."""

    answer: Any = None

    def choose(self, questions: Sequence[ChoiceQuestion], _on_answer: Any = None) -> Any:
        return [self.answer] * len(questions)

    def generate(self, questions: Sequence[GenerateQuestion], _on_answer: Any = None) -> Any:
        return [self.answer] * len(questions)


class NoCallback(Judge):
    """A judge whose `choose` lacks the argument `on_answer`."""

    def choose(self, questions: Sequence[ChoiceQuestion]) -> Any:  # type: ignore[override]
        return questions


class NoMethod(Judge):
    """A judge with a text in place of a method."""

    fingerprint = "1"  # type: ignore[assignment]


class Embedder:
    """An embedder that returns vectors of the shape of its option."""

    identity = EmbedderIdentity("custom", "embedder", "1", 2)

    def __init__(self, shape: Sequence[int] = (), fill: float = 1.0) -> None:
        self.shape = tuple(shape)
        self.fill = fill

    def embed(self, texts: Sequence[str]) -> Any:
        return np.full(self.shape or (len(texts), 2), self.fill)


class Recognizer:
    """A recognizer that returns texts instead of entities."""

    identity = RecognizerIdentity("custom", "recognizer", "1")

    def entities(self, texts: Sequence[str]) -> Any:
        return [[text] for text in texts]


class NoIdentity(Recognizer):
    """A recognizer with an identity of the wrong type."""

    identity = "me"  # type: ignore[assignment]
