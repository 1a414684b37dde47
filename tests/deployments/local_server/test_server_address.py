"""The address of the Prefect server: settings are read as Prefect reads them."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from prefect._internal.concurrency.services import QueueService
from prefect.events.clients import PrefectEventsClient
from prefect.events.worker import EventsWorker
from prefect.settings import Settings

from deployments.local_server import ServerAddress, find_configured_url, server_address, use_server

URL = "http://127.0.0.1:4321/api"
PROFILES = f'active = "{{}}"\n[profiles.mine]\nPREFECT_API_URL = "{URL}"\n[profiles.bare]\n'


def _environment_variable(_folder: Path) -> dict[str, str]:
    return {"PREFECT_API_URL": URL}


def _active_profile(folder: Path) -> dict[str, str]:
    (folder / "profiles.toml").write_text(PROFILES.format("mine"), encoding="utf-8")
    return {}


def _chosen_profile(folder: Path) -> dict[str, str]:
    (folder / "profiles.toml").write_text(PROFILES.format("bare"), encoding="utf-8")
    return {"PREFECT_PROFILE": "mine"}


def _settings_file(folder: Path) -> dict[str, str]:
    (folder / "prefect.toml").write_text(f'[api]\nurl = "{URL}"\n', encoding="utf-8")
    return {}


def _project_file(folder: Path) -> dict[str, str]:
    (folder / "pyproject.toml").write_text(f'[tool.prefect.api]\nurl = "{URL}"\n', encoding="utf-8")
    return {}


def _dotenv_file(folder: Path) -> dict[str, str]:
    (folder / ".env").write_text(f"PREFECT_API_URL={URL}\n", encoding="utf-8")
    return {}


def _profile_without_server(folder: Path) -> dict[str, str]:
    (folder / "profiles.toml").write_text(PROFILES.format("bare"), encoding="utf-8")
    return {}


def _other_project_file(folder: Path) -> dict[str, str]:
    (folder / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["prefect"]\n', encoding="utf-8")
    return {}


def _nothing(_folder: Path) -> dict[str, str]:
    return {}


def run_python(code: str, folder: Path, environment: dict[str, str]) -> list[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    command = [sys.executable, "-c", code]
    environment = inherited | {"PREFECT_HOME": str(folder), "DO_NOT_TRACK": "1"} | environment
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


ASK_BOTH = """
import sys
from deployments.local_server import find_configured_url
ours, imported = find_configured_url(), "prefect" in sys.modules
from prefect.settings import get_current_settings
print(ours, get_current_settings().api.url, imported)
"""


@pytest.mark.parametrize(
    ("prepare", "expected"),
    [
        (_environment_variable, [URL, URL, "False"]),
        (_active_profile, [URL, URL, "True"]),
        (_other_project_file, ["None", "None", "False"]),
    ],
)
def test_address_agrees_with_prefect_which_is_imported_only_if_needed(
    prepare: Callable[[Path], dict[str, str]], expected: list[str], tmp_path: Path
) -> None:
    assert run_python(ASK_BOTH, tmp_path, prepare(tmp_path)) == expected


@pytest.mark.parametrize(
    ("prepare", "url", "is_asked"),
    [
        (_environment_variable, URL, False),
        (_active_profile, URL, True),
        (_chosen_profile, URL, True),
        (_settings_file, URL, True),
        (_project_file, URL, True),
        (_dotenv_file, URL, True),
        (_profile_without_server, None, True),
        (_other_project_file, None, False),
        (_nothing, None, False),
    ],
)
def test_prefect_is_asked_wherever_it_may_find_an_address(
    prepare: Callable[[Path], dict[str, str]],
    url: str | None,
    is_asked: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name, value in prepare(tmp_path).items():
        monkeypatch.setenv(name, value)
    found = Settings().api.url
    asked = []

    def ask() -> Settings:
        asked.append(found)
        return Settings()

    monkeypatch.setattr("prefect.settings.get_current_settings", ask)
    monkeypatch.setattr(server_address, "_is_imported", lambda: False)
    assert (find_configured_url(), found, bool(asked)) == (url, url, is_asked)


USE = f"""
import os
from deployments.local_server import ServerAddress, use_server
if EARLY: import prefect
with use_server(ServerAddress("{URL}", CREDENTIALS)):
    from prefect.settings import get_current_settings
    settings = get_current_settings()
    print(settings.api.url, settings.flows.heartbeat_frequency, os.environ["PREFECT_API_URL"])
    print(settings.api.auth_string.get_secret_value(), os.environ["PREFECT_API_AUTH_STRING"])
print(get_current_settings().api.url, os.environ.get("PREFECT_API_URL"))
print(get_current_settings().api.auth_string, os.environ.get("PREFECT_API_AUTH_STRING"))
"""


@pytest.mark.parametrize("early", [True, False])
def test_inside_use_server_everything_points_to_it(early: bool, tmp_path: Path) -> None:
    script = USE.replace("EARLY", str(early)).replace("CREDENTIALS", "'assay:secret'")
    printed = run_python(script, tmp_path, {})
    assert printed[:5] == [URL, "None", URL, "assay:secret", "assay:secret"]
    assert (printed[6], printed[8]) == ("None", "None")


def test_a_server_of_the_user_gets_heartbeats_and_the_password_of_the_user(tmp_path: Path) -> None:
    script = USE.replace("EARLY", "False").replace("CREDENTIALS", "None")
    printed = run_python(script, tmp_path, {"PREFECT_API_URL": URL, "PREFECT_API_AUTH_STRING": "me:mine"})
    assert printed == [URL, "180", URL, "me:mine", "me:mine", URL, URL, "**********", "me:mine"]


GONE = f"""
import httpx
from deployments.local_server import ServerAddress, use_server
from metric_core.errors import AssayError
for place in ("{URL}/flow_runs", "http://127.0.0.1:1/v1/models"):
    try:
        with use_server(ServerAddress("{URL}", "assay:secret")):
            raise httpx.ConnectError("refused", request=httpx.Request("GET", place))
    except (AssayError, httpx.ConnectError) as error:
        print(type(error).__name__, "kept" in str(error))
"""


def test_lost_server_is_reported_with_what_is_saved(tmp_path: Path) -> None:
    assert run_python(GONE, tmp_path, {}) == ["AssayError", "True", "ConnectError", "False"]


def test_events_go_to_the_local_server_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def choose_client() -> object:
        return EventsWorker.instance()

    monkeypatch.setattr(QueueService, "instance", classmethod(lambda _, *options: options))
    monkeypatch.setattr(server_address, "end_killed_runs", lambda: None)
    for port in (1, 2):
        url = f"http://127.0.0.1:{port}/api"
        with use_server(ServerAddress(url, "assay:secret")):
            assert choose_client() == (PrefectEventsClient, (("api_url", url),))
    with use_server(ServerAddress("http://127.0.0.1:3/api")):  # one of Prefect's settings, which a process keeps
        assert choose_client() == (PrefectEventsClient, ())
