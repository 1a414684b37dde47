"""A stage's function is computed from its arguments alone: without Prefect, an environment, or a model of its own."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from metric_core.metrics.registry import resolve
from metric_core.prompts.judge_questions import ChoiceQuestion, JudgeQuestion
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus
from metric_core.schemas import SCHEMAS
from metric_core.stages import PRODUCTS, Product, Stage
from tasks.engine.registry import LEVELS, STAGES
from tasks.models.embedders.protocol import EmbedderIdentity
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer
from tasks.models.judges.scripted import ScriptedJudge
from tasks.models.recognizers.protocol import Entity
from tasks.options.metric_settings import MetricSettings
from tests.structure.house import ROOT
from tests.tasks.builders import GivenModels, samples_table

GENERATED: dict[str, Any] = {
    QuestionKind.FOLLOW_UP: {"question": "Does it rain in Delft?"},
    QuestionKind.CLAIMS: {"claims": ["It rains."]},
    QuestionKind.QUESTIONS: {"questions": [{"question": "Why?", "noncommittal": False}]},
    QuestionKind.RELEVANT_SENTENCES: {"relevant": [1]},
    QuestionKind.EXPLANATION: {"explanation": "It says so."},
    QuestionKind.RATING_EXPLANATION: {"explanation": "It says so."},
    QuestionKind.KEY_POINT_WRITING: {"key_points": [{"text": "It rains.", "importance": "okay"}]},
}
SAMPLE = {"user_input": "Rain?", "response": "It rains.", "reference": "Rain.", "retrieved_contexts": ["It pours."]}
SAMPLE |= {"earlier_turns": "User: Delft?"}
ALONE = "import sys; sys.modules['prefect'] = None; from tests.tasks.stages import test_purity as t; t.compute_all()"


class Embedder:
    """Gives every text the same vector."""

    identity = EmbedderIdentity("test", "one", "1", 2)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 2), np.float32)


class CrossEncoder:
    """Finds every pair equal."""

    identity = EmbedderIdentity("test", "cross", "1", 1)

    def similarity(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        return np.ones(len(pairs), np.float32)


class Pipeline:
    """Takes a text for one sentence and one entity."""

    def sentences(self, texts: Sequence[str]) -> list[list[str]]:
        return [[text] for text in texts]

    def entities(self, texts: Sequence[str]) -> list[list[Entity]]:
        return [[Entity(text, "THING")] for text in texts]


def answer(question: JudgeQuestion) -> Any:
    if isinstance(question, ChoiceQuestion):
        return ChoiceAnswer(AnswerStatus.ANSWERED, (question.labels[-1],) * question.votes)
    return GenerateAnswer(AnswerStatus.ANSWERED, GENERATED[question.kind])


def products(stage: Stage) -> tuple[Product, ...]:
    return tuple(product for product, spec in PRODUCTS.items() if spec.stage is stage)


def compute_all(*, narrow: bool = False) -> dict[Stage, pa.Table]:
    """The tables of all stages, each made from those before it, or from the columns of these that it declares."""
    pipeline: Any = Pipeline()
    models = GivenModels(ScriptedJudge(answer), Embedder(), CrossEncoder(), pipeline, pipeline)
    asked = MetricSettings.from_request(resolve("aspect_critic").request({"definition": "Kind?"}, "kind"))
    tables = {Stage.SAMPLES: samples_table(SAMPLE)}
    for stage in (stage for level in LEVELS for stage in level if stage in STAGES):
        definition = STAGES[stage]
        given = {"products": products(stage), "metrics": (asked,), "explained": "all", "planned": tuple(Product)}
        fields = definition.settings.model_fields
        settings = definition.settings(**{name: value for name, value in given.items() if name in fields})
        columns = definition.columns if narrow else {}
        inputs = {each: tables[each].select(columns.get(each, tables[each].column_names)) for each in definition.reads}
        reports: list[tuple[int, int]] = []
        tables[stage] = definition.compute(
            inputs, settings, models, lambda *report, kept=reports: kept.append(report)
        ).table
        assert sum(done for done, _ in reports) == sum(total for _, total in reports) > 0, stage
    return tables


def test_every_stage_gives_a_table_of_its_schema() -> None:
    tables = compute_all()
    assert set(tables) == {Stage.SAMPLES, *STAGES}
    for stage, table in tables.items():
        assert table.num_rows > 0, stage
        assert table.schema.names == SCHEMAS[stage].arrow.names


def test_nothing_but_the_arguments_decides() -> None:
    for stage in STAGES:
        assert compute_all()[stage].equals(compute_all()[stage]), stage


def test_a_stage_reads_no_columns_but_those_that_it_declares() -> None:
    whole, narrow = compute_all(), compute_all(narrow=True)
    assert any(STAGES[stage].columns for stage in STAGES)
    assert {stage for stage in whole if not whole[stage].equals(narrow[stage])} == set()


def test_no_stage_needs_prefect_or_an_environment() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], cwd=ROOT, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
