"""Serve the pages of the history, reports, and comparisons of any two runs, on the loopback interface.

Only names and ids from the history lead to files: no part of an address is a path. Requests with another `Host` than
this machine are refused, so that no web site can read the pages through a name that resolves to it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from flows.execution.gated_comparison import CompareOptions, compare_runs
from metric_core.errors import AssayError, ConfigError, RunFolderError
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import RecordedRun
from tasks.reports.comparison.comparison_page import comparison_page
from tasks.reports.history.history_page import history_page
from tasks.reports.history.history_view import holds_run
from tasks.runs.run_folder import REPORT

HOST = "127.0.0.1"
_NAMES = (HOST, "localhost")
_COMPARE = "/compare/{a}/{b}"


class HistoryServer:
    """The pages of a history by their paths.

    Args:
        catalogue: The history.
        last: Number of the latest runs on a page; None for all.
    """

    def __init__(self, catalogue: Catalogue, last: int | None = None) -> None:
        self._catalogue = catalogue
        self._last = last
        self._compare = lru_cache(maxsize=64)(_compare)

    def page(self, path: str) -> str:
        """Return the page at a path: `/`, `/history/NAME`, `/report/RUN` or `/compare/RUN/RUN`.

        Args:
            path: Path of the address, with percent-encoding.

        Raises:
            LookupError: There is no such page.
            AssayError: The history or a run folder cannot be read.
        """
        match [unquote(part) for part in path.strip("/").split("/")]:
            case [""]:
                names = self._catalogue.names()
                return self._history(names[0]) if len(names) == 1 else _list_names(names)
            case ["history", name]:
                return self._history(name)
            case ["report", run_id]:
                return (self._folder(run_id) / REPORT).read_text(encoding="utf-8")
            case ["compare", a, b]:
                return self._compare(self._folder(a), self._folder(b), (a, b))
        raise LookupError(path)

    def _history(self, name: str) -> str:
        runs = self._catalogue.runs(name, last=self._last)
        if not runs:
            raise LookupError(name)

        def link(run: RecordedRun, page: str) -> str | None:
            has_page = page == REPORT and run.folder and holds_run(Path(run.folder), run.run_id)
            return f"/report/{quote(run.run_id, safe='')}" if has_page else None

        return history_page(name, runs, self._catalogue.incidents(name), link, _COMPARE)

    def _folder(self, run_id: str) -> Path:
        """Return the folder of a run that still holds it."""
        run = self._catalogue.run(run_id)
        if run is None:
            raise LookupError(run_id)
        if not run.folder or not holds_run(Path(run.folder), run_id):
            raise RunFolderError(f"the folder {run.folder or 'of the run'} does not hold the run {run_id} any more")
        return Path(run.folder)


def _compare(a: Path, b: Path, run_ids: tuple[str, str]) -> str:
    del run_ids  # part of the key only: a folder may be written again by another run
    return comparison_page(compare_runs(a, b, CompareOptions()))


def _list_names(names: list[str]) -> str:
    items = "".join(f'<li><a href="/history/{quote(name, safe="")}">{escape(name)}</a></li>' for name in names)
    return _plain("Evaluations", f"<ul>{items}</ul>" if names else "<p>The history has no runs yet.</p>")


def _plain(title: str, body: str) -> str:
    head = '<meta charset="utf-8"><meta name="color-scheme" content="light dark">'
    return (
        f'<!doctype html><html lang="en"><head>{head}<title>{escape(title)}</title></head>'
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )


class _Handler(BaseHTTPRequestHandler):
    """The handler of a request. Only GET is answered, and nothing is written."""

    server_version = "rag-assay"
    sys_version = ""

    def __init__(self, pages: HistoryServer, *arguments: object) -> None:
        self._pages = pages
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Answer a request."""
        if (self.headers.get("Host") or "").partition(":")[0] not in _NAMES:
            self._send(HTTPStatus.MISDIRECTED_REQUEST, _plain("Refused", "<p>Open the page by 127.0.0.1.</p>"))
            return
        try:
            self._send(HTTPStatus.OK, self._pages.page(urlsplit(self.path).path))
        except (LookupError, FileNotFoundError):
            self._send(HTTPStatus.NOT_FOUND, _plain("Not found", '<p>No such page. <a href="/">The history</a></p>'))
        except AssayError as error:
            self._send(HTTPStatus.CONFLICT, _plain("Not possible", f"<p>{escape(str(error))}</p>"))

    def _send(self, status: HTTPStatus, page: str) -> None:
        content = page.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the name of the standard library
        """Log nothing: the server is for one person."""


@contextmanager
def open_server(catalogue: Catalogue, port: int = 0, last: int | None = None) -> Iterator[ThreadingHTTPServer]:
    """Yield a server that listens on the loopback interface; its caller calls `serve_forever`.

    Args:
        catalogue: The history.
        port: Port to listen on; 0 for a free one.
        last: Number of the latest runs on a page; None for all.

    Raises:
        ConfigError: The port cannot be used.
    """
    try:
        server = ThreadingHTTPServer((HOST, port), partial(_Handler, HistoryServer(catalogue, last)))
    except OSError as error:
        raise ConfigError(
            f"the port {port} of {HOST} cannot be used: {error.strerror or error}. Name another one with --port"
        ) from error
    with server:
        yield server
