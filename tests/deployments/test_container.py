"""The container files fit together and fit the project; no container engine is needed to see that."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import prefect.settings
import pytest
import yaml

from tasks.runtime.log_format import HANDLERS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deployments" / "container"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
CONTAINERFILE = (FOLDER / "Containerfile").read_text(encoding="utf-8")
JUDGE_FILE = (FOLDER / "vllm.Containerfile").read_text(encoding="utf-8")
STAYING = [name for name, service in SERVICES.items() if service.get("restart") != "no"]
"""The services that do not end."""

VLLM_OPTIONS = {
    "--dtype",
    "--enable-prompt-tokens-details",
    "--gpu-memory-utilization",
    "--host",
    "--max-model-len",
    "--port",
    "--tensor-parallel-size",
}
VARIABLE = re.compile(r"\$\{([A-Z_]+)(?::?([-?])([^}]*))?\}")


def services(*, with_key: str) -> list[str]:
    return [name for name, service in SERVICES.items() if with_key in service]


def strings(content: Any) -> Iterator[str]:
    if isinstance(content, dict):
        for value in content.values():
            yield from strings(value)
    elif isinstance(content, list):
        for value in content:
            yield from strings(value)
    elif isinstance(content, str):
        yield content


def instructions(name: str, content: str = CONTAINERFILE) -> list[list[str]]:
    joined = content.replace("\\\n", " ")
    return [shlex.split(line)[1:] for line in joined.splitlines() if line.startswith(f"{name} ")]


def example_variables() -> dict[str, str]:
    lines = (FOLDER / "env.example").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_the_compose_file_fits_the_schema_of_the_specification() -> None:
    arguments = ["--builtin-schema", "vendor.compose-spec", str(FOLDER / "compose.yaml")]
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_server_database_deployment_worker_and_judge_are_there() -> None:
    assert SERVICES.keys() == {"postgres", "prefect-server", "deploy", "worker", "vllm"}
    assert services(with_key="profiles") == ["vllm"]


@pytest.mark.parametrize("name", SERVICES)
def test_references_of_a_service_exist(name: str) -> None:
    service = SERVICES[name]
    assert set(service["networks"]) <= COMPOSE["networks"].keys()
    for other, how in service.get("depends_on", {}).items():
        assert how["condition"] == ("service_healthy" if other in STAYING else "service_completed_successfully")
        assert "healthcheck" in SERVICES[other] or other not in STAYING
        assert how.get("required", True) is ("profiles" not in SERVICES[other])
    for volume in service.get("volumes", []):
        source, target = volume.rsplit(":", 2)[:2] if volume.endswith(":ro") else volume.rsplit(":", 1)
        assert target.startswith("/")
        assert source.startswith("${") or source in COMPOSE["volumes"]


def test_every_volume_and_network_is_used() -> None:
    used = " ".join(strings({name: service.get("volumes") for name, service in SERVICES.items()}))
    assert all(f"{volume}:" in used for volume in COMPOSE["volumes"])
    assert {network for service in SERVICES.values() for network in service["networks"]} == COMPOSE["networks"].keys()


@pytest.mark.parametrize("name", STAYING)
def test_every_staying_service_has_a_health_check(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_has_a_pinned_image_and_a_limit_of_memory(name: str) -> None:
    service = SERVICES[name]
    assert service["deploy"]["resources"]["limits"]["memory"].startswith("${")
    assert re.fullmatch(r"[\w./-]+:(local|v?\d+\.\d+[\w.-]*)", service["image"])
    assert ("build" in service) is service["image"].endswith(":local")


@pytest.mark.parametrize("name", services(with_key="ports"))
def test_ports_are_open_to_this_machine_only(name: str) -> None:
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in SERVICES[name]["ports"])


def test_the_database_is_reachable_by_the_server_only() -> None:
    assert COMPOSE["networks"]["database"] == {"internal": True}
    assert {name for name, service in SERVICES.items() if "database" in service["networks"]} == {
        "postgres",
        "prefect-server",
    }


def test_the_prefect_server_asks_all_for_its_password() -> None:
    password = SERVICES["prefect-server"]["environment"]["PREFECT_SERVER_API_AUTH_STRING"]
    clients = {name for name, service in SERVICES.items() if "PREFECT_API_URL" in service.get("environment", {})}
    assert clients == {"deploy", "worker"}
    assert {SERVICES[name]["environment"]["PREFECT_API_AUTH_STRING"] for name in clients} == {password}


@pytest.mark.parametrize("name", services(with_key="build"))
def test_images_are_built_from_this_repository(name: str) -> None:
    build = SERVICES[name]["build"]
    context = (FOLDER / build["context"]).resolve()
    file = "vllm.Containerfile" if name == "vllm" else "Containerfile"
    assert context == (FOLDER if name == "vllm" else ROOT)
    assert (context / build["dockerfile"]).samefile(FOLDER / file)


def test_no_service_of_ours_runs_as_root_or_gains_privileges() -> None:
    for name in services(with_key="build"):
        assert (SERVICES[name]["cap_drop"], SERVICES[name]["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert instructions("USER", JUDGE_FILE) == [["judge"]]
    assert instructions("USER") == [["assay"]]


def test_the_judge_gets_the_gpus_that_it_uses_and_a_folder_that_its_user_may_write() -> None:
    service = SERVICES["vllm"]
    (devices,) = service["deploy"]["resources"]["reservations"]["devices"]
    words = service["command"].split()
    parallel = words[words.index("--tensor-parallel-size") + 1]
    assert devices["count"] == parallel == "${JUDGE_GPUS:-1}"
    assert service["volumes"] == ["judge:/cache"]
    assert "/cache" in instructions("RUN", JUDGE_FILE)[0]
    assert all("/root" not in text for text in strings(service))
    caches = dict(word.split("=") for word in instructions("ENV", JUDGE_FILE)[0])
    assert all(path.startswith("/cache") for path in caches.values())
    assert re.fullmatch(r"vllm/vllm-openai:v\d+\.\d+\.\d+", instructions("FROM", JUDGE_FILE)[0][0])


def test_folders_of_volumes_belong_to_the_user_of_the_image() -> None:
    made = instructions("RUN")[-1]
    mounted = [
        volume.split(":")[1]
        for name in ("prefect-server", "deploy", "worker")
        for volume in SERVICES[name]["volumes"]
        if volume.split(":")[0] in COMPOSE["volumes"]
    ]
    assert mounted
    assert set(mounted) <= set(made)


def test_leases_of_slots_outlive_the_server(tmp_path: Path) -> None:
    from prefect.server.concurrency.lease_storage.filesystem import ConcurrencyLeaseStorage
    from prefect.settings import PREFECT_HOME, temporary_settings

    variables = SERVICES["prefect-server"]["environment"]
    assert variables["PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE"] == ConcurrencyLeaseStorage.__module__
    assert f"prefect:{variables['PREFECT_HOME']}" in SERVICES["prefect-server"]["volumes"]
    with temporary_settings({PREFECT_HOME: tmp_path}):
        assert tmp_path in ConcurrencyLeaseStorage().storage_path.parents


def test_the_image_has_what_docker_and_kubernetes_workers_and_other_stores_need() -> None:
    pins = (ROOT / "constraints" / "container.txt").read_text(encoding="utf-8")
    for package in ("prefect-docker", "prefect-kubernetes", "psycopg", "s3fs"):
        assert re.search(rf"^{package}(\[\w+\])?==", pins, re.MULTILINE), package


def test_the_services_start_in_an_order_that_can_work() -> None:
    """Deployments exist before the worker asks for runs, and the server answers before anything is deployed."""
    needed = {name: set(service.get("depends_on", {})) for name, service in SERVICES.items()}
    assert needed["worker"] >= {"deploy", "prefect-server"}
    assert needed["deploy"] == {"prefect-server"}
    assert needed["prefect-server"] == {"postgres"}
    TopologicalSorter(needed).prepare()


@pytest.mark.parametrize("name", SERVICES)
def test_prefects_variables_are_known_to_prefect(name: str) -> None:
    for variable in SERVICES[name]["environment"]:
        is_known = hasattr(prefect.settings, variable) or variable in HANDLERS
        assert not variable.startswith("PREFECT_") or is_known


@pytest.mark.parametrize("name", ["prefect-server", "deploy", "worker", "vllm"])
def test_nothing_reports_home(name: str) -> None:
    variables = SERVICES[name]["environment"]
    assert variables["DO_NOT_TRACK"] == "1"
    if name == "vllm":
        assert variables["VLLM_NO_USAGE_STATS"] == "1"
    else:
        assert variables["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"


@pytest.mark.parametrize("name", ["prefect-server", "worker"])
def test_commands_are_commands_of_prefect(name: str) -> None:
    program, group, verb, *options = SERVICES[name]["command"]
    assert program == "prefect"
    shown = subprocess.run(
        [sys.executable, "-m", "prefect", group, verb, "--help"],
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert all(option in shown for option in options if option.startswith("--"))


def test_the_judges_options_are_options_of_vllm() -> None:
    assert {word for word in SERVICES["vllm"]["command"].split() if word.startswith("--")} == VLLM_OPTIONS


def test_every_variable_has_an_example_and_no_secret_has_a_default() -> None:
    found = [match.groups() for text in strings(SERVICES) for match in VARIABLE.finditer(text)]
    examples = example_variables()
    assert {name for name, _, _ in found} == examples.keys()
    for name, operator, default in found:
        if operator == "-":
            assert default == examples[name]
    assert {operator for name, operator, _ in found if name.endswith("_PASSWORD")} == {"?"}
    assert examples["POSTGRES_PASSWORD"] == examples["PREFECT_PASSWORD"] == examples["HF_TOKEN"] == ""


def test_secrets_stay_out_of_the_repository_and_of_images() -> None:
    assert ".env" in (FOLDER / ".gitignore").read_text(encoding="utf-8").split()
    assert "deployments/container/.env" in (FOLDER / "Containerfile.dockerignore").read_text(encoding="utf-8").split()


def test_files_copied_into_the_image_exist_and_are_not_ignored() -> None:
    allowed = (FOLDER / "Containerfile.dockerignore").read_text(encoding="utf-8").split()
    sources = [word for words in instructions("COPY") if not words[0].startswith("--") for word in words[:-1]]
    assert {"deployments", "flows", "metric_core", "tasks"} <= set(sources)
    for source in sources:
        assert (ROOT / source).exists()
        assert f"!{source.split('/')[0]}" in allowed


def test_the_image_holds_to_the_pinned_dependencies_and_runs_without_root() -> None:
    installs = [words for words in instructions("RUN") if "install" in words and "pip" in words]
    assert installs[0][-2:] == ["-r", "/src/constraints/container.txt"]
    assert "--require-hashes" in installs[0]
    assert all("--no-deps" in words for words in installs[1:])
    assert all(re.match(r"python:3\.11\.\d+-slim", words[0]) for words in instructions("FROM"))


def test_the_worker_has_every_variable_that_the_example_names() -> None:
    named = set(re.findall(r"env:(\w+)", (ROOT / "examples" / "deployed.toml").read_text(encoding="utf-8")))
    assert named
    assert named <= SERVICES["worker"]["environment"].keys() & SERVICES["deploy"]["environment"].keys()
