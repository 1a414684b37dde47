"""The judge's own words in the stage tables: once a reply, never too long, and only where the row does not say it."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

from metric_core.metrics.registry import resolve
from metric_core.prompts.judge_questions import JudgeQuestion
from metric_core.records import AnswerStatus
from metric_core.schemas import SCHEMAS
from metric_core.stages import Product, Stage
from tasks.engine.registry import STAGES
from tasks.models.judges.answer_cells import reply_cell
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer
from tasks.models.judges.scripted import ScriptedJudge
from tasks.opening.local_models import load_pipeline
from tasks.options.language_options import LanguageSettings
from tasks.options.metric_settings import MetricSettings
from tasks.rows.records import build_table
from tasks.stages import claims, explanations, questions, ratings, verdicts
from tests.tasks.builders import GivenModels, cells, run_stage, samples_table

Script: TypeAlias = Callable[[JudgeQuestion], Any]

VALUES: dict[str, Any] = {
    "claims": {"claims": ["It rains.", "It pours."]},
    "questions": {
        "questions": [{"question": "Why?", "noncommittal": False}, {"question": "Who?", "noncommittal": True}]
    },
    "relevant_sentences": {"relevant": [2]},
    "rubric": {"feedback": "Short.", "score": "2"},
    "explanation": {"explanation": "It says so."},
}
SAMPLE = {
    "user_input": "Does it rain?",
    "response": "It rains and pours.",
    "retrieved_contexts": ["It rains. It is warm.", "It snows."],
}


def answer(question: JudgeQuestion) -> Any:
    """A reply in words, beside what is made of it; labels for choices."""
    kind = str(question.kind)
    if kind in VALUES:
        return GenerateAnswer(AnswerStatus.ANSWERED, VALUES[kind], reply=f"<{kind}>")
    return ChoiceAnswer(AnswerStatus.ANSWERED, (getattr(question, "labels", ("",))[0],) * 1, reply="the label")


def failure(question: JudgeQuestion) -> Any:
    """Nothing usable, but words."""
    kind = GenerateAnswer if str(question.kind) in VALUES else ChoiceAnswer
    return kind(AnswerStatus.FAILED, reason="reply cut off", reply=f"<{question.kind}")


@pytest.fixture(params=[answer, failure])
def judge(request: pytest.FixtureRequest) -> Script:
    """The answers of the judge of all stages."""
    given: Script = request.param
    return given


def end_of(judge: Script) -> str:
    """The words that the judge ends its replies with."""
    return ">" if judge is answer else ""


def replies(stage: Stage, tables: dict[Stage, pa.Table], settings: Any, judge: Script) -> Sequence[Any]:
    models = GivenModels(ScriptedJudge(judge), given_pipeline=load_pipeline(LanguageSettings()))
    return [reply for (reply,) in cells(run_stage(STAGES[stage], tables, settings, models).table, "reply")]


def test_a_list_of_claims_or_questions_has_its_reply_once(judge: Script) -> None:
    end = end_of(judge)
    tables = {Stage.SAMPLES: samples_table(SAMPLE)}
    settings = claims.ClaimsSettings(products=(Product.RESPONSE_CLAIMS,))
    assert replies(Stage.CLAIMS, tables, settings, judge) == [f"<claims{end}", None][: 2 if end else 1]
    settings_of_questions = questions.QuestionsSettings(count=2)
    assert (
        replies(Stage.QUESTIONS, tables, settings_of_questions, judge) == [f"<questions{end}", None][: 2 if end else 1]
    )


def test_a_written_rating_and_an_explanation_have_their_reply(judge: Script) -> None:
    end = end_of(judge)
    metrics = (MetricSettings.from_request(resolve("rubrics").request({}, key="rubrics")),)
    tables = {Stage.SAMPLES: samples_table(SAMPLE)}
    assert replies(Stage.RATINGS, tables, ratings.RatingsSettings(metrics=metrics), judge) == [f"<rubric{end}"]
    claim = {"row_id": "row-1", "claim_id": "response:0", "status": "answered"}
    tables[Stage.CLAIMS] = build_table(Stage.CLAIMS, [{**claim, "side": "response", "text": "It rains."}])
    verdict = {**claim, "kind": "support", "premise": "contexts", "verdict": 0}
    tables[Stage.VERDICTS] = build_table(Stage.VERDICTS, [verdict])
    assert replies(Stage.EXPLANATIONS, tables, explanations.ExplanationsSettings(), judge) == [f"<explanation{end}"]


def test_a_label_is_its_own_reply_and_a_failed_one_is_kept(judge: Script) -> None:
    end = end_of(judge)
    found = [
        {"row_id": "row-1", "side": side, "claim_id": f"{side}:{number}", "text": text, "status": "answered"}
        for side, number, text in (
            ("response", "0", "It rains."),
            ("context_sentence", "0:0", "It rains."),
            ("context_sentence", "0:1", "It is warm."),
        )
    ]
    tables = {Stage.SAMPLES: samples_table(SAMPLE), Stage.CLAIMS: build_table(Stage.CLAIMS, found)}
    products = (Product.RESPONSE_CLAIMS_BY_CONTEXTS, Product.SENTENCE_RELEVANCE)
    label, first, second = replies(Stage.VERDICTS, tables, verdicts.VerdictsSettings(products=products), judge)
    assert label == (None if end else "<verdict")
    assert (first, second) == (f"<relevant_sentences{end}", None)


def test_votes_without_a_label_keep_the_words_once() -> None:
    votes = ChoiceAnswer(AnswerStatus.ANSWERED, ("1", None, None), reply="1\nPerhaps.\nWho knows.")
    metrics = (
        MetricSettings.from_request(resolve("aspect_critic").request({"definition": "Kind?", "strictness": 3}, "kind")),
    )
    tables = {Stage.SAMPLES: samples_table(SAMPLE)}
    found = replies(Stage.RATINGS, tables, ratings.RatingsSettings(metrics=metrics), lambda _: votes)
    assert found == [None, votes.reply, None]


def test_half_a_character_does_not_break_a_table() -> None:
    reply = reply_cell(GenerateAnswer(AnswerStatus.ANSWERED, reply="a\ud83d"))
    row = {"row_id": "1", "side": "response", "claim_id": "response:0", "text": "\ud83d b", "status": "answered"}
    table = build_table(Stage.CLAIMS, [{**row, "reply": reply}, {**row, "text": "c"}])
    assert cells(table, "text", "reply") == [("? b", "a?"), ("c", None)]
    vote = {"row_id": "1", "metric": "m", "template": "t", "vote": 0, "status": "answered"}
    table = build_table(Stage.RATINGS, [{**vote, "panel": [{"judge": "\udc00", "label": "1", "probability": 0.5}]}])
    assert cells(table, "panel") == [([{"judge": "?", "label": "1", "probability": 0.5}],)]


def test_tables_with_replies_have_a_version_of_their_own() -> None:
    versions = {stage: schema.version for stage, schema in SCHEMAS.items() if "reply" in schema.arrow.names}
    assert versions == {
        Stage.FOLLOW_UPS: 1,
        Stage.CLAIMS: 4,
        Stage.QUESTIONS: 2,
        Stage.VERDICTS: 4,
        Stage.EXPLANATIONS: 3,
        Stage.RATINGS: 3,
    }
