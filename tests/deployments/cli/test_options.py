"""The options about a run: each command that takes a configuration takes all of them."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
import typer
from typer.testing import CliRunner

from deployments.cli._support.options import with_config
from flows.config.run_config import RunConfig
from metric_core.question_kinds import KindGroup
from metric_core.stages import Stage
from tasks.options.trace_options import TraceSettings
from tests.deployments.cli.conftest import Outcome

SOURCE = "examples/handbook.jsonl"


def parse(*arguments: str) -> tuple[RunConfig, bool]:
    """Call a test command, and return the arguments that it receives."""
    calls: list[tuple[RunConfig, bool]] = []
    app = typer.Typer()

    @app.command()
    @with_config
    def command(config: RunConfig, loud: bool = False) -> None:
        calls.append((config, loud))

    assert CliRunner().invoke(app, arguments).exit_code == 0
    return calls[0]


def test_options_become_fields_of_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_LIMIT", "7")
    config, loud = parse(SOURCE, "--explain", "all", "--judge", "http://gpu:8000", "--model", "m", "--loud")
    assert (config.source, config.explain, config.limit, loud) == (SOURCE, "all", 7, True)
    assert config.judge.server is not None
    assert (config.judge.server.urls, config.judge.server.model) == (("http://gpu:8000/v1",), "m")


def test_a_named_judge_replaces_the_one_of_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(
        f"""source = "{Path(SOURCE).absolute()}"
[judge]
backend = "verifier"
profile = "factcg"
verifier = {{model = "models/factcg"}}
server = {{urls = ["http://b/v1"], concurrency = 7}}
launch = {{python = "python3", model = "m"}}
verdicts = {{backend = "server", profile = "minicheck-7b", server = {{urls = ["http://a/v1"], concurrency = 3}}}}
""",
        encoding="utf-8",
    )
    kept = parse(str(path))[0].judge
    assert (kept.profile, kept.launch is None, kept.verifier is None) == ("factcg", False, False)
    for word, backend, profile in (
        ("builtin", "builtin", None),
        ("http://gpu:8000/v1", "server", None),
        ("lettucedetect@http://gpu:8000/v1", "server", "lettucedetect"),
    ):
        judge = parse(str(path), "--judge", word, "--judge-verdicts", word)[0].judge
        for named, concurrency in ((judge, 7), (judge.verdicts, 3)):
            assert named is not None
            assert (named.backend, named.profile, named.launch, named.verifier) == (backend, profile, None, None)
            assert named.server is not None
            assert named.server.concurrency == concurrency


def test_stages_and_a_store_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = str(tmp_path / "answers.db")
    config, _ = parse(SOURCE, "--refresh", "claims, verdicts", "--cache", path)
    assert (config.refresh, config.cache) == ((Stage.CLAIMS, Stage.VERDICTS), path)
    monkeypatch.setenv("ASSAY_REFRESH", '["ratings"]')
    assert parse(SOURCE)[0].refresh == (Stage.RATINGS,)


def test_invalid_refresh_or_cache_is_a_message(assay: Callable[..., Outcome]) -> None:
    refused = assay("plan", SOURCE, "--refresh", "verdict")
    assert (refused.code, refused.out) == (2, "")
    assert "refresh" in refused.err
    assert "'verdicts'" in refused.err
    refused = assay("plan", SOURCE, "--cache", "postgresql://assay:hunter2@db/answers")
    assert (refused.code, refused.out) == (2, "")
    assert "PGPASSWORD" in refused.err
    assert "hunter2" not in refused.err


def test_every_option_is_a_field_of_the_configuration_or_of_its_tables() -> None:
    def command(_config: RunConfig) -> None: ...

    names = set(inspect.signature(with_config(command)).parameters)
    assert names - set(RunConfig.model_fields) == {
        *("config", "model", "help_all"),
        *(f"judge_{group}" for group in KindGroup),
        *(f"traces_{name}" for name in TraceSettings.model_fields if name != "seed"),
    }


@pytest.mark.parametrize(
    ("metric", "verdict", "is_said"),
    [("faithfulness", None, True), ("faithfulness", "binary", False), ("answer_similarity", None, False)],
)
def test_a_plan_says_whether_verdicts_count_as_probabilities(
    assay: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, metric: str, verdict: str | None, is_said: bool
) -> None:
    if verdict is not None:
        monkeypatch.setenv("ASSAY_VERDICT", verdict)
    outcome = assay("plan", SOURCE, "-m", metric, "--limit", "1")
    assert ("verdicts count as the judge's probabilities" in outcome.out) is is_said


def test_a_plan_shows_explanations(assay: Callable[..., Outcome]) -> None:
    assert "explanations" in assay("plan", SOURCE, "-m", "faithfulness", "--limit", "1", "--explain", "all").out
    refused = assay("plan", SOURCE, "--explain", "some")
    assert refused.code == 2
    assert "explain" in refused.err


@pytest.mark.parametrize(
    ("option", "default"),
    [
        ("judge", RunConfig().judge.backend),
        ("embedder", RunConfig().embedder.backend),
        ("explain", RunConfig().explain),
        ("on_bad_row", RunConfig().on_bad_row),
        ("empty_text", RunConfig().empty_text),
    ],
)
def test_help_shows_the_default(option: str, default: str) -> None:
    @with_config
    def command(config: RunConfig) -> None:
        raise AssertionError(config)

    _, declared = get_args(inspect.signature(command).parameters[option].annotation)
    assert declared.help.endswith(f"Default: {default}.")


@pytest.mark.parametrize("verb", ["run", "compare", "export"])
def test_help_shows_each_example_on_its_own_line(assay: Callable[..., Outcome], verb: str) -> None:
    lines = [line.strip() for line in assay(verb, "--help").out.partition("Examples:")[2].splitlines() if line.strip()]
    assert len(lines) >= 2
    assert all(line.startswith(f"assay {verb} ") for line in lines)


def test_misspelled_variable_is_a_warning(assay: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ASSAY_LIMT", "ASSAY_EMBEDER__MODEL", "ASSAY_WEBHOOK", "ASSAY_COMPARE_TOP", "ASSAY_EXPLAIN"):
        monkeypatch.setenv(name, "none")
    outcome = assay("plan", "nowhere.jsonl")
    assert [line for line in outcome.err.splitlines() if line.startswith("warning: ")] == [
        "warning: no option reads the variable ASSAY_EMBEDER__MODEL. Did you mean ASSAY_EMBEDDER__...?",
        "warning: no option reads the variable ASSAY_LIMT. Did you mean ASSAY_LIMIT?",
    ]


@pytest.mark.parametrize("option", ["--judge", "--embedder"])
def test_server_without_a_scheme_gets_a_hint(assay: Callable[..., Outcome], option: str) -> None:
    outcome = assay("plan", SOURCE, option, "localhost:8000/v1")
    assert outcome.code == 2
    assert "'localhost:8000/v1' is not a URL; give a server as in http://localhost:8000/v1" in outcome.err


def test_index_without_a_scheme_gets_a_hint(assay: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_RETRIEVER", "localhost:9000/search")
    outcome = assay("plan", SOURCE)
    assert outcome.code == 2
    assert "give a server as in http://localhost:9000/search" in outcome.err


def test_flags_that_select_traces_are_a_table_of_the_configuration() -> None:
    config, _ = parse("traces:spans.jsonl", "--sample", "0.5", "--where", "service.name=prod", "--where", "user.id=u1")
    assert config.traces == TraceSettings(sample=0.5, where={"service.name": "prod", "user.id": "u1"})
    assert parse(SOURCE)[0].traces is None


def test_flags_that_select_traces_are_refused_for_other_sources(assay: Callable[..., Outcome]) -> None:
    refused = assay("plan", SOURCE, "--since", "24h")
    assert refused.code == 2
    assert "write traces: before its path" in refused.err
