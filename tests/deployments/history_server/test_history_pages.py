"""The server of the history: pages, reports, comparisons of any two runs, and refused requests."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from deployments.history_server.history_pages import open_server
from metric_core.errors import ConfigError
from tasks.history.catalogue import Catalogue
from tests.tasks import compared
from tests.waiting import DEAD_SECONDS


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Yield a client of a server with two runs of one evaluation, and a third whose folder is gone."""
    root = tmp_path_factory.mktemp("served")
    catalogue = Catalogue(str(root / "history.db"))
    for name in ("a", "b", "c"):
        folder = compared.write_run(root / name, 0.5 if name == "a" else 0.8, name="nightly", run_id=f"run/{name}")
        (folder / "report.html").write_text(f"<title>Report {name}</title>", encoding="utf-8")
        catalogue.record(folder)
    (root / "c" / "run.json").unlink()
    with open_server(catalogue) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with httpx.Client(base_url=f"http://127.0.0.1:{server.server_port}") as connected:
            yield connected
        server.shutdown()
        thread.join(DEAD_SECONDS)


def test_the_page_links_to_reports_and_comparisons(client: httpx.Client) -> None:
    for path in ("/", "/history/nightly"):
        page = client.get(path)
        assert page.status_code == 200
        assert '"report":["/report/run%2Fa","/report/run%2Fb",null]' in page.text
        assert '"compare":"/compare/{a}/{b}"' in page.text
    assert client.get("/report/run%2Fb").text == "<title>Report b</title>"


def test_any_two_runs_are_compared(client: httpx.Client) -> None:
    page = client.get("/compare/run%2Fa/run%2Fb")
    assert page.status_code == 200
    assert "Comparison of two runs" in page.text
    assert "faithfulness" in page.text
    gone = client.get("/compare/run%2Fa/run%2Fc")
    assert gone.status_code == 409
    assert "does not hold the run run/c any more" in gone.text


@pytest.mark.parametrize(
    "path", ["/report/nobody", "/compare/run%2Fa", "/history/x", "/report/..%2F..%2Frun.json", "/x"]
)
def test_there_is_nothing_else(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_other_hosts_and_methods_are_refused(client: httpx.Client) -> None:
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 421
    assert client.get("/", headers={"Host": "localhost"}).status_code == 200
    assert client.post("/").status_code == 501


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(ConfigError, match=rf"the port {port} of 127\.0\.0\.1 cannot be used: .*--port"),
            open_server(Catalogue(str(tmp_path / "history.db")), port),
        ):
            pass
