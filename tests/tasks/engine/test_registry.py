"""Order, levels and tables of stages follow from their declarations."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from metric_core.question_kinds import QuestionKind
from metric_core.schemas import SCHEMAS
from metric_core.stages import JUDGED, PRODUCT_STAGES, Stage
from tasks.engine.registry import LEVELS, STAGES
from tasks.models.protocol import Models
from tasks.options.settings import Settings
from tasks.stages.definition import Progress, StageOutput, Tables, stage
from tests.structure.house import PACKAGES, ROOT, modules

DECLARED = {Path("metric_core/stages.py"), Path("metric_core/schemas.py")}
"""Where members of Stage may be listed."""
FEW = 2
"""Members in one collection that say something about these stages, not about all."""


def test_the_levels_follow_from_what_stages_read() -> None:
    assert LEVELS == (
        (Stage.SAMPLES,),
        (Stage.FOLLOW_UPS, Stage.CLAIMS, Stage.QUESTIONS, Stage.ENTITIES),
        (Stage.RATINGS, Stage.VERDICTS, Stage.SIMILARITY, Stage.LANGUAGES),
        (Stage.EXPLANATIONS, Stage.AGGREGATION, Stage.DIAGNOSIS),
        (Stage.REPORTING,),
    )


def test_every_stage_has_its_place() -> None:
    assert sorted(stage for level in LEVELS for stage in level) == sorted(Stage)
    assert list(STAGES) == [stage for stage in Stage if stage not in (Stage.SAMPLES, Stage.REPORTING)]
    assert {stage for stage in STAGES if STAGES[stage].asks} == JUDGED
    assert set(PRODUCT_STAGES) <= set(STAGES) <= set(SCHEMAS)
    assert all(definition.stage is stage for stage, definition in STAGES.items())


@pytest.mark.parametrize(
    ("name", "asks"), [(Stage.ENTITIES, (QuestionKind.CLAIMS,)), (Stage.CLAIMS, ())], ids=["one too many", "none"]
)
def test_a_declaration_that_contradicts_the_core_is_refused(name: Stage, asks: tuple[QuestionKind, ...]) -> None:
    with pytest.raises(TypeError, match=rf"{name} asks .*JUDGED"):
        stage(name, version=1, reads=(), asks=asks)


def test_the_settings_are_those_of_the_function() -> None:
    @stage(Stage.ENTITIES, version=1, reads=())
    def entities(tables: Tables, settings: Settings, models: Models, progress: Progress) -> StageOutput:
        raise NotImplementedError

    assert entities.settings is Settings


def members(nodes: list[ast.expr]) -> set[str]:
    """The members of Stage among these expressions."""
    return {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Stage"
    }


def lists_of_stages(source: str) -> Iterator[int]:
    """The lines of collections that list stages, those of declarations left out."""
    tree = ast.parse(source)
    declarations = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == "stage"
        for inner in ast.walk(decorator)
    }
    for node in ast.walk(tree):
        if node in declarations or not isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            continue
        listed = [key for key in node.keys if key is not None] if isinstance(node, ast.Dict) else node.elts
        if len(members(listed)) > FEW:
            yield node.lineno


def test_stages_are_listed_only_where_they_are_declared() -> None:
    found = [
        f"{path}:{line}"
        for path in modules(*PACKAGES)
        if path not in DECLARED
        for line in lists_of_stages((ROOT / path).read_text(encoding="utf-8"))
    ]
    assert found == [], "derive it from tasks.engine.registry or metric_core.stages"


def test_a_list_of_stages_is_found() -> None:
    table = "X = {Stage.CLAIMS: 1, Stage.ENTITIES: 2, Stage.RATINGS: 3}\nY = (Stage.CLAIMS, Stage.ENTITIES)\n"
    declared = "@stage(Stage.X, version=1, reads=(Stage.A, Stage.B, Stage.C))\ndef x(): ...\n"
    assert list(lists_of_stages(f"{table}{declared}Z = [Stage.A, Stage.B, Stage.C]\n")) == [1, 5]
