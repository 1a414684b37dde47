"""The stage `follow_ups`: questions that follow others are made self-contained once, and all stages read them."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from metric_core.metrics.registry import resolve
from metric_core.reasons import NEEDS_LANGUAGE_MODEL, NO_USABLE_REPLY
from metric_core.stages import Product, Stage
from tasks.options.judge_options import JudgeSettings
from tasks.options.metric_settings import MetricSettings
from tasks.rows.records import read_asked_samples
from tasks.stages.follow_ups import FollowUpsSettings, follow_ups
from tasks.stages.ratings import RatingsSettings, ratings
from tasks.stages.verdicts import VerdictsSettings, verdicts
from tests.tasks.builders import cells, fails, run_stage, samples_table, says, script

BEFORE = "User: Where is the shop?\nAssistant: In Delft."
FIRST = {"user_input": "Where is the shop?"}
FOLLOWS = {"user_input": "When does it open?", "earlier_turns": BEFORE}
ALONE = "When does the shop in Delft open?"


def rewrite(judge: JudgeSettings, *rows: dict[str, Any]) -> pa.Table:
    return run_stage(follow_ups, {Stage.SAMPLES: samples_table(*rows)}, FollowUpsSettings(judge=judge)).table


def test_only_questions_that_follow_others_are_asked_about(tmp_path: Path) -> None:
    judge = script(tmp_path, says("follow_up", "When does it open?", BEFORE, answer={"question": f" {ALONE} "}))
    rows = [FIRST, FOLLOWS, {"user_input": " ", "earlier_turns": BEFORE}, {"earlier_turns": BEFORE}]
    found = rewrite(judge, *rows)
    assert cells(found, "row_id", "question", "status", "reason") == [("row-2", ALONE, "answered", None)]
    samples = read_asked_samples({Stage.SAMPLES: samples_table(*rows), Stage.FOLLOW_UPS: found})
    assert [sample.user_input for sample in samples] == ["Where is the shop?", ALONE, " ", None]


def test_without_a_question_that_of_the_user_is_read(tmp_path: Path) -> None:
    rows = [FOLLOWS, FOLLOWS | {"user_input": "And how?"}]
    judge = script(
        tmp_path, fails("follow_up", "When does it open?"), says("follow_up", "And how?", answer={"question": " "})
    )
    found = rewrite(judge, *rows)
    assert cells(found, "question", "status", "reason") == [
        (None, "failed", "the reply was cut off"),
        (None, "failed", NO_USABLE_REPLY),
    ]
    samples = read_asked_samples({Stage.SAMPLES: samples_table(*rows), Stage.FOLLOW_UPS: found})
    assert [sample.user_input for sample in samples] == ["When does it open?", "And how?"]


def test_the_builtin_judge_cannot_write_and_says_so() -> None:
    found = rewrite(JudgeSettings(), FOLLOWS)
    assert cells(found, "question", "status", "reason") == [(None, "undefined", NEEDS_LANGUAGE_MODEL)]


def test_judged_stages_read_the_question_that_stands_alone(tmp_path: Path) -> None:
    row = FOLLOWS | {"response": "At nine.", "retrieved_contexts": ["It opens at nine."]}
    judge = script(
        tmp_path,
        says("follow_up", answer={"question": ALONE}),
        says("usefulness_for_response", ALONE, answer="yes"),
        says("context_relevance_1", ALONE, answer="2"),
        says("context_relevance_2", ALONE, answer="2"),
    )
    tables = {Stage.SAMPLES: samples_table(row), Stage.FOLLOW_UPS: rewrite(judge, row)}
    useful = VerdictsSettings(products=(Product.USEFULNESS_FOR_RESPONSE,), judge=judge)
    assert cells(run_stage(verdicts, tables, useful).table, "verdict", "status") == [(1, "answered")]
    asked = RatingsSettings(
        metrics=(MetricSettings.from_request(resolve("nv_context_relevance").request()),), judge=judge
    )
    assert cells(run_stage(ratings, tables, asked).table, "value", "status") == [("2", "answered")] * 2
