"""Serve the pages of the history, reports, and comparisons of any two runs, on the loopback interface.

Only names and ids from the history lead to files: no part of an address is a path, and no link is followed.
"""

import asyncio
import os
import stat
from contextlib import AbstractContextManager
from functools import lru_cache
from html import escape
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote, unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from deployments.web.http_guard import Guard
from deployments.web.http_server import HttpServer, open_server
from flows.results.gated_comparison import CompareOptions, compare_runs
from metric_core.errors import AssayError, RunFolderError
from tasks.comparison.row_matching import match_by_questions
from tasks.comparison.run_pair import Matching
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import RecordedRun
from tasks.history.standings import read_standings
from tasks.reports.comparison.comparison_page import comparison_page
from tasks.reports.history.history_page import history_page
from tasks.reports.history.history_view import holds_run
from tasks.runs.run_folder import MANIFEST, REPORT

HOST = "127.0.0.1"
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""Content security policy: inline scripts, which the pages of rag-assay restrict to their own, and no requests."""

REPORT_POLICY = f"{POLICY}; sandbox allow-scripts"
"""That of a report: a file, which anybody may have written, cannot read other pages of the server."""

_AT_ONCE = 4
"""Number of pages that are computed at the same time."""

_COMPARE = "/compare/{a}/{b}"

_MAX_PAGE = 512 * 1024**2
"""Maximum size of a page in bytes."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe would wait for its writer


class HistoryPages:
    """The pages of a history by their paths.

    Args:
        last: Number of the latest runs on a page; None for all.
    """

    def __init__(self, catalogue: Catalogue, last: int | None = None) -> None:
        self._catalogue = catalogue
        self._last = last
        self._compare = lru_cache(maxsize=64)(_compare)

    def page(self, path: str) -> tuple[str, str]:
        """Return the page at a path and its policy: `/`, `/history/NAME`, `/report/RUN` or `/compare/RUN/RUN`.

        Args:
            path: Path of the address, with percent-encoding.

        Raises:
            LookupError: The page does not exist.
            AssayError: The history or a run folder cannot be read.
        """
        match [unquote(part) for part in path.strip("/").split("/")]:
            case [""]:
                names = self._catalogue.names()
                return self._history(names[0]) if len(names) == 1 else _list_names(names), POLICY
            case ["history", name]:
                return self._history(name), POLICY
            case ["report", run_id]:
                return _read_page(self._folder(run_id) / REPORT), REPORT_POLICY
            case ["compare", a, b]:
                return self._compare(self._folder(a), self._folder(b), (a, b)), POLICY
        raise LookupError(path)

    def _history(self, name: str) -> str:
        runs = self._catalogue.runs(name, last=self._last)
        if not runs:
            raise LookupError(name)

        def link(run: RecordedRun, page: str) -> str | None:
            has_page = page == REPORT and run.folder and _holds(Path(run.folder), run.run_id)
            return f"/report/{quote(run.run_id, safe='')}" if has_page else None

        catalogue = self._catalogue
        availability, standings = catalogue.availability(name), read_standings(catalogue, name)
        return history_page(name, runs, catalogue.incidents(name), link, _COMPARE, availability, standings)

    def _folder(self, run_id: str) -> Path:
        """Return the folder of a run that still holds it."""
        run = self._catalogue.run(run_id)
        if run is None:
            raise LookupError(run_id)
        folder = Path(run.folder)
        if not run.folder:
            raise RunFolderError(f"the run {run_id} has no results: {run.reason}")
        if not _holds(folder, run_id):
            raise RunFolderError(f"the folder {folder} does not hold the run {run_id} any more")
        _check_files(folder)
        return folder


def _holds(folder: Path, run_id: str) -> bool:
    manifest = folder / MANIFEST
    return manifest.is_file() and not manifest.is_symlink() and holds_run(folder, run_id)


def _compare(a: Path, b: Path, run_ids: tuple[str, str]) -> str:
    del run_ids  # part of the key only: a folder may be written again by another run
    return comparison_page(compare_runs(a, b, CompareOptions(matching=match_by_questions(Matching(), a, b))))


def _list_names(names: list[str]) -> str:
    items = "".join(f'<li><a href="/history/{quote(name, safe="")}">{escape(name)}</a></li>' for name in names)
    return _plain("Evaluations", f"<ul>{items}</ul>" if names else "<p>The history has no runs yet.</p>")


def _plain(title: str, body: str) -> str:
    head = '<meta charset="utf-8"><meta name="color-scheme" content="light dark">'
    return (
        f'<!doctype html><html lang="en"><head>{head}<title>{escape(title)}</title></head>'
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )


def make_app(pages: HistoryPages, port: int) -> Guard:
    """Return the application that serves the pages. Only GET is answered, and nothing is written.

    Args:
        port: Port to listen at.
    """
    room = asyncio.Semaphore(_AT_ONCE)

    async def answer(request: Request) -> Response:
        async with room:
            return await run_in_threadpool(_answer, pages, request.scope["raw_path"].decode())

    return Guard(Starlette(routes=[Route("/{path:path}", answer)]), host=HOST, port=port, media_types=())


def _answer(pages: HistoryPages, path: str) -> Response:
    try:
        page, policy = pages.page(path)
        return _respond(HTTPStatus.OK, page, policy)
    except (LookupError, FileNotFoundError):
        return _respond(HTTPStatus.NOT_FOUND, _plain("Not found", '<p>No such page. <a href="/">The history</a></p>'))
    except (AssayError, OSError) as error:
        return _respond(HTTPStatus.CONFLICT, _plain("Not possible", f"<p>{escape(str(error))}</p>"))


def _respond(status: HTTPStatus, page: str, policy: str = POLICY) -> Response:
    headers = {"Content-Security-Policy": policy, "Cache-Control": "no-store"}
    return Response(page.encode("utf-8", "replace"), status, headers, "text/html; charset=utf-8")


def open_history(catalogue: Catalogue, port: int = 0, last: int | None = None) -> AbstractContextManager[HttpServer]:
    """Return a server that listens on the loopback interface in its context; its caller calls `serve`.

    Args:
        port: Port to listen at; 0 for a free one.
        last: Number of the latest runs on a page; None for all.

    Raises:
        ConfigError: The port cannot be used.
    """
    pages = HistoryPages(catalogue, last)
    return open_server(HOST, port, lambda port: make_app(pages, port))


def _check_files(folder: Path) -> None:
    """Check that a run folder holds nothing but files and folders; folders above it may be links.

    Raises:
        RunFolderError: The folder, or something in it, is a link, a pipe or a device.
    """
    found = [folder]
    for root, folders, files in os.walk(folder):
        found += (Path(root, name) for name in (*folders, *files))
    for path in found:
        mode = path.lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise _foreign(path)


def _read_page(path: Path) -> str:
    """Return the text of a page in a run folder, without following links, which would show files from elsewhere.

    Raises:
        RunFolderError: It is not a file, or has more than _MAX_PAGE bytes.
        OSError: It cannot be read.
    """
    folder = os.open(path.parent, _FOLDER)
    try:
        with os.fdopen(os.open(path.name, _FILE, dir_fd=folder), encoding="utf-8") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _foreign(path)
            if status.st_size > _MAX_PAGE:
                raise RunFolderError(f"{path} has more than {_MAX_PAGE:,} bytes; open the file itself")
            return file.read()
    finally:
        os.close(folder)


def _foreign(path: Path) -> RunFolderError:
    return RunFolderError(f"{path} is a link, a pipe or a device, and only files are shown; put a file in its place")
