"""Records on disk, and servers that are not the one that a record names."""

import json
import os
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from deployments.local_server.local_server import LocalServer, ServerRecord, server_status, stop_server
from metric_core.errors import AssayError

UNUSED = "http://127.0.0.1:9/api"


def record_of(api_url: str = UNUSED) -> ServerRecord:
    """A record that names this process, so that a signal sent by mistake would end the tests."""
    return ServerRecord(os.getpid(), platform.node(), "3.0.0", api_url, "token", "assay:secret")


@contextmanager
def answering(body: Any) -> Iterator[str]:
    """Another process that answers every request; its API URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/api"
        server.shutdown()
        thread.join()


@pytest.fixture
def local(tmp_path: Path) -> LocalServer:
    local = LocalServer.from_home(tmp_path)
    local.create()
    return local


def test_a_record_is_read_as_it_was_written(local: LocalServer) -> None:
    local.write(record_of())
    assert local.read() == record_of()


def test_only_its_user_may_read_a_record_and_no_message_repeats_its_password(local: LocalServer) -> None:
    (local.path / ".server.json.tmp").touch(mode=0o644)  # as a killed writer leaves it
    local.write(record_of())
    assert local.record_file.stat().st_mode & 0o777 == 0o600
    assert "secret" in local.record_file.read_text(encoding="utf-8")
    assert "secret" not in f"{record_of()!r} {record_of().address!r}"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_damaged_record_is_no_record(local: LocalServer, text: str) -> None:
    local.record_file.write_text(text, encoding="utf-8")
    assert local.read() is None


def test_a_server_with_the_token_is_ours() -> None:
    with answering({"token": "token", "open_connections": 2}) as url:
        assert record_of(url).query() == {"token": "token", "open_connections": 2}


@pytest.mark.parametrize("body", [{"token": "other"}, {}, [], "token", None])
def test_another_process_on_the_port_is_not_ours(body: Any) -> None:
    with answering(body) as url:
        assert record_of(url).query() is None


def test_closed_port_is_not_our_server() -> None:
    assert record_of().query() is None


def test_the_lock_tells_whether_a_server_lives(local: LocalServer) -> None:
    assert not local.is_locked()
    with FileLock(local.lock):
        assert local.is_locked()
    assert not local.is_locked()


def test_no_signal_is_sent_for_a_server_that_has_ended(tmp_path: Path, local: LocalServer) -> None:
    local.write(record_of())
    assert local.find_usable() is None
    assert stop_server(tmp_path) is False
    assert not server_status(tmp_path).running


def test_without_a_folder_there_is_nothing_to_stop(tmp_path: Path) -> None:
    assert stop_server(tmp_path) is False
    assert str(server_status(tmp_path)).startswith("no local Prefect server is running")
    assert list(tmp_path.iterdir()) == []


def test_a_server_of_another_machine_is_left_alone(tmp_path: Path, local: LocalServer) -> None:
    local.write(replace(record_of(), host="elsewhere"))
    with FileLock(local.lock):
        for attempt in (local.find_usable, lambda: stop_server(tmp_path)):
            with pytest.raises(AssayError, match="runs on another machine, elsewhere"):
                attempt()


def test_a_server_in_use_of_another_version_is_left_alone(local: LocalServer) -> None:
    with answering({"token": "token", "open_connections": 1, "idle_seconds": 0.0}) as url, FileLock(local.lock):
        local.write(record_of(url))
        with pytest.raises(AssayError, match=r"in use and of version 3\.0\.0"):
            local.find_usable()
