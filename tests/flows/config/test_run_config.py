"""The configuration: precedence of command line, environment and file, and errors that name the option."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from deployments.cli.init import config_template
from flows.config.loading import load_config
from flows.config.run_config import RunConfig
from flows.planning.planner import plan_without_data
from metric_core.errors import ConfigError, MetricParameterError, UnknownMetricError
from metric_core.question_kinds import KindGroup
from tasks.runtime.home import assay_home

SCHEMA = Path(__file__).parents[3] / "docs" / "config.schema.json"


def write(folder: Path, text: str, name: str = "assay.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_command_line_overrides_environment_which_overrides_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, 'limit = 1\non_bad_row = "skip"\nshard_rows = 7')
    monkeypatch.setenv("ASSAY_LIMIT", "2")
    monkeypatch.setenv("ASSAY_ON_BAD_ROW", "fail")
    config = load_config(file, {"limit": 3, "metrics": None})
    assert (config.limit, config.on_bad_row, config.shard_rows) == (3, "fail", 7)


def test_windows_are_small_for_a_judge_server_and_shards_where_stages_do_not_share_them() -> None:
    cases: list[tuple[dict[str, object], int, int]] = [
        ({}, 1000, 200),
        ({"runner": "dask"}, 1000, 200),
        ({"judge": "http://localhost:8000/v1"}, 1000, 25),
        ({"judge": "http://localhost:8000/v1", "runner": "dask"}, 200, 25),
        ({"judge": {"launch": {"model": "m", "python": "python"}}}, 1000, 25),
        ({"panel": ["http://localhost:8000/v1"]}, 1000, 25),
        ({"judge": "http://localhost:8000/v1", "shard_rows": 700}, 700, 25),
    ]
    for said, rows, window in cases:
        config = load_config(None, said)
        assert (config.rows_a_shard(), config.rows_a_window()) == (rows, window), (said, rows, window)


def test_verdicts_of_the_builtin_judge_alone_count_as_probabilities_by_default() -> None:
    cases: list[tuple[dict[str, object], str]] = [
        ({}, "probability"),
        ({"panel": ["builtin"]}, "probability"),
        ({"verdict": "binary"}, "binary"),
        ({"judge": "http://localhost:8000/v1"}, "binary"),
        ({"panel": ["http://localhost:8000/v1"]}, "binary"),
        ({"judge": {"backend": "own:Judge"}}, "binary"),
        ({"judge": {"launch": {"model": "m", "python": "python"}}}, "binary"),
        ({"judge": "http://localhost:8000/v1", "verdict": "probability"}, "probability"),
    ]
    for said, verdict in cases:
        config = load_config(None, said)
        assert config.verdict_kind == verdict, (said, verdict)
        # A rerun with another judge, from the configuration in run.json, counts verdicts as the run did.
        assert plan_without_data(config).record["verdict"] == verdict, (said, verdict)


@pytest.mark.parametrize(
    ("said", "stages"),
    [
        ({}, 4),
        ({"judge": "http://localhost:8000/v1"}, 12),
        ({"judge": "http://localhost:8000/v1", "runner": "dask"}, 4),
        ({"judge": "http://localhost:8000/v1", "workers": 3}, 3),
    ],
)
def test_more_stages_run_concurrently_for_a_judge_server(said: dict[str, object], stages: int) -> None:
    assert load_config(None, said).stages_at_once() == stages


def test_tables_are_merged_option_by_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, '[embedder]\nbackend = "huggingface"\nmodel = "from-file"')
    monkeypatch.setenv("ASSAY_EMBEDDER__MODEL", "from-environment")
    config = load_config(file)
    assert (config.embedder.backend, config.embedder.model) == ("huggingface", "from-environment")


def test_metrics_are_split_at_commas_outside_parentheses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_METRICS", "faithfulness, factual_correctness(mode=recall,beta=2)")
    requests = load_config().requests()
    assert requests is not None
    assert [request.metric.name for request in requests] == ["faithfulness", "factual_correctness"]
    assert requests[1].parameters["beta"] == 2


def test_metric_may_be_a_table_with_a_custom_key(tmp_path: Path) -> None:
    text = 'metrics = [{metric = "aspect_critic", key = "kind", parameters = {definition = "Is it kind?"}}]'
    requests = load_config(write(tmp_path, text)).requests()
    assert requests is not None
    assert (requests[0].key, requests[0].parameters["definition"]) == ("kind", "Is it kind?")


def test_columns_are_mapped_by_pairs_or_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_COLUMN_MAP", "prompt=user_input, out = response")
    assert load_config().column_map == {"prompt": "user_input", "out": "response"}
    monkeypatch.setenv("ASSAY_COLUMN_MAP", '{"prompt": "user_input"}')
    assert load_config().column_map == {"prompt": "user_input"}


def test_yaml_is_read_with_paths_relative_to_the_file(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, "source: data.jsonl\nmetrics: [faithfulness]\n", "assay.yaml"))
    assert config.source == str(tmp_path / "data.jsonl")
    assert config.metrics == ("faithfulness",)


def test_every_path_of_a_file_is_relative_to_it(tmp_path: Path) -> None:
    text = (
        'tables = "kept/tables"\ncalibration = "latest"\n[judge]\nbackend = "scripted"\nscript = "answers.json"\n'
        '[deploy]\nbaselines = "accepted"\nalerts = {file = "alerts.jsonl"}\n'
    )
    config = load_config(write(tmp_path, text))
    found = (config.tables, config.judge.script, config.deploy.baselines, config.deploy.alerts.file)
    assert found == tuple(str(tmp_path / name) for name in ("kept/tables", "answers.json", "accepted", "alerts.jsonl"))
    assert config.calibration == "latest"


@pytest.mark.parametrize("source", ["s3://bucket/data.jsonl", "hub:owner/name", "~/data.jsonl"])
def test_urls_are_left_unchanged(tmp_path: Path, source: str) -> None:
    assert load_config(write(tmp_path, f'source = "{source}"')).source == source


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("limits = 3", "limits: there is no such option"),
        ("limit = 0", "limit: .*greater than or equal to 1, got 0"),
        ('[judge]\nbackend = "oracle"', "judge.backend: .*'builtin'.*got 'oracle'"),
        ('column_map = "prompt"', "column_map: .*comma-separated.*, got 'prompt'$"),
        ("limit = ", "cannot be read"),
    ],
)
def test_invalid_options_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(write(tmp_path, text))


def test_missing_file_is_an_error_that_names_assay_init(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="assay init"):
        load_config(tmp_path / "nowhere.toml")


def test_unknown_metric_suggests_a_similar_name() -> None:
    with pytest.raises(UnknownMetricError, match="Did you mean faithfulness"):
        RunConfig(metrics=("faithfulnes",)).requests()


def test_unknown_parameter_lists_the_known_ones() -> None:
    with pytest.raises(MetricParameterError, match="it has: mode"):
        RunConfig(metrics=("noise_sensitivity(modus=relevant)",)).requests()


def test_home_is_set_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path))
    assert assay_home() == tmp_path


def test_published_schema_matches_the_configuration() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == RunConfig.model_json_schema()


@pytest.mark.parametrize("source", [None, "examples/handbook.jsonl"])
@pytest.mark.parametrize("everything", [False, True])
def test_config_template_is_valid_as_written_and_uncommented(
    source: str | None, everything: bool, tmp_path: Path
) -> None:
    written = config_template(source, Path(), everything)
    assert max(map(len, written.splitlines())) <= 100
    assert load_config(write(tmp_path, written)).source is not None
    options = re.compile(r"^# (?=\w+ = |\[)", re.MULTILINE)
    uncommented = options.sub("", written)
    assert "\n[judge]\n" in uncommented
    RunConfig.model_validate(tomllib.loads(uncommented))
    values = len(re.findall(r"^(?:# (?:or, .*: )?)?\w+ = ", written, re.MULTILINE))
    left_out = re.findall(r"^# (\d+) more options: assay init --all$", written, re.MULTILINE)
    everything_written = config_template(source, Path(), everything=True)
    assert (values == 15) == (not everything)
    assert values + sum(map(int, left_out)) == len(
        re.findall(r"^(?:# (?:or, .*: )?)?\w+ = ", everything_written, re.MULTILINE)
    )


def test_config_template_names_the_metrics_that_the_data_allows() -> None:
    config = RunConfig.model_validate(tomllib.loads(config_template("examples/handbook.jsonl", Path())))
    assert config.metrics is not None
    assert "faithfulness" in config.metrics
    assert "id_context_recall" not in config.metrics


def test_judge_may_be_a_word_or_a_server_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_JUDGE", "http://localhost:8000")
    judge = load_config().judge
    assert judge.server is not None
    assert (judge.backend, judge.server.urls) == ("server", ("http://localhost:8000/v1",))
    assert load_config(overrides={"judge": {"backend": "builtin"}}).judge.backend == "builtin"


def test_password_in_a_judge_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match="must hold no user, password") as caught:
        load_config(overrides={"judge": "http://me:hunter2@localhost:8000/v1"})
    assert "hunter2" not in str(caught.value)


def test_panel_members_may_be_words_urls_or_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASSAY_PANEL", "builtin, http://gpu2:8000/v1")
    assert [judge.backend for judge in load_config().panel] == ["builtin", "server"]
    monkeypatch.delenv("ASSAY_PANEL")
    file = write(tmp_path, 'panel = ["builtin", {backend = "scripted", script = "answers.json"}]\n')
    assert [judge.script for judge in load_config(file).panel] == [None, "answers.json"]


def test_password_in_a_panel_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match=r"panel\.0\.server\.urls.*must hold no user, password") as caught:
        load_config(overrides={"panel": ["http://me:hunter2@localhost:8000/v1"]})
    assert "hunter2" not in str(caught.value)


def test_only_the_first_judge_of_a_panel_may_be_launched() -> None:
    launched = {"backend": "server", "launch": {"python": "python", "model": "m"}}
    with pytest.raises(ConfigError, match="launches the lead of a panel only"):
        load_config(overrides={"panel": [launched]})


def test_a_judge_of_a_group_is_named_in_a_file_in_the_environment_or_by_a_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "c.toml"
    file.write_text(
        'source = "rows.jsonl"\n[judge.verdicts]\nbackend = "server"\nserver = {urls = ["http://a:1/v1"]}\n'
        'panel = ["builtin"]\n'
    )
    monkeypatch.setenv("ASSAY_JUDGE__RATINGS", "http://b:2/v1")
    config = load_config(file, {"judge": {"writing": "http://c:3/v1"}})
    named = {group: judge.server.urls for group, judge in config.judge.by_group.items() if judge.server}
    assert named == {"verdicts": ("http://a:1/v1",), "writing": ("http://c:3/v1",), "ratings": ("http://b:2/v1",)}
    assert [judge.backend for judge in config.judges] == ["builtin", "server", "builtin", "server", "server"]
    assert config.verdict_kind == "binary"


def test_a_run_launches_the_judges_of_groups_and_asks_them_where_they_run() -> None:
    launch = {"python": "python", "model": "m"}
    config = RunConfig.model_validate({"judge": {"launch": launch, "verdicts": {"launch": {**launch, "model": "v"}}}})
    assert {group: each.model for group, each in config.launches.items()} == {None: "m", "verdicts": "v"}
    ready = config.with_launched_judges({None: "http://a:1/v1", KindGroup.VERDICTS: "http://b:2/v1"})
    assert ready.launches == {}
    assert [judge.server and judge.server.urls for judge in ready.judges] == [("http://a:1/v1",), ("http://b:2/v1",)]


def test_judges_may_have_prices_of_their_own_in_one_currency() -> None:
    judge = {"verdicts": {"backend": "server", "server": {"urls": ["http://gpu/v1"], "prices": {"prompt": 0.1}}}}
    config = RunConfig.model_validate({"judge": judge, "budget": 2.5})  # prices of any judge make money countable
    assert (config.has_prices, config.prices.are_known, config.currency) == (True, False, "USD")
    with pytest.raises(ValueError, match="prices in EUR and USD, which cannot be added"):
        RunConfig.model_validate({"judge": judge, "prices": {"prompt": 1.0, "currency": "EUR"}})


def test_a_starter_configuration_suggests_columns_that_look_like_others(tmp_path: Path) -> None:
    source = write(tmp_path, "question,answer,context,expectedOutput\nWhy?,So.,It is.,So\n", "log.csv")
    written = config_template(str(source), tmp_path)
    (suggested,) = [line for line in written.splitlines() if line.startswith('# column_map = {"context"')]
    config = load_config(write(tmp_path, suggested.removeprefix("# ")))
    assert config.column_map == {"context": "retrieved_contexts", "expectedOutput": "reference"}


def test_a_mistake_of_the_whole_configuration_has_no_empty_name_before_it() -> None:
    with pytest.raises(ConfigError, match=r"cannot be used:\n  budget is 5 in money, but nothing has a price"):
        load_config(None, {"budget": 5})


def test_a_judge_is_launched_by_one_of_python_and_container() -> None:
    both = {"model": "m", "python": "python", "container": ["docker", "run", "image"]}
    with pytest.raises(ConfigError, match=r"judge\.launch\.container: got both; set either python"):
        load_config(None, {"judge": {"launch": both}})
