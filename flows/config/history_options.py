"""Declare the options of the history: the name under which runs are recorded, the database, and the version."""

from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from tasks.options.database_address import normalize_address
from tasks.options.option import Flag, Option, OptionGroup
from tasks.runtime.credentials import check_reference, is_reference

_LONGEST = 200


def check_history(address: str) -> str:
    """Return the address of a history in the form that settings carry.

    Raises:
        ConfigError: The address is neither a SQLite file, nor a PostgreSQL URL without a password, nor a reference.

    >>> check_history("env:HISTORY_URL"), check_history("postgresql://assay@db.example/history")
    ('env:HISTORY_URL', 'postgresql://assay@db.example/history')
    """
    return check_reference(address) if is_reference(address) else normalize_address(address, "history")


class HistoryOptions(OptionGroup):
    """Options that say where, and under which name, runs are recorded."""

    name: Annotated[
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=_LONGEST)] | None,
        Option(
            "Name of the evaluation, by which the history and accepted baselines are kept: runs that are meant to be "
            "compared over time share it. Default: the name of the deployment, or else of the source.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
            cli=Flag(long="--name", metavar="NAME", help="Name of the evaluation in the history."),
            examples=["handbook-nightly"],
        ),
    ] = None
    system_version: Annotated[
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=_LONGEST)] | None,
        Option(
            "Version of the RAG system that gave the responses, such as a release or commit. The history marks where "
            "it changes.",
            path=False,
            may_hold_secret=False,
            affects_scores=False,
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
            path=True,
            may_hold_secret=True,
            affects_scores=False,
            cli=Flag(
                long="--history", metavar="FILE|URL", help="Database of finished runs. Default: a file in ASSAY_HOME."
            ),
            examples=["env:ASSAY_HISTORY_URL"],
        ),
    ] = None
