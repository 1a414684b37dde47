"""What a mistake on the command line is answered with: the verb that was perhaps meant, the file that is in the way."""

import errno
import os
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from deployments.cli._support.console import stderr
from deployments.cli._support.interrupts import INTERRUPTED, handle_interrupts
from deployments.cli._support.options import RENAMED_FLAGS
from deployments.local_server import mask_url
from tasks.runtime.home import assay_home

MEANT = {
    "check": "doctor",
    "diff": "compare",
    "eval": "run",
    "evaluate": "run",
    "gate": "compare",
    "help": "--help",
    "html": "report",
    "list": "metrics",
    "metric": "metrics",
    "retry": "rerun",
    "save": "export",
    "score": "run",
    "test": "run",
    "version": "--version",
}
"""Verbs that people try -> what does that here. Verbs that are only misspelt are found by likeness."""

_KEEP_THEIR_WORK = ("run", "rerun", "calibrate", "job")
_GO_ON = "; answers and finished stage tables are kept, and the same command goes on from there"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SETTINGS = ("Settings", "APISettings")
"""Prefect's names for those of its settings that say where its server is."""
_OTHER_SERVER = "Without PREFECT_API_URL, runs use a local server of their own."


class Verbs(TyperGroup):
    """The verbs of the command; for a verb of another tool it names ours."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the verb that the arguments begin with; refuse earlier names of flags."""
        for flag in (argument.partition("=")[0] for argument in takewhile(lambda argument: argument != "--", args)):
            if flag in RENAMED_FLAGS:
                ctx.fail(f"{flag} is now called {RENAMED_FLAGS[flag]}.")
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from metric_core.suggestions import suggest_names  # noqa: PLC0415 keeps `assay --help` quick

            nearest = suggest_names(args[0], [*self.commands, *MEANT], most=1)
            hint = f"Did you mean {MEANT.get(nearest[0], nearest[0])!r}?" if nearest else "`assay --help` lists them."
            ctx.fail(f"No such command {args[0]!r}. {hint}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Runs a verb; an interrupted one says what is left of its work."""
        try:
            with handle_interrupts(lambda: _keeps_work(ctx)):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            left = _GO_ON if _keeps_work(ctx) else ""
            stderr.print(f"interrupted{left}", markup=False, soft_wrap=True)
            raise typer.Exit(INTERRUPTED) from None


def _keeps_work(ctx: Any) -> bool:
    return ctx.invoked_subcommand in _KEEP_THEIR_WORK


def describe_error(error: OSError) -> str | None:
    """What a person needs to know about a file that can not be used; None if the error is about no file.

    >>> describe_error(FileNotFoundError(2, "No such file or directory", "nowhere/assay.toml"))
    'nowhere/assay.toml: No such file or directory'
    """
    if error.filename is None and error.errno in _NO_ROOM:
        return f"what the command prints or writes has no room: {error.strerror}"
    if error.filename is None or not error.strerror:
        return None
    home, file = assay_home(), Path(os.fsdecode(error.filename))
    is_ours = file == home or home in file.parents or file in home.parents
    advice = ". Set ASSAY_HOME to a folder that you may write to." if is_ours else ""
    return f"{error.filename}: {error.strerror}{advice}"


def describe_server_error(error: Exception) -> str | None:
    """What a person needs to know about a Prefect server that does not do its part; None for other errors."""
    exceptions = sys.modules.get("prefect.exceptions")
    if isinstance(error, RuntimeError) and str(error).startswith("Failed to reach API at"):
        return f"the Prefect server can not be reached ({mask_url(str(error))}). {_OTHER_SERVER}"
    if (problems := _describe_wrong_settings(error)) is not None:
        return (
            f"Prefect's settings can not be used: {problems}. See to PREFECT_API_URL and the other variables of Prefect"
        )
    if exceptions is None or not isinstance(error, exceptions.PrefectHTTPStatusError):
        return None
    status = error.response.status_code
    if status in (401, 403):
        return f"the Prefect server wants a password ({status}); set PREFECT_API_AUTH_STRING to it. {_OTHER_SERVER}"
    return f"the Prefect server answers with an error ({status}); its log says why"


def _describe_wrong_settings(error: Exception) -> str | None:
    """What is wrong with the settings that Prefect has read when it was imported; None for other errors.

    What stands in them is not repeated: it may be a password.
    """
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or not isinstance(error, pydantic.ValidationError) or error.title not in _SETTINGS:
        return None
    return "; ".join(": ".join((*map(str, found["loc"]), found["msg"])) for found in error.errors(include_url=False))
