"""Secrets are neither written nor printed, wherever a user may configure them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prefect.blocks.system import Secret

from deployments.local_server import ServerAddress, use_server
from deployments.local_server.local_server import LocalServer
from deployments.web.http_guard import basic_authorization
from flows.config.loading import load_config
from metric_core.errors import ConfigError
from tasks.runs.run_folder import REPORT
from tests.tasks.models.judges.openai.fake_server import FakeServer, Fault
from tests.tasks.processes import fake_vllm
from tests.tasks.reports.parsed_page import read_rows

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "handbook.jsonl"
KEY, BLOCK_KEY, LAUNCH_KEY = "planted-judge-key-5e1f", "planted-block-key-77aa", "planted-launch-key-90cd"
IN_ENVIRONMENT = {
    "JUDGE_KEY": KEY,
    "PGPASSWORD": "planted-postgres-password-31bb",
    "AWS_ACCESS_KEY_ID": "PLANTEDACCESSKEY",
    "AWS_SECRET_ACCESS_KEY": "planted-s3-secret-02f9",
    "AWS_SESSION_TOKEN": "planted-s3-session-8c31",
    "HF_TOKEN": "hf_planted_token_44d0",
}
IN_PGPASS = "planted-pgpass-password-b7e2"
PLANTED = [*IN_ENVIRONMENT.values(), BLOCK_KEY, LAUNCH_KEY, IN_PGPASS]
COMMANDS = """
import json, sys
from deployments.cli.main import main
for arguments in json.load(sys.stdin):
    sys.argv, code = ["assay", *arguments], 0
    try:
        main()
    except SystemExit as end:
        code = end.code
    print("exit code", code, file=sys.stderr, flush=True)
"""


@dataclass(frozen=True)
class Ended:
    """A command that has ended.

    Args:
        code: Exit code.
        out: Text on the standard output of its process.
        err: Text on the error output.
    """

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Place:
    """A machine with secrets: a folder of all written files, and an environment.

    Args:
        folder: Folder of everything that a run writes.
        prefect: Home of the Prefect server.
        environment: Environment of commands.
    """

    folder: Path
    prefect: Path
    environment: dict[str, str]

    def run(self, *arguments: str, **config: Any) -> Ended:
        """Run `assay run` with every message logged, as a user who looks into a problem does."""
        (done,) = self.run_each([config], *arguments)
        return done

    def run_each(self, configs: Sequence[Mapping[str, Any]], *arguments: str) -> list[Ended]:
        """Run `assay run` with one configuration after the other in one process, whose start takes most of a run."""
        commands = []
        for number, config in enumerate(configs):
            values = {"source": str(EXAMPLE), "limit": 3, "metrics": ["faithfulness", "answer_similarity"], **config}
            file = self.folder.with_name(f"assay-{number}.yaml")  # the user's, and not searched: may hold a secret
            file.write_text(json.dumps(values), encoding="utf-8")
            commands.append(["run", str(file), "--verbose", *arguments])
        done = subprocess.run(
            [sys.executable, "-c", COMMANDS],
            input=json.dumps(commands),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        self.find_secrets(done.stdout + done.stderr)
        *told, _ = re.split(r"(?m)^exit code (\d+)\n", done.stderr)
        return [Ended(int(code), done.stdout, said) for said, code in zip(told[::2], told[1::2], strict=True)]

    def find_secrets(self, shown: str) -> None:
        """Fail if a secret was printed, or is in any file that was written."""
        password = self.environment["PREFECT_API_AUTH_STRING"]
        sent = basic_authorization(password).removeprefix("Basic ")
        secrets = [*PLANTED, password.partition(":")[2], sent]
        record = LocalServer.from_home(self.prefect).record_file  # only its user may read it
        found = [f"printed: {secret}" for secret in secrets if secret in shown]
        for root in (self.folder, self.prefect, (self.prefect / "prefect").resolve()):
            for path in root.rglob("*"):
                content = b"" if path.resolve() == record.resolve() else read_written(path)
                found += [f"{path}: {secret}" for secret in secrets if secret.encode() in content]
        assert found == []


def read_written(path: Path) -> bytes:
    """Return what is in a file, with the evidence of a report; the server of all tests may just have removed it."""
    with suppress(FileNotFoundError):
        content = path.read_bytes() if path.is_file() else b""
        return content + read_rows(content.decode()).encode() if path.name == REPORT else content
    return b""


@pytest.fixture
def place(server_home: Path, prefect_server: str, tmp_path: Path) -> Place:
    pgpass = tmp_path / "pgpass"
    pgpass.write_text(f"*:*:*:*:{IN_PGPASS}\n", encoding="utf-8")
    pgpass.chmod(0o600)
    folder = tmp_path / "written"
    folder.mkdir()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "ASSAY_"))}
    settings = {
        "ASSAY_HOME": str(folder / "home"),
        "PREFECT_API_URL": prefect_server,
        "PREFECT_API_AUTH_STRING": os.environ["PREFECT_API_AUTH_STRING"],
        "PREFECT_LOGGING_LEVEL": "DEBUG",
        "PYTHONPATH": str(ROOT),
        "PGPASSFILE": str(pgpass),
    }
    return Place(folder, server_home, inherited | IN_ENVIRONMENT | settings)


@pytest.fixture
def serve() -> Iterator[Callable[..., FakeServer]]:
    servers: list[FakeServer] = []

    def start(**options: Any) -> FakeServer:
        servers.append(FakeServer(**options))
        return servers[-1].__enter__()

    yield start
    for server in servers:
        server.__exit__(None, None, None)


@pytest.fixture
def bucket_url() -> Iterator[str]:
    """Yield the URL of an S3 server with the bucket `planted`."""
    moto_server = pytest.importorskip("moto.server")
    boto = pytest.importorskip("botocore.session")
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    boto.get_session().create_client("s3", endpoint_url=url, **keys).create_bucket(Bucket="planted")
    yield url
    server.stop()


def judge(url: str, **options: Any) -> dict[str, Any]:
    return {"backend": "server", "server": {"urls": [url], "unavailable_timeout": 0, "max_retries": 0, **options}}


@pytest.mark.served
@pytest.mark.prefect
@pytest.mark.models
def test_run_writes_none_of_its_secrets(
    place: Place, serve: Callable[..., FakeServer], postgres_url: str, prefect_server: str, bucket_url: str
) -> None:
    def say(body: dict[str, Any]) -> Fault | None:
        """Return an error that repeats the key for one claim, as careless proxies do."""
        text = str(body["messages"][-1]["content"])
        return Fault(400, {"error": {"message": f"bad request with Bearer {KEY}"}}) if "parental" in text else None

    server = serve(key=KEY, say=say)
    place.environment["AWS_ENDPOINT_URL"] = bucket_url
    stores = {"cache": postgres_url, "tables": "s3://planted/tables"}
    done = place.run("--explain", "all", judge=judge(server.url, api_key="env:JUDGE_KEY"), **stores)
    assert done.code == 8, done.err  # the failed question leaves no row of the metric with a score
    assert server.authorizations == {f"Bearer {KEY}"}
    with use_server(ServerAddress(prefect_server)):
        Secret(value=BLOCK_KEY).save("planted", overwrite=True)  # type: ignore[arg-type]
    other = serve(key=BLOCK_KEY)
    done = place.run(judge=judge(other.url, api_key="block:planted"))
    assert done.code == 0, done.err
    assert other.authorizations == {f"Bearer {BLOCK_KEY}"}


@pytest.mark.served
@pytest.mark.prefect
@pytest.mark.models
def test_failing_run_prints_no_secret(place: Place, serve: Callable[..., FakeServer]) -> None:
    refusing = serve(key="another key")
    runs = [
        ("refuses the key", 4, judge(refusing.url, api_key_env="JUDGE_KEY")),
        ("cannot be reached", 4, judge("http://127.0.0.1:9/v1", api_key="env:JUDGE_KEY")),
        ("no Secret block 'nowhere'", 2, judge(refusing.url, api_key="block:nowhere")),
        (
            "before it was ready",
            4,
            {
                "launch": {
                    "python": sys.executable,
                    "model": "tiny",
                    "entry": fake_vllm.__name__,
                    "environment": {
                        "PYTHONPATH": str(ROOT),
                        "FAKE_VLLM": "exit",
                        "VLLM_API_KEY": LAUNCH_KEY,
                        "HF_TOKEN": "",
                    },
                }
            },
        ),
    ]
    ended = place.run_each([{"judge": settings, "out": "runs/failing"} for *_, settings in runs])
    for (words, code, _), done in zip(runs, ended, strict=True):
        assert (done.code, words in done.err) == (code, True), done.err


def read_texts(path: Path) -> str:
    """Return what is in a file, also where a table compresses its texts."""
    if path.suffix == ".parquet":
        return str(pq.read_table(path).to_pylist())
    if path.suffix == ".arrow":
        return str(pa.ipc.open_file(path).read_all().to_pylist())
    return read_written(path).decode(errors="replace")


@pytest.mark.served
@pytest.mark.prefect
@pytest.mark.models
def test_a_redacted_text_is_in_no_table_cache_log_request_or_report(
    place: Place, serve: Callable[..., FakeServer]
) -> None:
    number = "CARD-49291170"
    rows = [
        {"id": f"of {number}", "user_input": f"Is {number} mine?", "response": f"{number} is. The owner is Ada.",
         "retrieved_contexts": [f"{number}: Ada."], "reference": number, "notes": [{"of": {number: number}}]},
        {"id": "b", "user_input": f"And {number}?", "response": {"given": number}},
    ]  # fmt: skip
    data = place.folder.with_name("rows.jsonl")  # the user's own file is not searched
    data.write_text("".join(json.dumps(row) + "\n" for row in rows) + f'{{"{number}": 1, "{number}": 2}}\n')
    redactor = "import re\ndef redact(text): return re.sub(r'CARD-\\d+', '[card]', text)\n"
    (place.folder / "privacy.py").write_text(redactor, encoding="utf-8")
    server = serve()
    done = place.run("--explain", "all", source=str(data), judge=judge(server.url), redact="privacy:redact",
                     on_bad_row="skip", out=str(place.folder / "run"))  # fmt: skip
    assert done.code == 0, done.err
    assert "of [card]" in str(pq.read_table(place.folder / "run" / "stages" / "samples.parquet").to_pylist())
    assert "[card]" in (place.folder / "run" / "report.html").read_text(encoding="utf-8")
    assert any("[card]" in json.dumps(body) for body in server.bodies)
    found = [str(path) for path in place.folder.rglob("*") if path.is_file() and number in read_texts(path)]
    found += [str(path) for path in place.prefect.rglob("*") if number.encode() in read_written(path)]
    found += ["printed"] * (number in done.out + done.err)
    found += ["sent"] * (number in json.dumps(server.bodies))
    assert found == []


def test_configuration_with_a_secret_is_refused_without_repeating_it() -> None:
    cases: list[dict[str, Any]] = [
        {"judge": "http://me:hunter2@host/v1"},
        {"judge": "http://host/v1?api_key=hunter2"},
        {"judge": "me:hunter2@host"},
        {"judge": "//me:hunter2@host"},
        {"judge": {"backend": "server", "server": {"urls": ["http:/me:hunter2@host"]}}},
        {"judge": {"backend": "server", "server": {"urls": ["http://h"], "api_key": "hunter2"}}},
        {"judge": {"backend": "server", "server": {"urls": ["http://h"], "headers": {"Authorization": "hunter2"}}}},
        {"judge": {"backend": "server", "server": {"urls": ["http://h"], "timeout": "hunter2"}}},
        {"judge": {"backend": "own:Judge", "options": {"api_key": "hunter2"}}},
        {"judge": {"launch": {"python": "p", "model": "m", "environment": {"A B": "hunter2"}}}},
        {"judge": {"launch": {"python": "p", "model": "m", "extra_args": ["--api-key", "hunter2"]}}},
        {"panel": ["http://me:hunter2@host/v1"]},
        {"embedder": "http://me:hunter2@host/v1"},
        {"embedder": "http://host/v1?key=hunter2"},
        {"embedder": {"backend": "own:Embedder", "options": {"token": "hunter2"}}},
        {"language": {"recognizer": "own:Names", "options": {"password": "hunter2"}}},
        {"cache": "postgresql://me:hunter2@host/db"},
        {"source": "https://me:hunter2@host/answers.jsonl"},
        {"source": "https://hunter2@host/answers.jsonl"},
        {"source": "simplecache::sftp://me:hunter2@host/answers.jsonl"},
        {"source": "https://host/answers.jsonl?X-Amz-Signature=hunter2"},
        {"tables": "s3://key:hunter2@bucket/tables"},
    ]
    for config in cases:
        with pytest.raises(ConfigError) as caught:
            load_config(None, config)
        assert "hunter2" not in str(caught.value), config


@pytest.mark.parametrize(
    "address",
    ["s3://bucket/a@b:c.jsonl", "https://host:8443/me@home/a.jsonl", "sftp://me@host/a.jsonl", "hub:owner/name#test"],
)
def test_addresses_without_secrets_are_accepted(address: str) -> None:
    assert load_config(None, {"source": address}).source == address
