"""The cache in runs: its option, its use, and passwords in its address."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from flows.config.loading import load_config
from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from flows.execution.run import running_judges
from flows.planning.planner import draft_plan
from metric_core.errors import ConfigError, JudgeError
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.maintenance import statistics
from tasks.engine.registry import STAGES
from tasks.engine.stage_step import fingerprint_stage
from tasks.opening.caches import open_cache
from tasks.opening.run_models import RunModels
from tasks.runtime.database_address import engine_url
from tests.tasks.builders import says, script
from tests.tasks.models.judges.openai.fake_server import FakeServer, step

ROW = {
    "id": "r1",
    "user_input": "Where are bikes repaired?",
    "response": "Bikes are repaired in Dublin.",
    "retrieved_contexts": ["Repairs happen in Dublin.", "The canteen serves soup."],
    "reference": "In Dublin.",
}
ANSWERS = (
    says("claims", answer={"claims": ["Bikes are repaired in Dublin."]}),
    says("verdict", answer={"yes": 0.8, "no": 0.2}),
)
METRICS = ("faithfulness", "context_recall", "answer_similarity", "context_entity_recall")


def config_of(folder: Path, **options: Any) -> RunConfig:
    """Return the configuration of a run over one row with a scripted judge and no stored results."""
    source = folder / "rows.jsonl"
    source.write_text(json.dumps(ROW), encoding="utf-8")
    judge = script(folder, *ANSWERS).model_dump()
    values = {"source": str(source), "metrics": METRICS, "judge": judge, "out": str(folder / "run")} | options
    return RunConfig.model_validate(values)


def test_file_is_relative_to_the_configuration_and_a_url_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "assay.toml"
    path.write_text('cache = "kept.db"', encoding="utf-8")
    assert load_config(path).cache == str(tmp_path / "kept.db")
    monkeypatch.setenv("ASSAY_CACHE", "postgresql://assay@db.example/answers")
    assert load_config(path).cache == "postgresql://assay@db.example/answers"


def test_cache_is_in_the_settings_and_in_no_fingerprint(tmp_path: Path) -> None:
    here, there = (config_of(tmp_path, cache=str(tmp_path / name)) for name in ("here.db", "there.db"))
    for stage, settings in draft_plan(here).stages.items():
        if STAGES[stage].cached:
            assert getattr(settings, "cache", None) == here.cache
            other = draft_plan(there).stages[stage]
            models = RunModels()
            assert fingerprint_stage(stage, settings, models) == fingerprint_stage(stage, other, models)


@pytest.mark.prefect
@pytest.mark.models
def test_cached_answers_cost_nothing(prefect_stub: object, tmp_path: Path) -> None:  # noqa: ARG001
    answers = str(tmp_path / "answers.db")
    usages, scores = [], []
    for number in (1, 2):
        out, tables = tmp_path / f"run-{number}", tmp_path / f"tables-{number}"
        run_evaluation(config_of(tmp_path, cache=answers, out=str(out), tables=str(tables)))
        usages.append(json.loads((out / "run.json").read_text(encoding="utf-8"))["usage"])
        scores.append(pq.read_table(out / "scores.parquet"))
    assert usages[0]["stored"] < usages[0]["questions"] == usages[1]["questions"] == usages[1]["stored"]
    assert scores[0].equals(scores[1])
    assert {kind.step for kind in statistics(open_cache(answers))} == {"choice", "generate", "vector", "entities"}


def test_pending_answers_are_cached_even_if_the_run_fails(tmp_path: Path) -> None:
    path = tmp_path / "answers.db"
    config = RunConfig(cache=str(path))
    path.mkdir()
    with suppress(JudgeError), running_judges(config):
        open_cache(config.cache).add("test", {b"key": b"paid"})
        path.rmdir()
        raise JudgeError("the judge is lost")
    assert AnswerCache(engine_url(str(path))).find([b"key"], bytes) == {b"key": b"paid"}


@pytest.mark.prefect
def test_unusable_cache_stops_the_run(
    prefect_stub: object,  # noqa: ARG001
    tmp_path: Path,
) -> None:
    nowhere = f"postgresql://assay@/answers?host={tmp_path}"
    with pytest.raises(ConfigError, match=r"answer cache .* cannot be used"):
        run_evaluation(config_of(tmp_path, cache=nowhere))
    assert not (tmp_path / "run").exists()


@pytest.mark.prefect
@pytest.mark.models
def test_a_run_on_postgresql(prefect_stub: object, postgres_url: str, tmp_path: Path) -> None:  # noqa: ARG001
    run_evaluation(config_of(tmp_path, cache=postgres_url))
    assert sum(kind.count for kind in statistics(open_cache(postgres_url))) > 0
    assert not list(tmp_path.glob("*.db"))


@pytest.mark.prefect
@pytest.mark.models
def test_rows_are_found_without_the_cache_and_not_of_another_model(prefect_stub: object, tmp_path: Path) -> None:  # noqa: ARG001
    """The replies of the server vary a little, as those of a busy one do, until another model is behind it."""
    shares = iter([0.70, 0.70, 0.71, 0.40])
    with FakeServer() as server:

        def run(name: str) -> int:
            share, before = next(shares), len(server.asked)
            server.say_of_itself = lambda body: _graded(body, share)
            judge = {"backend": "server", "server": {"urls": [server.url]}}
            options: dict[str, Any] = {"judge": judge, "metrics": ("faithfulness",), "tables": str(tmp_path / "tables")}
            run_evaluation(config_of(tmp_path, **options, cache=str(tmp_path / f"{name}.db"), out=str(tmp_path / name)))
            return len(server.asked) - before

        asked = [run(name) for name in ("first", "cache lost", "cache lost and noise", "another model")]
    assert asked[0] == asked[3] > 0
    assert asked[1:3] == [0, 0]


def _graded(body: dict[str, Any], share: float) -> dict[str, Any]:
    """Return the reply of a model that finds the first of two or more labels this probable."""
    labels = (body.get("structured_outputs") or {}).get("choice", ())
    if not labels:
        return {}
    others = dict.fromkeys(labels[1:], (1 - share) / (len(labels) - 1))
    return {"content": labels[0], "steps": [step(labels[0], {labels[0]: share, **others})]}
