"""The reference covers every stage, and stages compute each row from that row alone."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metric_core.stages import JUDGED, Stage
from tasks.engine.registry import STAGES
from tasks.options.evaluation_options import EvaluationOptions
from tests.engine.hash_judge import NAME, HashJudge
from tests.engine.reference import Reference, normalize
from tests.engine.runs import METRICS, Night, reference_tables, rows_of, samples_of

pytestmark = pytest.mark.models

VERDICTS = st.sampled_from(["binary", "probability"])
CONTENTS = st.lists(st.integers(0, 30), min_size=2, max_size=5)


def reference(fails: bool = False, **options: Any) -> Reference:
    values = {"metrics": METRICS, "verdict": "binary", "explain": "all", "judge": {"backend": NAME}} | options
    return Reference(EvaluationOptions.model_validate(values), HashJudge(fails=fails))


def test_every_stage_has_rows() -> None:
    tables = reference_tables(Night(tuple((f"r{number}", number) for number in range(6))))
    assert tables.keys() == {Stage.SAMPLES, *STAGES}
    assert all(table.num_rows for table in tables.values())


def test_a_judge_that_fails_leaves_its_mark_in_every_stage_that_asks() -> None:
    tables = reference(fails=True).tables(samples_of([("r1", 1)]))
    first = {stage for stage in JUDGED if not JUDGED.intersection(STAGES[stage].reads) - {Stage.FOLLOW_UPS}}
    assert all("failed" in tables[stage]["status"].to_pylist() for stage in first)
    assert "failed" in tables[Stage.AGGREGATION]["status"].to_pylist()


@settings(max_examples=5)
@given(contents=CONTENTS, verdict=VERDICTS, fails=st.booleans())
def test_rows_computed_together_are_those_computed_alone(contents: list[int], verdict: str, fails: bool) -> None:
    judge = reference(fails, verdict=verdict)
    ids = [f"r{number}" for number in range(len(contents))]
    samples = samples_of(zip(ids, contents, strict=True))
    alone, together = judge.tables(samples), judge.tables_of_row(samples)
    for stage, table in together.items():
        for row_id in ids:
            one, other = (normalize(stage, rows_of(each, [row_id])) for each in (table, alone[stage]))
            assert one.equals(other), (stage, row_id)
