"""Several runs are compared over the rows that all of them have scored."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import ConfigError
from metric_core.records import Score
from metric_core.stages import Stage
from tasks.comparison.run_pair import Matching
from tasks.documents.markdown import to_markdown
from tasks.many_runs.compared_runs import CONTEXT_WORDS, ManyRuns, compare_many
from tasks.many_runs.many_page import many_page
from tasks.many_runs.many_words import blocks_of, many_to_dict
from tests.tasks import compared
from tests.tasks.reports import folders

METRICS: Mapping[str, Mapping[str, Any]] = {
    "faithfulness": {"direction": "higher", "bounds": [0.0, 1.0]},
    "noise_sensitivity": {"direction": "lower", "bounds": [0.0, 1.0], "parameters": {"mode": "relevant"}},
    "latency": {"direction": "lower", "bounds": None, "family": "figures"},
    "house_style": {"direction": "neither", "bounds": None},
}


def write(folder: Path, good: float, seconds: float, words: int = 10, missing: Sequence[int] = ()) -> Path:
    """Write a run whose rows are good in a share of cases."""
    cells = {
        f"row-{row:02}": {
            "faithfulness": Score.failed("no reply")
            if row in missing
            else Score.scored(float(row * 7 % 40 < good * 40)),
            "noise_sensitivity": Score.scored(1.0 - good),
            "latency": Score.scored(seconds),
            "house_style": Score.labelled("formal"),
        }
        for row in range(40)
    }
    samples = [
        {"row_id": row, "row_number": number, "user_input": "?", "retrieved_contexts": ["word " * words]}
        for number, row in enumerate(cells, start=1)
    ]
    return folders.write_run(folder, cells, {Stage.SAMPLES: samples}, METRICS, {"status": "completed"})


@pytest.fixture
def many(tmp_path: Path) -> ManyRuns:
    folders_of_runs = [
        write(tmp_path / "slow", 0.95, 4.0, 900),
        write(tmp_path / "quick", 0.925, 1.0, 300),
        write(tmp_path / "poor", 0.4, 2.0, 500),
    ]
    return compare_many(folders_of_runs, Matching(), ["faithfulness"])


def test_runs_near_the_best_may_be_the_best_and_the_others_not(many: ManyRuns) -> None:
    [metric] = many.metrics
    assert [many.runs[place].name for place in metric.best] == ["slow", "quick"]
    assert metric.ranking.runs[2].beaten_by == 0
    assert (len(metric.losses[2].worse), metric.losses[2].better, metric.losses[0].worse) == (22, 0, ())


def test_costs_stand_beside_quality(many: ManyRuns) -> None:
    assert many.costs == (CONTEXT_WORDS, "latency")
    assert [run.costs["latency"] for run in many.runs] == [4.0, 1.0, 2.0]
    assert many.front("latency") == (1, 0)
    text = to_markdown(blocks_of(many))
    assert "cheapest of the runs that may be the best, by latency: `quick` with 1; `slow`, which has the best" in text


def test_without_names_all_metrics_with_a_direction_but_costs_are_ranked_by(tmp_path: Path) -> None:
    runs = [write(tmp_path / str(number), 0.9, 1.0) for number in range(3)]
    many = compare_many(runs, Matching())
    assert [metric.metric for metric in many.metrics] == ["faithfulness", "noise_sensitivity"]
    assert "these 40 rows cannot tell the 3 runs apart" in to_markdown(blocks_of(many))
    assert [metric.metric for metric in compare_many(runs, Matching(), ["latency"]).metrics] == ["latency"]
    with pytest.raises(ConfigError, match="cannot be ranked by 'house_style'"):
        compare_many(runs, Matching(), ["house_style"])


def test_rows_are_those_that_all_runs_have_scored(tmp_path: Path) -> None:
    runs = [
        write(tmp_path / "a", 0.9, 1.0),
        write(tmp_path / "b", 0.9, 1.0, missing=[3]),
        write(tmp_path / "c", 0.9, 1),
    ]
    [metric] = compare_many(runs, Matching(), ["faithfulness"]).metrics
    assert (metric.ranking.rows, metric.unscored, metric.kept) == (39, (0, 1, 0), ())


def test_a_beaten_run_stays_if_missing_scores_could_make_up_for_it(tmp_path: Path) -> None:
    worst = [row for row in range(40) if row * 7 % 40 >= 20]
    runs = [
        write(tmp_path / "a", 0.5, 1.0),
        write(tmp_path / "b", 0.5, 1.0),
        write(tmp_path / "c", 0.3, 1.0, missing=worst),
    ]
    many = compare_many(runs, Matching(), ["faithfulness"])
    assert many.metrics[0].kept == (2,)
    assert "`c` may be the best only because of scores that are missing" in to_markdown(blocks_of(many))


def test_runs_without_a_common_row_or_another_judge_are_told(tmp_path: Path) -> None:
    judge = {"backend": "server", "model": "other", "revision": "", "note": "", "language_model": True}
    runs = [compared.write_run(tmp_path / name, 0.5) for name in "ab"]
    other = compared.write_run(tmp_path / "c", 0.5, judge=judge)
    assert "Not like for like" in to_markdown(blocks_of(compare_many([*runs, other], Matching())))
    with pytest.raises(ConfigError, match="no row in common: no id is in all"):
        compare_many([*runs, compared.write_run(tmp_path / "d", 0.5, first=40)], Matching())


def test_groups_and_other_names_of_rows_are_read_as_in_two_runs(tmp_path: Path) -> None:
    runs = [compared.write_run(tmp_path / name / "run", 0.5) for name in "abc"]
    many = compare_many(runs, Matching("user_input", "topic"))
    assert (many.by, many.metrics[0].ranking.groups, many.rows) == ("topic", 10, 40)
    assert len({run.name for run in many.runs}) == 3


def test_json_and_page_have_all_runs(many: ManyRuns) -> None:
    content = many_to_dict(many)
    assert content["fronts"] == {CONTEXT_WORDS: ["quick", "slow"], "latency": ["quick", "slow"]}
    [metric] = content["metrics"]
    assert (metric["best"], metric["ranking"]["runs"][2]["beaten_by"]) == (["slow", "quick"], 0)
    json.dumps(content, allow_nan=False)
    page = many_page(many)
    assert "<script" not in page
    assert page.count("<circle cx") == 6  # both costs
    assert page.count('class="point best front"') == 4


def test_hostile_texts_are_no_markup(tmp_path: Path) -> None:
    first, second = compared.write_hostile_pair(tmp_path)
    third = first.rename(tmp_path / "<img src=x>")
    page = many_page(compare_many([second, third, second], Matching()))
    assert "<img" not in page
    assert "&lt;img src=x&gt;" in page
