"""Declare the options of the history: the name under which runs are recorded, the database, and the version."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from tasks.options.option import Flag, Option, OptionGroup
from tasks.runtime.credentials import check_reference, is_reference
from tasks.runtime.database_address import normalize_address

_LONGEST = 200
_NOT_IN_NAMES = re.compile(r"[^\w.]+")


def check_history(address: str) -> str:
    """Return the address of a history in the form that settings carry.

    Raises:
        ConfigError: The address is neither a SQLite file, nor a PostgreSQL URL without a password, nor a reference.

    >>> check_history("env:HISTORY_URL"), check_history("postgresql://assay@db.example/history")
    ('env:HISTORY_URL', 'postgresql://assay@db.example/history')
    """
    if is_reference(address):
        return check_reference(address)
    return normalize_address(address, "history", otherwise=", or name the variable that holds the URL: env:NAME")


def check_history_page(path: str) -> str:
    """Return the file of a page of the history as it was written.

    Raises:
        ValueError: The file is a URL, or holds a placeholder that is not replaced.

    >>> check_history_page("runs/{name}.html")
    'runs/{name}.html'
    """
    if "://" in path:
        raise ValueError(f"must be a file of the machine that executes the run, got {path}")
    if not path.strip() or set("{}") & set(path.replace("{name}", "")):
        raise ValueError(f"the file name may hold {{name}} and no other braces, got {path!r}")
    return path


def history_page_path(page: str, name: str) -> Path:
    """Return the path of a page of the history, with {name} replaced.

    Args:
        page: File as in the option.

    >>> history_page_path("/pages/{name}.html", "handbook/nightly").as_posix()
    '/pages/handbook-nightly.html'
    """
    text = _NOT_IN_NAMES.sub("-", name).strip("-.") or "evaluation"
    return Path(page.replace("{name}", text)).expanduser().absolute()


class HistoryOptions(OptionGroup, affects_scores=False):
    """Options that say where, and under which name, runs are recorded."""

    name: Annotated[
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=_LONGEST)] | None,
        Option(
            "Name of the evaluation, to which history and accepted baselines belong: runs that are to be compared "
            "over time share it. Default: the name of the deployment, or else of the source.",
            holds="text",
            cli=Flag(long="--name", metavar="NAME", help="Name of the evaluation in the history."),
            examples=["handbook-nightly"],
        ),
    ] = None
    system_version: Annotated[
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=_LONGEST)] | None,
        Option(
            "Version of the RAG system that gave the responses, such as a release or commit. The history marks where "
            "it changes.",
            holds="text",
            by_run=True,
            cli=Flag(
                long="--system-version", metavar="TEXT", help="Version of the evaluated RAG system, for the history."
            ),
            examples=["2025.11.3"],
        ),
    ] = None
    history: Annotated[
        Annotated[str, AfterValidator(check_history)] | None,
        Option(
            "Database in which finished runs are recorded: a SQLite file, a postgresql:// URL without a password, or "
            "a reference to a URL, env:NAME or block:NAME. Default: a file in ASSAY_HOME.",
            holds="address",
            cli=Flag(
                long="--history", metavar="FILE|URL", help="Database of finished runs. Default: a file in ASSAY_HOME."
            ),
            examples=["env:ASSAY_HISTORY_URL"],
        ),
    ] = None
    history_page: Annotated[
        Annotated[str, AfterValidator(check_history_page)] | None,
        Option(
            "File of the page of the history, which every run writes again when it ends. {name} in it is replaced by "
            "the name of the evaluation. Links to reports are relative: publish runs/history.html with runs/.",
            holds="path",
            cli=Flag(
                long="--history-page", metavar="FILE", help="Page of the history to write again when the run ends."
            ),
            examples=["runs/history.html"],
        ),
    ] = None
