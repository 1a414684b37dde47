"""The commands of the compose file do what they are there for, in their order, without a container engine."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from prefect.client.orchestration import get_client

from deployments.local_server import ServerAddress, use_server
from deployments.registry.apply import remove
from tests.deployments.test_container import SERVICES, example_variables
from tests.prefect_servers import clean_environment
from tests.structure.house import ROOT
from tests.tasks.models.judges.openai.fake_server import free_port
from tests.waiting import DEAD_SECONDS, wait_until

pytestmark = [pytest.mark.prefect, pytest.mark.served]

POOL = "composed"


def command_of(service: str, data: Path, *more: str) -> list[str]:
    """Return the command of a service, to be run on this machine in place of its container."""
    values = example_variables() | {"ASSAY_WORK_POOL": POOL}
    words = [re.sub(r"\$\{(\w+)[^}]*\}", lambda match: values[match[1]], word) for word in SERVICES[service]["command"]]
    module = {"assay": "rag_assay", "prefect": "prefect"}[words[0]]
    return [sys.executable, "-m", module, *(re.sub(r"^/data", str(data), word) for word in words[1:]), *more]


def test_the_deployment_is_made_and_the_worker_becomes_healthy(whole_server: str, tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_bytes((ROOT / "examples" / "deployed.toml").read_bytes())
    environment = clean_environment() | {
        **{name: value for name, value in SERVICES["deploy"]["environment"].items() if "$" not in value},
        "PREFECT_API_URL": whole_server,
        "ASSAY_HOME": str(tmp_path / "home"),
        "PREFECT_HOME": str(tmp_path / "prefect"),
    }
    deployed = subprocess.run(
        command_of("deploy", tmp_path, "--name", POOL), env=environment, capture_output=True, text=True, check=False
    )
    assert deployed.returncode == 0, deployed.stderr
    with use_server(ServerAddress(whole_server)), get_client(sync_client=True) as client:
        made = client.read_deployment_by_name(f"evaluate/evaluate-{POOL}")
        client.pause_deployment(made.id)
    assert (made.work_pool_name, (made.job_variables or {})["working_dir"]) == (POOL, str(tmp_path))
    assert made.entrypoint == "rag_assay.prefect_flows.evaluate"
    port = str(free_port())
    variables = SERVICES["worker"]["environment"] | {"PREFECT_WORKER_WEBSERVER_PORT": port}
    kept = {name: value for name, value in variables.items() if name.startswith("PREFECT_WORKER_")}
    worker = subprocess.Popen(
        command_of("worker", tmp_path), env=environment | kept, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        check = [word.replace(":8080/", f":{port}/") for word in SERVICES["worker"]["healthcheck"]["test"][2:]]

        def is_healthy() -> bool:
            assert worker.poll() is None
            return subprocess.run([sys.executable, *check], capture_output=True, check=False).returncode == 0

        wait_until(is_healthy, "the worker")
    finally:
        worker.terminate()
        worker.wait(DEAD_SECONDS)
    with use_server(ServerAddress(whole_server)):
        remove(f"-{POOL}", dry_run=False)  # the other tests of this server look at their own deployments
