"""A temporary S3 server for tests: moto in a separate process on the loopback interface."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.tasks.models.judges.openai.fake_server import free_port
from tests.waiting import wait_until

BUCKET = "assay"


@contextmanager
def running_object_store(folder: Path) -> Iterator[dict[str, str]]:
    """Run a server with an empty bucket; skip if it is not installed.

    Args:
        folder: Folder of the log.

    Yields:
        The environment variables that point S3 clients to the server.
    """
    missing = [name for name in ("moto", "s3fs") if find_spec(name) is None]
    if missing:
        pytest.skip(f"no S3 server: {' and '.join(missing)} of the extra `test` cannot be imported")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with (folder / "s3.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log
        )
    try:
        _make_bucket(process, url, folder / "s3.log")
        yield {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_CONFIG_FILE": str(folder / "none"),
            "AWS_EC2_METADATA_DISABLED": "true",
        }
    finally:
        process.kill()
        process.wait()


def _make_bucket(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    def is_made() -> bool:
        assert process.poll() is None, f"the S3 server ended: {log.read_text(encoding='utf-8', errors='replace')}"
        with suppress(OSError):
            urlopen(Request(f"{url}/{BUCKET}", method="PUT"), timeout=10).close()
            return True
        return False

    wait_until(is_made, "the S3 server")
