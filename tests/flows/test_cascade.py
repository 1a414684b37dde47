"""A cascade from end to end: two scripted judges, labels that let the cheaper one answer alone, and what it saves."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from deployments.cli._support.dry_run_table import print_dry_run
from flows.calibrate import CalibrationResult, calibrate_run
from flows.config.calibration_request import CalibrationRequest
from flows.config.run_config import RunConfig
from flows.dry_run.dry_run import make_dry_run
from flows.dry_run.dry_run_result import Certainty
from flows.evaluate import run_evaluation
from flows.planning.planner import draft_plan
from metric_core.errors import ConfigError
from metric_core.prompts.judge_questions import JudgeQuestion
from tasks.calibration.label_imports import draw_disagreements, import_labels
from tasks.calibration.label_sampling import SampleOptions, draw_sample
from tasks.calibration.run_labels import Disagreement
from tasks.documents.calibration.cascade_text import sureness_lines
from tasks.findings.cascade.cascade_finding import CascadeCounts, cascade_lines
from tasks.models.judges.scripted import ScriptedJudge
from tasks.opening.run_models import RunModels
from tasks.options.judged_settings import JudgedSettings
from tasks.runs.finished_run import FinishedRun
from tests.tasks.builders import says
from tests.tasks.calibration.test_stored_labels import export

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_stub")]

ROWS, UNSURE = 80, 20
"""The cheaper judge is unsure of the last rows, and says yes to all, of which every second is right."""
ABOUT = "response claims by all contexts"
CHEAP, DEAR = "cheap.json", "dear.json"


def is_true(row: int) -> bool:
    """Return what people say of the claim of a row."""
    return row % 4 > 0 if row < ROWS - UNSURE else row % 2 > 0


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str]]:
    """Return the number of questions that reached each judge, by its file and their kind."""
    counts: Counter[tuple[str, str]] = Counter()

    def count(method: str) -> None:
        plain = getattr(ScriptedJudge, method)

        def ask(judge: ScriptedJudge, questions: Sequence[JudgeQuestion], on_answer: Any = None) -> Any:
            counts.update((judge.identity.model, str(question.kind)) for question in questions)
            return plain(judge, questions, on_answer)

        monkeypatch.setattr(ScriptedJudge, method, ask)

    count("choose")
    count("generate")
    return counts


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    """Return the configuration of a cascade without labels."""
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    claims = {row: f"It is in hall {row}." for row in range(ROWS)}
    sure = [is_true(row) if row < ROWS - UNSURE else None for row in range(ROWS)]
    yes = [0.6 if label is None else 0.99 if label else 0.01 for label in sure]
    verdicts = [says("verdict", claims[row], answer={"yes": p, "no": 1 - p}) for row, p in enumerate(yes)]
    truths = [says("verdict", claims[row], answer="yes" if is_true(row) else "no") for row in range(ROWS)]
    written = [says("claims", f"In hall {row}.", answer={"claims": [claims[row]]}) for row in range(ROWS)]
    for name, answers in ((CHEAP, verdicts), (DEAR, [*truths, *written])):
        (tmp_path / name).write_text(json.dumps(answers), encoding="utf-8")
    return RunConfig.model_validate(
        {
            "source": write_rows(tmp_path, range(ROWS)),
            "metrics": ("faithfulness",),
            "cascade": [{"backend": "scripted", "script": str(tmp_path / name)} for name in (CHEAP, DEAR)],
            "tables": str(tmp_path / "tables"),
            "cache": str(tmp_path / "answers.db"),
        }
    )


def write_rows(folder: Path, rows: Sequence[int]) -> str:
    lines = [
        {
            "id": f"r{row:02}",
            "user_input": "Where?",
            "response": f"In hall {row}.",
            "retrieved_contexts": [f"Text {row}."],
        }
        for row in rows
    ]
    path = folder / f"rows-{len(rows)}.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return str(path)


def evaluate(config: RunConfig, out: Path, **options: Any) -> FinishedRun:
    changed = config.model_dump(exclude_unset=True) | {"out": str(out), **options}
    return FinishedRun(run_evaluation(RunConfig.model_validate(changed)).folder)


def calibrate(run: FinishedRun, config: RunConfig) -> CalibrationResult:
    of_run = config.model_copy(update={"source": None})
    return calibrate_run(CalibrationRequest(config=of_run, label="people", metric="faithfulness", run=str(run.folder)))


def summary_of(run: FinishedRun) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run.folder / "summary.json").read_text("utf-8"))
    return content


def verdicts_of(run: FinishedRun) -> dict[str, dict[str, Any]]:
    return {row["row_id"]: row for row in pq.read_table(run.folder / "stages" / "verdicts.parquet").to_pylist()}


def label_all(run: FinishedRun, file: Path, budget: int = ROWS, *, is_surest: bool = False) -> None:
    options = SampleOptions(metric="faithfulness", budget=budget, is_claims=True, is_surest=is_surest)
    sample = draw_sample(run, options)
    import_labels(run, "faithfulness", [export(sample, file, lambda key: float(is_true(int(key[1:3]))))])


def test_labels_of_the_surest_half_let_the_cheaper_judge_answer(config: RunConfig, tmp_path: Path) -> None:
    run = evaluate(config, tmp_path / "run")
    label_all(run, tmp_path / "surest.jsonl", 45, is_surest=True)
    found = calibrate(run, config).calibration
    assert not found.warnings
    [sure] = found.sure
    assert sure.answers.labels == 40
    assert sure.answers.covered <= 0.75  # of 80 verdicts 60 are equally sure
    with pytest.raises(ConfigError, match="--surest is for --claims of a run with a cascade"):
        draw_sample(run, SampleOptions(metric="faithfulness", budget=20, is_surest=True))


def test_the_cheaper_judge_answers_where_labels_allow_it_and_the_other_one_the_rest(
    questions: Counter[tuple[str, str]], config: RunConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = evaluate(config, tmp_path / "before")
    assert questions == {(CHEAP, "verdict"): ROWS, (DEAR, "verdict"): ROWS, (DEAR, "claims"): ROWS}
    assert summary_of(before)["cascade"] == {ABOUT: {"asked": ROWS, "alone": 0}}
    assert (
        "no labels say how sure cheap.json must be"
        in cascade_lines(before.record.cascade, before.summary.find_all(CascadeCounts))[0]
    )

    label_all(before, tmp_path / "few.jsonl", 30)
    few = calibrate(before, config)
    [line] = sureness_lines(few.calibration)
    assert "cheap.json answers nothing alone: 30 labels do not show" in line
    assert "labels like these might" in line

    label_all(before, tmp_path / "all.jsonl")
    found = calibrate(before, config)
    [line] = sureness_lines(found.calibration)
    assert "cheap.json answers where it is at least 99.0 % sure, 75 % of 80 verdicts" in line
    questions.clear()
    after = evaluate(config, tmp_path / "after")
    assert not questions
    sure = ROWS - UNSURE
    assert summary_of(after)["cascade"] == {ABOUT: {"asked": ROWS, "alone": sure}}
    assert "agreement" not in summary_of(after)
    [line] = cascade_lines(after.record.cascade, after.summary.find_all(CascadeCounts))
    assert "cheap.json gave 60 of 80 verdicts alone (75 % saved)" in line
    assert "0 of 60 labels of faithfulness" in line
    voters = Counter(tuple(vote["judge"] for vote in row["panel"]) for row in verdicts_of(after).values())
    assert voters == {(CHEAP,): sure, (CHEAP, DEAR): UNSURE}
    assert {row: each["verdict"] for row, each in verdicts_of(after).items()} == {
        f"r{row:02}": int(is_true(row)) for row in range(ROWS)
    }

    # The answers belong to the judges that gave them: without the cascade, none is asked again.
    dear = config.model_copy(update={"cascade": None})
    assert evaluate(dear, tmp_path / "dear", judge=config.judge).record.usage.stored == 2 * ROWS
    assert not questions

    # Elsewhere, only the rest goes on.
    own = {"tables": str(tmp_path / "other"), "cache": str(tmp_path / "other.db")}
    changed = RunConfig.model_validate(config.model_dump(exclude_unset=True) | own)
    dry_run = make_dry_run(draft_plan(changed))
    tallies = dry_run.by_judge
    assert dry_run.certainty is Certainty.ESTIMATED
    assert 50 < dry_run.spared < 70
    assert tallies[DEAR].questions == 2 * ROWS - dry_run.spared
    evaluate(changed, tmp_path / "elsewhere")
    assert questions == {(CHEAP, "verdict"): ROWS, (DEAR, "verdict"): UNSURE, (DEAR, "claims"): ROWS}
    assert tallies[CHEAP].questions == ROWS
    print_dry_run(dry_run)
    shown = " ".join(capsys.readouterr().out.split())
    assert "- cheap.json: 80 of 80 questions to ask (verdict)" in shown
    assert f"is expected to answer {dry_run.spared} of its questions alone" in shown


def test_what_the_last_judge_was_asked_is_offered_for_labels_unless_it_has_them(
    config: RunConfig, tmp_path: Path
) -> None:
    run = evaluate(config, tmp_path / "run")
    label_all(run, tmp_path / "some.jsonl", 70)
    offered = draw_disagreements(run, "faithfulness", Disagreement.UNSURE, 50, is_claims=True)
    assert (len(offered.items), offered.probabilities) == (ROWS - 70, None)


def test_options_of_a_cascade_are_two_judges_or_a_cheaper_one_beside_the_judge(config: RunConfig) -> None:
    assert config.cascade is not None
    named = config.model_dump(mode="json", exclude_unset=True)
    assert RunConfig.model_validate(named) == config
    assert [judge.script for judge in config.judges] == [config.judge.script, config.cascade.first.script]
    short = RunConfig.model_validate({"cascade": "builtin,http://gpu1:8000/v1"})
    table = RunConfig.model_validate({"judge": "http://gpu1:8000/v1", "cascade": {"first": "builtin"}})
    assert short == table
    for options, words in (
        ({"cascade": ["builtin"]}, "a cascade has two judges"),
        ({"cascade": ["builtin", "http://a/v1"], "judge": "http://b/v1"}, "the second judge of a cascade is the judge"),
    ):
        with pytest.raises(ValueError, match=words):
            RunConfig.model_validate(options)
    for refused, words in (
        ({"cascade": {"first": "builtin"}}, "the same judge twice"),
        ({"cascade": {"first": "builtin"}, "judge": {"verdicts": "builtin"}}, "a cascade gives the verdicts"),
    ):
        with pytest.raises(ConfigError, match=words):
            RunModels().open_judges(JudgedSettings.model_validate(refused))
