"""A stage runs no formula that its recipe does not depend on, so that no result outlives the code that computed it."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pytest

from metric_core.schemas import SCHEMAS
from metric_core.stages import Stage
from tasks.engine import formulas
from tasks.engine.registry import LEVELS, STAGES
from tasks.opening.run_models import RunModels
from tasks.options.judge_options import JudgeSettings
from tasks.options.judge_server_options import ServerJudgeOptions
from tests.properties.sets import REQUESTS
from tests.structure.house import ROOT
from tests.tasks.builders import run_stage, samples_table
from tests.tasks.models.judges.openai.fake_server import FakeServer
from tests.tasks.stages.stage_settings import WITH_METRICS, settings_of

REQUESTED = [request for requests in REQUESTS.values() for request in requests]
MORE = {
    "earlier_turns": "User: What can I spend?",
    "earlier_contexts": ["Meals cost money."],
    "earlier_answers": ["You can spend money."],
    "tool_results": ["45"],
    "reference_context_ids": ["expenses.md#1"],
    "relevance_judgments": [{"id": "expenses.md#1", "grade": 2.0}, {"id": "travel.md#1", "grade": 0.0}],
    "rubrics": [{"key": f"score{score}_description", "description": str(score)} for score in (1, 2)],
}
"""Values of the columns that the examples do not have."""


@contextmanager
def note_modules() -> Iterator[set[str]]:
    """The names of the modules with formulas of which a function is called in the block, in any thread."""
    called: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            called.add(frame.f_globals.get("__name__", ""))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    called -= {name for name in called if not formulas._is_formula(name)}


def example_samples() -> pa.Table:
    """Rows of the handbook, with a value in every column."""
    columns = set(SCHEMAS[Stage.SAMPLES].arrow.names)
    lines = (ROOT / "examples/handbook_cited.jsonl").read_text(encoding="utf-8").splitlines()[:2]
    rows = [{name: value for name, value in json.loads(line).items() if name in columns} for line in lines]
    return samples_table(*({**row, **MORE, "reference_contexts": row["retrieved_contexts"][:2]} for row in rows))


def judge_settings(backend: str, server: FakeServer) -> JudgeSettings:
    if backend == "builtin":
        return JudgeSettings(backend="builtin")
    return JudgeSettings(backend="server", server=ServerJudgeOptions(urls=(server.url,)))


@pytest.mark.models
@pytest.mark.parametrize("backend", ["builtin", "server"])
def test_a_stage_runs_no_formula_that_its_recipe_does_not_have(backend: str, tmp_path: Path) -> None:
    ran: dict[Stage, set[str]] = {}
    with FakeServer() as server:
        given = {"judge": judge_settings(backend, server), "cache": str(tmp_path / "answers.db")}
        tables = {Stage.SAMPLES: example_samples()}
        for stage in (stage for level in LEVELS for stage in level if stage in STAGES):
            inputs = {earlier: tables[earlier] for earlier in STAGES[stage].reads}
            run_models = RunModels()
            for requests in [[each] for each in REQUESTED] if stage in WITH_METRICS else [[]]:
                settings = settings_of(stage, *requests, **given)
                with note_modules() as called:
                    run_stage(STAGES[stage], inputs, settings, run_models.select(settings))
                assert called <= formulas.formulas_of(stage, settings), (stage, requests)
                ran[stage] = ran.get(stage, set()) | called
            tables[stage] = run_stage(STAGES[stage], inputs, settings_of(stage, *REQUESTED, **given)).table
            assert tables[stage].num_rows > 0
    assert all(ran.values())
