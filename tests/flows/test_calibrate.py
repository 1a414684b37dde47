"""The flow `calibrate` on a real Prefect server: a scripted judge compared with labels, and its use in later runs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.calibrate import CalibrationResult, calibrate, calibrate_run, prepare_calibration
from flows.compare_judges import compare_candidates, comparison_content, parse_candidates
from flows.config.calibration_request import CalibrationRequest
from flows.config.gate_file import GateSettings
from flows.config.loading import load_config
from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from flows.results.gated_comparison import CompareOptions, apply_gate
from metric_core.calibration.platt import ProbabilityMap
from metric_core.errors import ConfigError, SourceError
from tasks.calibration.calibration_files import load_calibration, load_saved
from tests.tasks.builders import fails, says, script

PEOPLE = Path(__file__).resolve().parents[3] / "shared" / "meta_eval" / "faithfulness_begin.parquet"
SURE = (0.98, 0.9, 0.95, 0.97, 0.3, 0.9, 0.1, 0.4, 0.8, 0.05)
FAITHFUL = (1, 1, 1, 0, 1, 1, 0, 0, 0, 0)
ROWS: Sequence[Mapping[str, Any]] = [
    {
        "id": f"r{number}",
        "user_input": f"Where is number {number % 4}?",
        "response": f"In hall {number}.",
        "retrieved_contexts": [f"Hall {number} is there."],
        "faithful": FAITHFUL[number] if number < 10 else None if number == 10 else 1,
        "stars": 1 + number % 5,
    }
    for number in range(12)
]
ANSWERS = (
    *(says("claims", f"In hall {n}.", answer={"claims": [f"It is in hall {n}."]}) for n in range(12)),
    *(says("verdict", f"It is in hall {n}.", answer={"yes": p, "no": 1 - p}) for n, p in enumerate(SURE)),
    says("verdict", "It is in hall 10.", answer="yes"),
    fails("verdict", "It is in hall 11."),
)


def config_of(folder: Path, *answers: Mapping[str, Any], **options: Any) -> RunConfig:
    source = folder / "labels.jsonl"
    source.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    judge = script(folder, *(answers or ANSWERS)).model_dump()
    return RunConfig.model_validate({"source": str(source), "judge": judge, **options})


def calibrate_by(folder: Path, label: str = "faithful", by: str | None = None, **options: Any) -> CalibrationResult:
    config = config_of(folder, out=str(folder / "labelled"), by=by)
    return calibrate(CalibrationRequest(config=config, label=label, **options))


def manifest_of(folder: str | Path) -> Any:
    return json.loads((Path(folder) / "run.json").read_text(encoding="utf-8"))


@pytest.fixture
def home(prefect_stub: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: ARG001
    """Return a home without calibrations, separate from the home of the Prefect server."""
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def check_labels_of_a_run(tmp_path: Path, folder: str, earlier: CalibrationResult) -> None:
    """Estimate the mean label of a run from labels of its own. No server and no judge is asked."""
    own = CalibrationRequest(config=config_of(tmp_path), label="faithful", run=folder, sampling="random")
    fewer = own.model_copy(update={"config": own.config.model_copy(update={"limit": 4})})
    with pytest.raises(ConfigError, match=r"4 labelled rows .* rests on 10 rows .*--replace"):
        calibrate_run(fewer)
    assert load_calibration(Path(str(earlier.kept))) == earlier.calibration
    assert not (Path(folder) / "labels.parquet").exists()
    labelled = calibrate_run(own.model_copy(update={"keep": False}))
    assert labelled.corrected is not None
    assert (labelled.corrected.value, labelled.corrected.method) == (0.5, "labels alone")
    with pytest.raises(ConfigError, match=r"has 10 labels of faithfulness, and 4 would replace them\. Use --replace"):
        calibrate_run(fewer.model_copy(update={"keep": False}))
    gate = GateSettings.model_validate({"absolute": ["faithfulness.corrected >= 0.1", "faithfulness.corrected >= 0.6"]})
    checked = apply_gate(Path(folder), CompareOptions(gate=gate)).gate
    assert checked is not None
    assert [str(check.outcome) for check in checked.checks] == ["passed", "inconclusive"]


@pytest.mark.prefect
@pytest.mark.models
def test_calibration_is_applied_by_later_runs(home: Path, tmp_path: Path) -> None:
    result = calibrate_by(tmp_path)
    found = result.calibration
    counts = found.counts
    assert (counts.rows, counts.unlabelled, counts.failed, counts.compared, counts.positive) == (12, 1, 1, 10, 5)
    assert found.metric == "faithfulness"
    said = [p >= 0.5 for p in SURE]
    pairs = [(said[i], said[j]) for i in range(10) for j in range(10) if FAITHFUL[i] > FAITHFUL[j]]
    assert found.figures["auroc"].value == pytest.approx(sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs))
    assert found.map is not None
    assert found.map.slope < 1  # 0.97 and 0.8 were wrong
    assert (
        load_calibration(Path(result.folder) / "calibration.json") == found == load_calibration(Path(str(result.kept)))
    )
    assert Path(str(result.kept)).is_relative_to(home)
    assert manifest_of(result.folder)["calibration"]["metrics"]["faithfulness"]["compared"] == 10

    metrics = ("faithfulness",)
    later = run_evaluation(config_of(tmp_path, metrics=metrics, out=str(tmp_path / "later")))
    entry = manifest_of(later.folder)["calibration"]
    assert entry["not_covered"] == []
    assert entry["metrics"]["faithfulness"]["applied"] is False
    assert set(entry["metrics"]["faithfulness"]["figures"]) <= {"auroc", "kappa", "agreement", "calibration_error"}

    check_labels_of_a_run(tmp_path, later.folder, result)

    options = {"metrics": metrics, "verdict": "probability", "calibration": "latest"}
    mapped = run_evaluation(config_of(tmp_path, out=str(tmp_path / "mapped"), **options))
    fitted = ProbabilityMap(found.map.slope, found.map.intercept)
    values = pq.read_table(Path(mapped.folder) / "scores.parquet")["value"].to_pylist()
    assert values[:10] == pytest.approx([fitted(p) for p in SURE])
    assert values[10:] == [1.0, None]
    assert manifest_of(mapped.folder)["calibration"]["metrics"]["faithfulness"]["applied"] is True

    another = (*ANSWERS, says("rubric", answer={"feedback": "", "score": "1"}))
    config = config_of(tmp_path, *another, out=str(tmp_path / "another"), metrics=metrics)
    entry = manifest_of(run_evaluation(config).folder)["calibration"]
    assert entry["metrics"] == {}
    [note] = entry["not_covered"]
    assert note.startswith("the calibration of faithfulness of ")
    assert "does not hold here: it is of revision" in note
    with pytest.raises(ConfigError, match=r"no calibration with a map is saved for the judge script\.json"):
        run_evaluation(config.model_copy(update={"verdict": "probability", "calibration": "latest"}))
    named = {"verdict": "probability", "calibration": f"{result.folder}/calibration.json"}
    with pytest.raises(ConfigError, match="does not hold for this run: it is of revision"):
        run_evaluation(config.model_copy(update=named))


@pytest.mark.prefect
@pytest.mark.models
@pytest.mark.usefixtures("home")
def test_a_look_is_not_counted_as_the_first_if_the_last_one_cannot_be_read(tmp_path: Path) -> None:
    folder = calibrate_by(tmp_path).folder
    (Path(folder) / "calibration.json").write_text("{", encoding="utf-8")
    own = CalibrationRequest(config=config_of(tmp_path), label="faithful", run=str(folder), sampling="random")
    with pytest.raises(ConfigError, match="it is not known how often this sample was looked at: the calibration"):
        calibrate_run(own)


@pytest.mark.prefect
@pytest.mark.models
def test_a_trial_on_a_few_labels_leaves_the_saved_calibration(home: Path, tmp_path: Path) -> None:
    saved = calibrate_by(tmp_path)
    config = config_of(tmp_path, out=str(tmp_path / "trial"), limit=4)
    trial = CalibrationRequest(config=config, label="faithful")
    with pytest.raises(ConfigError, match=r"not saved: it rests on 4 labelled rows .* rests on 10 rows"):
        calibrate(trial)
    assert load_calibration(tmp_path / "trial" / "calibration.json").counts.compared == 4
    assert load_calibration(Path(str(saved.kept))) == saved.calibration
    replaced = calibrate(trial.model_copy(update={"replace": True}))
    assert [each.calibration.counts.compared for each in load_saved()] == [4, 10]
    assert Path(str(replaced.kept)).is_relative_to(home)


@pytest.mark.prefect
@pytest.mark.models
def test_grades_are_scaled_to_the_range_and_keep_false_saves_nothing(home: Path, tmp_path: Path) -> None:
    result = calibrate_by(tmp_path, "stars", metric="faithfulness", keep=False, span=(1, 5), by="user_input")
    found = result.calibration
    assert (found.scale, found.span, found.counts.positive) == ("graded", (1, 5), None)
    assert set(found.figures) == {"spearman", "agreement", "calibration_error"}
    assert {figure.interval for figure in found.figures.values()} == {None}  # the rows are of fewer than five questions
    assert (result.kept, (home / "calibrations").exists()) == (None, False)


@pytest.mark.simulation
@pytest.mark.prefect
@pytest.mark.models
@pytest.mark.skipif(not PEOPLE.is_file(), reason="the labelled data are not beside this checkout")
@pytest.mark.usefixtures("home")
def test_builtin_judge_agrees_with_people_better_than_chance(tmp_path: Path) -> None:
    table = pq.read_table(PEOPLE)
    chosen = pa.concat_tables([table.slice(start, 15) for start in range(0, table.num_rows, table.num_rows // 6)])
    pq.write_table(chosen, tmp_path / "people.parquet")
    config = RunConfig(source=str(tmp_path / "people.parquet"), out=str(tmp_path / "run"), limit=90, by="group_id")
    request = CalibrationRequest(config=config, label="label_attributable", metric="faithfulness")
    figure = calibrate(request).calibration.figures["auroc"]
    assert figure.value > 0.7
    assert figure.interval is not None
    assert figure.interval.low > 0.5


@pytest.mark.parametrize(
    ("label", "options", "words"),
    [
        ("faithful", {}, None),
        ("stars", {"metric": "answer_relevancy"}, None),
        ("label_faithfulness", {}, None),
        ("stars", {}, "which metric are the labels in 'stars' about\\? Name it with --metric: faithfulness, "),
        ("stars", {"metric": "faithfull"}, "Did you mean faithfulness"),
    ],
)
def test_metric_is_named_or_inferred_from_the_label(
    tmp_path: Path, label: str, options: dict[str, Any], words: str | None
) -> None:
    config = config_of(tmp_path)
    rows = [{**row, "label_faithfulness": row["faithful"]} for row in ROWS]
    Path(str(config.source)).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    request = CalibrationRequest(config=config, label=label, **options)
    if words is None:
        found = prepare_calibration(request)
        assert found.config.metrics == (options.get("metric", "faithfulness"),)
        assert found.metric.key == options.get("metric", "faithfulness")
        return
    with pytest.raises(ConfigError, match=words):
        prepare_calibration(request)


def test_metric_inferred_from_the_label_keeps_its_parameters(tmp_path: Path) -> None:
    metrics = ("answer_relevancy", {"metric": "faithfulness", "key": "mine"})
    ready = prepare_calibration(CalibrationRequest(config=config_of(tmp_path, metrics=metrics), label="faithful"))
    assert [metric.key for metric in ready.config.requests() or ()] == ["mine"]


def test_labels_are_checked_before_any_question_is_asked(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no column 'fathful'\. Did you mean 'faithful'"):
        prepare_calibration(CalibrationRequest(config=config_of(tmp_path), label="fathful", metric="faithfulness"))
    with pytest.raises(ConfigError, match="there is nothing to calibrate on"):
        prepare_calibration(CalibrationRequest(config=RunConfig(), label="faithful"))
    with pytest.raises(SourceError, match=r"'r0' is labelled, but the probability with which it was drawn is 'Where"):
        prepare_calibration(CalibrationRequest(config=config_of(tmp_path), label="faithful", sampling="user_input"))


def test_calibration_option_is_a_word_or_a_relative_path(tmp_path: Path) -> None:
    file = tmp_path / "assay.toml"
    for said, meant in (("latest", "latest"), ("none", "none"), ("c.json", str(tmp_path / "c.json"))):
        file.write_text(f'calibration = "{said}"\n', encoding="utf-8")
        assert load_config(file).calibration == meant


@pytest.mark.prefect
@pytest.mark.models
def test_judges_are_compared_on_the_same_labels_and_claims(home: Path, tmp_path: Path) -> None:
    right = [says("verdict", f"It is in hall {n}.", answer="yes" if FAITHFUL[n] else "no") for n in range(10)]
    for name, answers in (("good", right), ("rough", ANSWERS[12:22])):
        (tmp_path / name).mkdir()
        file = script(tmp_path / name, *answers).script
        (tmp_path / f"{name}.toml").write_text(f'[judge]\nbackend = "scripted"\nscript = {json.dumps(file)}\n')
    words = f"{tmp_path / 'rough.toml'},{tmp_path / 'good.toml'}"
    config = config_of(tmp_path, out=str(tmp_path / "compared"), limit=10)
    told: list[str] = []
    request = CalibrationRequest(config=config, label="faithful")
    candidates = parse_candidates(words, config.prices)
    result = compare_candidates(request, candidates, lambda name, _number: told.append(Path(name).stem))
    assert told == ["rough", "good"]
    assert not (home / "calibrations").exists()
    best, other = result.judges
    assert [Path(each.name).stem for each in (best, other)] == ["good", "rough"]
    assert [best.agreement, other.agreement] == pytest.approx([1.0, 0.7])
    for folder in result.folders.values():
        roles = {role["groups"][0]: role["model"] for role in manifest_of(folder)["judges"]}
        assert set(roles) == {"verdicts", "writing"}
    content = comparison_content(result)
    assert json.loads(json.dumps(content))["rows"] == result.rows == 10
    assert all({"auroc", "kappa"} <= judge["figures"].keys() for judge in content["judges"])


def test_judges_to_compare_are_two_or_more_different_ones() -> None:
    prices = RunConfig().prices
    for words in ("builtin", "builtin,builtin", ""):
        with pytest.raises(ConfigError, match="needs at least two different judges"):
            parse_candidates(words, prices)
    with pytest.raises(ConfigError, match="is not a URL"):
        parse_candidates("builtin,localhost:8000/v1", prices)


def test_prices_of_a_candidate_are_those_of_its_judge_else_of_its_file(tmp_path: Path) -> None:
    served = 'judge = {backend = "server", server = {urls = ["http://gpu/v1"]%s}}\nprices = {prompt = 2.0}\n'
    names = []
    for number, own in enumerate((", prices = {prompt = 0.1}", "")):
        (tmp_path / f"{number}.toml").write_text(served % own, encoding="utf-8")
        names.append(str(tmp_path / f"{number}.toml"))
    found = parse_candidates(",".join(["builtin", *names]), RunConfig().prices)
    assert [candidate.prices.prompt for candidate in found] == [None, 0.1, 2.0]
