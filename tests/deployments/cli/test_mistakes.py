"""Messages about a user's mistakes: one message that suggests what was meant, and no traceback."""

from collections.abc import Callable
from pathlib import Path

import pytest

from deployments.cli._support.cli_errors import describe_server_error
from deployments.cli.main import EXIT_CODES
from metric_core.errors import StorageError
from tests.deployments.cli.conftest import Outcome

Assay = Callable[..., Outcome]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("rn", "run"),
        ("evaluate", "run"),
        ("diff", "compare"),
        ("metric", "metrics"),
        ("plna", "plan"),
        ("evaluat", "run"),
    ],
)
def test_misspelled_verb_gets_a_suggestion(assay: Assay, wrong: str, right: str) -> None:
    outcome = assay(wrong)
    assert outcome.code == 2
    assert f"No such command '{wrong}'. Did you mean '{right}'?" in outcome.err


def test_unknown_verb_gets_the_list(assay: Assay) -> None:
    assert "`assay --help` lists them" in assay("xyzzy").err


def test_misspelled_flag_gets_a_suggestion(assay: Assay) -> None:
    outcome = assay("run", "--metrcs", "faithfulness")
    assert outcome.code == 2
    assert "No such option: --metrcs" in outcome.err
    assert "--metrics" in outcome.err


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("noise", "noise_sensitivity"),
        ("faithfullness", "faithfulness"),
        ("context_precison", "context_precision"),
        ("entity", "context_entity_recall"),
        ("semantic", "semantic_similarity"),
    ],
)
def test_misspelled_metric_gets_a_suggestion(assay: Assay, wrong: str, right: str) -> None:
    outcome = assay("metrics", wrong)
    assert outcome.code == 2
    assert f"unknown metric '{wrong}'. Did you mean {right}" in outcome.err


def test_unknown_metric_gets_the_list(assay: Assay) -> None:
    assert "Run `assay metrics` for a list" in assay("metrics", "zzz").err


def test_file_that_cannot_be_written_is_named(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    outcome = assay("init", "--out", str(tmp_path / "file" / "assay.toml"))
    assert outcome.code == 2
    assert (
        outcome.err
        == f"error: the configuration {tmp_path / 'file' / 'assay.toml'} cannot be written: Not a directory\n"
    )


def test_home_that_cannot_be_written_is_named(assay: Assay, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "file" / "home"))
    outcome = assay("run", "examples/handbook.jsonl", "--limit", "1")
    assert outcome.code == 2
    assert "Set ASSAY_HOME to a folder that you may write to" in outcome.err
    assert "Traceback" not in outcome.err


def test_suggested_option_is_from_the_same_table(assay: Assay, tmp_path: Path) -> None:
    file = tmp_path / "assay.toml"
    file.write_text("[embedder]\nmodl = 'x'\n[judge]\nbackends = 'builtin'", encoding="utf-8")
    told = assay("run", str(file)).err
    assert "embedder.modl: there is no such option. Did you mean model?" in told
    assert "judge.backends: there is no such option. Did you mean backend?" in told


def test_misspelled_option_in_a_file_gets_a_suggestion(assay: Assay, tmp_path: Path) -> None:
    file = tmp_path / "assay.toml"
    file.write_text("metrcs = ['faithfulness']", encoding="utf-8")
    assert "metrcs: there is no such option. Did you mean metrics?" in assay("run", str(file)).err


def test_a_narrow_terminal_gets_a_narrow_table(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deployments.cli.metrics.stdout._width", 80)
    shown = assay("metrics").out
    assert "columns" not in shown.splitlines()[0]
    assert max(map(len, shown.splitlines())) <= 80


def test_prefect_server_that_refuses_or_is_unreachable_is_reported() -> None:
    from httpx import Request, Response
    from prefect.exceptions import PrefectHTTPStatusError

    request = Request("GET", "http://prefect.example/api/admin/version")

    def refusal(status: int) -> PrefectHTTPStatusError:
        return PrefectHTTPStatusError("no", request=request, response=Response(status, request=request))

    unreachable = RuntimeError("Failed to reach API at http://me:hunter2@127.0.0.1:9/api/")
    assert "cannot be reached (Failed to reach API at http://127.0.0.1:9/api/)" in str(
        describe_server_error(unreachable)
    )
    assert "requires a password (401); set PREFECT_API_AUTH_STRING" in str(describe_server_error(refusal(401)))
    assert "returned an error (500)" in str(describe_server_error(refusal(500)))
    assert describe_server_error(RuntimeError("another")) is None


def test_invalid_prefect_settings_are_reported_without_their_values() -> None:
    from prefect.settings.models.api import APISettings

    with pytest.raises(ValueError, match="request_timeout") as wrong:
        APISettings.model_validate({"request_timeout": "hunter2"})
    said = str(describe_server_error(wrong.value))
    assert said.startswith("Prefect's settings cannot be used: request_timeout: Input should be a valid number")
    assert "hunter2" not in said


@pytest.mark.parametrize(
    "url", ["http://[", "http://me:hunter2@[/api", "http://me:hun/ter2@127.0.0.1:9/api", "nowhere"]
)
def test_invalid_prefect_url_is_reported(assay: Assay, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("PREFECT_API_URL", url)
    outcome = assay("run", "examples/handbook.jsonl", "--limit", "1")
    assert outcome.code == 2
    assert "error: PREFECT_API_URL must be like http://127.0.0.1:4200/api, got '" in outcome.err
    assert "ter2" not in outcome.err


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            ("run", "examples/handbook.jsonl"),
            "interrupted; answers and finished stage tables are stored; the same command continues from there\n",
        ),
        (("metrics",), "interrupted\n"),
    ],
)
def test_interrupted_command_reports_what_it_has_saved(
    assay: Assay, monkeypatch: pytest.MonkeyPatch, call: tuple[str, ...], said: str
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("deployments.cli.run.plan_run", interrupt)
    monkeypatch.setattr("deployments.cli.metrics._table", interrupt)
    outcome = assay(*call)
    assert (outcome.code, " ".join(outcome.err.split())) == (130, said.strip())


def test_store_that_is_away_is_no_mistake_of_the_user() -> None:
    assert next(code for kind, code in EXIT_CODES if issubclass(StorageError, kind)) == 5
