"""A temporary S3 server for tests: moto in a separate process on the loopback interface."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from tests.tasks.judges.openai.fake_server import free_port

BUCKET = "assay"
_TIMEOUT_SECONDS = 60.0


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
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            urlopen(Request(f"{url}/{BUCKET}", method="PUT"), timeout=10).close()
        except URLError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"the S3 server did not start: {log.read_text(encoding='utf-8', errors='replace')}")
