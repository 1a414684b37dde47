"""Records on disk, and servers that are not the one that a record names."""

import json
import os
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from deployments.local_server.find_server import find_server, server_status, stop_server
from deployments.local_server.server_record import ServerFolder, ServerRecord, query_server
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
def folder(tmp_path: Path) -> ServerFolder:
    path = tmp_path / "prefect"
    path.mkdir()
    return ServerFolder(path)


def test_a_record_is_read_as_it_was_written(folder: ServerFolder) -> None:
    record_of().write(folder)
    assert ServerRecord.read(folder) == record_of()


def test_only_its_user_may_read_a_record_and_no_message_repeats_its_password(folder: ServerFolder) -> None:
    (folder.path / ".server.json.tmp").touch(mode=0o644)  # as a killed writer leaves it
    record_of().write(folder)
    assert folder.record.stat().st_mode & 0o777 == 0o600
    assert "secret" in folder.record.read_text(encoding="utf-8")
    assert "secret" not in f"{record_of()!r} {record_of().address!r}"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_damaged_record_is_no_record(folder: ServerFolder, text: str) -> None:
    folder.record.write_text(text, encoding="utf-8")
    assert ServerRecord.read(folder) is None


def test_a_server_with_the_token_is_ours() -> None:
    with answering({"token": "token", "open_connections": 2}) as url:
        assert query_server(record_of(url)) == {"token": "token", "open_connections": 2}


@pytest.mark.parametrize("body", [{"token": "other"}, {}, [], "token", None])
def test_another_process_on_the_port_is_not_ours(body: Any) -> None:
    with answering(body) as url:
        assert query_server(record_of(url)) is None


def test_closed_port_is_not_our_server() -> None:
    assert query_server(record_of()) is None


def test_the_lock_tells_whether_a_server_lives(folder: ServerFolder) -> None:
    assert not folder.is_locked()
    with FileLock(folder.lock):
        assert folder.is_locked()
    assert not folder.is_locked()


def test_no_signal_is_sent_for_a_server_that_has_ended(tmp_path: Path, folder: ServerFolder) -> None:
    record_of().write(folder)
    assert find_server(folder) is None
    assert stop_server(tmp_path) is False
    assert not server_status(tmp_path).running


def test_without_a_folder_there_is_nothing_to_stop(tmp_path: Path) -> None:
    assert stop_server(tmp_path) is False
    assert str(server_status(tmp_path)).startswith("no local Prefect server is running")
    assert list(tmp_path.iterdir()) == []


def test_a_server_of_another_machine_is_left_alone(tmp_path: Path, folder: ServerFolder) -> None:
    replace(record_of(), host="elsewhere").write(folder)
    with FileLock(folder.lock):
        for attempt in (lambda: find_server(folder), lambda: stop_server(tmp_path)):
            with pytest.raises(AssayError, match="runs on another machine, elsewhere"):
                attempt()


def test_a_server_in_use_of_another_version_is_left_alone(folder: ServerFolder) -> None:
    with answering({"token": "token", "open_connections": 1, "idle_seconds": 0.0}) as url, FileLock(folder.lock):
        record_of(url).write(folder)
        with pytest.raises(AssayError, match=r"in use and of version 3\.0\.0"):
            find_server(folder)


def test_a_server_in_use_that_asks_for_no_password_is_left_alone(folder: ServerFolder) -> None:
    with answering({"token": "token", "open_connections": 1, "idle_seconds": 0.0}) as url, FileLock(folder.lock):
        earlier = asdict(replace(record_of(url), version=version("prefect")))
        del earlier["credentials"]  # as earlier releases wrote it
        folder.record.write_text(json.dumps(earlier), encoding="utf-8")
        with pytest.raises(AssayError, match="in use and of an earlier release of rag-assay"):
            find_server(folder)
