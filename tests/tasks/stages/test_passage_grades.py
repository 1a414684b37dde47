"""Grades of passages by the judge: asked once per question and text, whatever the metrics and the index."""

from pathlib import Path

import pyarrow as pa

from metric_core.metrics.registry import parse_request
from metric_core.prompts.judge_questions import JudgeQuestion
from metric_core.question_kinds import RATING_KINDS, QuestionKind
from metric_core.stages import Stage
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cached_judge import CachedJudge
from tasks.engine.fingerprint import settings_fingerprint
from tasks.models.judges.scripted import ScriptedJudge
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline
from tasks.options.metric_settings import MetricSettings
from tasks.runtime.database_address import engine_url
from tasks.stages.ratings import RatingsSettings, ratings
from tests.tasks.builders import GivenModels, cells, run_stage, samples_table, script

QUESTIONS, DEPTH = 40, 10
METRICS = ("ndcg(judgments=judge)", "retrieval_recall(judgments=judge)", "hit_rate(judgments=judge, k=3)")


def models_with(judge: ScriptedJudge, folder: Path) -> GivenModels:
    """Return models with a judge whose answers are cached."""
    cached = CachedJudge(judge, AnswerCache(engine_url(str(folder / "answers.db"))))
    return GivenModels(given_judge=cached, given_pipeline=SpacyPipeline())


def grade(question: JudgeQuestion) -> str | None:
    """Grade by the length of the passage."""
    return str(len(question.texts["context"]) % 4) if question.kind is QuestionKind.PASSAGE_RELEVANCE else None


def retrieve(name: str, changed: int = 0) -> pa.Table:
    """Return questions with passages of an index, the last `changed` of all new, under ids of that index."""
    rows = []
    for number in range(QUESTIONS):
        ranks = [number * DEPTH + rank for rank in range(DEPTH)]
        texts = [f"passage {i}{' rewritten' if i >= QUESTIONS * DEPTH - changed else ''}" for i in ranks]
        ids = [f"{name}-{i}" for i in ranks]
        rows.append(
            {"user_input": f"Q{number}?", "retrieved_contexts": texts[::-1], "retrieved_context_ids": ids[::-1]}
        )
    return samples_table(*rows)


def settings_of(tmp_path: Path, *metrics: str) -> RatingsSettings:
    requests = (parse_request(metric) for metric in metrics)
    return RatingsSettings(metrics=tuple(map(MetricSettings.from_request, requests)), judge=script(tmp_path))


def test_a_rebuilt_index_asks_only_about_its_new_passages(tmp_path: Path) -> None:
    judge = ScriptedJudge(grade)
    models = models_with(judge, tmp_path)
    settings, pairs = settings_of(tmp_path, *METRICS), QUESTIONS * DEPTH
    first = run_stage(ratings, {Stage.SAMPLES: retrieve("old")}, settings, models)
    assert len(judge.asked) == pairs  # three metrics ask about each passage, once
    assert first.table.num_rows == pairs * 2 + QUESTIONS * 3
    judge.asked.clear()
    again = run_stage(ratings, {Stage.SAMPLES: retrieve("new", changed=pairs // 20)}, settings, models)
    assert 0 < len(judge.asked) <= 0.06 * pairs
    assert (again.usage.questions, again.usage.stored) == (pairs, pairs - len(judge.asked))


def test_label_and_probabilities_are_kept(tmp_path: Path) -> None:
    judge = ScriptedJudge({"passage_relevance": {"0": 0.1, "1": 0.2, "2": 0.6, "3": 0.1}})
    models = models_with(judge, tmp_path)
    table = samples_table({"user_input": "Q?", "retrieved_contexts": ["one"]})
    output = run_stage(ratings, {Stage.SAMPLES: table}, settings_of(tmp_path, METRICS[0]), models)
    [(template, value, probabilities)] = cells(output.table, "template", "value", "probabilities")
    assert (template, value) == ("passage:0", "2")
    assert {each["label"]: each["probability"] for each in probabilities} == {"0": 0.1, "1": 0.2, "2": 0.6, "3": 0.1}


def test_only_metrics_that_ask_for_grades_depend_on_their_prompt(tmp_path: Path) -> None:
    def digests(wording: str) -> list[str]:
        judge = ScriptedJudge(grade)
        judge.fingerprint = lambda kind: f"{kind} {wording}" if kind == "passage_relevance" else str(kind)  # type: ignore[method-assign]
        models = models_with(judge, tmp_path)
        metrics = ("nv_accuracy", "ndcg(judgments=both)")
        return [settings_fingerprint(settings_of(tmp_path, each), models, ratings.asks) for each in metrics]

    before, after = digests("as it was"), digests("in other words")
    assert before[0] == after[0]
    assert before[1] != after[1]
    assert QuestionKind.PASSAGE_RELEVANCE in set(RATING_KINDS) - set(ratings.asks)
