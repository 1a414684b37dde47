"""The server of the history: pages, reports, comparisons of any two runs, and refused requests."""

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from deployments.history_server.history_pages import POLICY, REPORT_POLICY, open_history
from metric_core.errors import ConfigError
from tasks.history.catalogue import Catalogue
from tests.deployments.serving import serve_here
from tests.tasks import compared


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
    with open_history(catalogue) as server, serve_here(server) as url, httpx.Client(base_url=url) as connected:
        yield connected


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
    "path",
    [
        "/report/nobody",
        "/compare/run%2Fa",
        "/history/x",
        "/report/..%2F..%2Frun.json",
        "/report/../../etc/passwd",
        "/report/%2Fetc%2Fpasswd",
        "//etc/passwd",
        "/report/C:%5Cboot.ini",
        "/report/CON",
        "/report/%00",
        "/report/%ff",
        "/x",
    ],
)
def test_there_is_nothing_else(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_other_hosts_and_methods_are_refused(client: httpx.Client) -> None:
    own = client.base_url.netloc.decode().replace("127.0.0.1", "localhost")
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 421
    assert client.get("/", headers={"Host": "localhost"}).status_code == 421
    assert client.get("/", headers={"Host": own}).status_code == 200
    assert client.get("/", headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.post("/").status_code == 405
    assert client.post("/", json={}).status_code == 415


@pytest.mark.parametrize(
    ("path", "policy"), [("/", POLICY), ("/report/run%2Fb", REPORT_POLICY), ("/x", POLICY), ("/report/run%2Fc", POLICY)]
)
def test_every_page_has_a_policy(client: httpx.Client, path: str, policy: str) -> None:
    headers = client.get(path).headers
    assert headers["Content-Security-Policy"] == policy
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"


def replace_by_link(path: Path) -> None:
    """Move a file or folder away, and put a link to it in its place."""
    elsewhere = path.rename(path.with_name("elsewhere") if path.name != "a" else path.parent / "elsewhere")
    path.symlink_to(elsewhere)


def replace_by_passwd(path: Path) -> None:
    """Put a link to a file of the system in the place of a report."""
    path.unlink()
    path.symlink_to("/etc/passwd")


def replace_by_pipe(path: Path) -> None:
    """Put a pipe in the place of a file."""
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("report.html", replace_by_passwd),
        ("report.html", replace_by_link),
        ("report.html", replace_by_pipe),
        ("run.json", replace_by_link),
        ("run.json", replace_by_pipe),
        ("stages", replace_by_link),
        ("stages/samples.parquet", replace_by_link),
        ("stages/samples.parquet", replace_by_pipe),
        (".", replace_by_link),
    ],
)
def test_only_files_are_shown(tmp_path: Path, name: str, change: Callable[[Path], None]) -> None:
    catalogue = Catalogue(str(tmp_path / "history.db"))
    for run in ("a", "b"):
        folder = compared.write_run(tmp_path / run, 0.5, name="nightly", run_id=run)
        (folder / "report.html").write_text("<title>Report</title>", encoding="utf-8")
        catalogue.record(folder)
    change(tmp_path / "a" / name)
    with open_history(catalogue) as server, serve_here(server) as url:
        assert httpx.get(url).status_code == 200
        for path in ("/report/a", "/compare/a/b"):
            page = httpx.get(f"{url}{path}")
            assert page.status_code == 409
            assert "only files are shown" in page.text or "does not hold the run a any more" in page.text
            assert "root:" not in page.text
        assert httpx.get(f"{url}/report/b").status_code == 200


def test_a_report_that_was_replaced_after_the_check_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = Catalogue(str(tmp_path / "history.db"))
    folder = compared.write_run(tmp_path / "a", 0.5, name="nightly", run_id="a")
    catalogue.record(folder)
    (folder / "report.html").symlink_to("/etc/passwd")
    monkeypatch.setattr("deployments.history_server.history_pages._check_files", lambda _folder: None)
    with open_history(catalogue) as server, serve_here(server) as url:
        page = httpx.get(f"{url}/report/a")
    assert page.status_code == 409
    assert "root:" not in page.text


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(ConfigError, match=rf"the port {port} of 127\.0\.0\.1 cannot be used: .*--port"),
            open_history(Catalogue(str(tmp_path / "history.db")), port),
        ):
            pass
