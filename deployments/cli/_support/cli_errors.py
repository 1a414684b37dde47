"""Explain errors on the command line: suggest verbs, and describe errors of files and of the Prefect server."""

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

SUGGESTIONS = {
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
"""Verbs of other tools and the verbs to suggest for them. Misspelled verbs are found by similarity."""

_KEEP_THEIR_WORK = ("run", "monitor", "rerun", "calibrate", "job")
_CONTINUE = "; answers and finished stage tables are stored; the same command continues from there"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SETTINGS = ("Settings", "APISettings")
"""Prefect's names for the groups of its settings that locate its server."""
_OTHER_SERVER = "Without PREFECT_API_URL, runs use a local server."


class Verbs(TyperGroup):
    """The group of verbs, which suggests a verb for an unknown one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the verb that the arguments begin with; refuse earlier names of flags."""
        for flag in (argument.partition("=")[0] for argument in takewhile(lambda argument: argument != "--", args)):
            if flag in RENAMED_FLAGS:
                ctx.fail(f"{flag} is now called {RENAMED_FLAGS[flag]}.")
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from metric_core.parsing.suggestions import suggest_names  # noqa: PLC0415 keeps `assay --help` quick

            nearest = suggest_names(args[0], [*self.commands, *SUGGESTIONS], most=1)
            hint = (
                f"Did you mean {SUGGESTIONS.get(nearest[0], nearest[0])!r}?"
                if nearest
                else "`assay --help` lists them."
            )
            ctx.fail(f"No such command {args[0]!r}. {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the verbs by their purpose."""
        verbs: dict[str, list[tuple[str, Any]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            verbs.setdefault(command.rich_help_panel, []).append((name, command))
        room = formatter.width - 6 - max(map(len, self.commands))
        for heading, found in verbs.items():
            with formatter.section(heading):
                rows = [(name, command.get_short_help_str(room)) for name, command in found]
                formatter.write_dl([(f"{name:{max(map(len, self.commands))}}", text) for name, text in rows])

    def invoke(self, ctx: Any) -> Any:
        """Run a verb; if it is interrupted, print what is stored and how to continue."""
        try:
            with handle_interrupts(lambda: _keeps_work(ctx)):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            hint = _CONTINUE if _keeps_work(ctx) else ""
            stderr.print(f"interrupted{hint}", markup=False, soft_wrap=True)
            raise typer.Exit(INTERRUPTED) from None


def _keeps_work(ctx: Any) -> bool:
    return ctx.invoked_subcommand in _KEEP_THEIR_WORK


def describe_error(error: OSError) -> str | None:
    """Return a message about a file that cannot be used; None if the error is not about a file.

    >>> describe_error(FileNotFoundError(2, "No such file or directory", "nowhere/assay.toml"))
    'nowhere/assay.toml: No such file or directory'
    """
    if error.filename is None and error.errno in _NO_ROOM:
        return f"no space for the output of the command: {error.strerror}"
    if error.filename is None or not error.strerror:
        return None
    home, file = assay_home(), Path(os.fsdecode(error.filename))
    is_in_home = file == home or home in file.parents or file in home.parents
    advice = ". Set ASSAY_HOME to a folder that you may write to." if is_in_home else ""
    return f"{error.filename}: {error.strerror}{advice}"


def describe_server_error(error: Exception) -> str | None:
    """Return a message about an error of the Prefect server or its settings; None for other errors."""
    exceptions = sys.modules.get("prefect.exceptions")
    if isinstance(error, RuntimeError) and str(error).startswith("Failed to reach API at"):
        return f"the Prefect server cannot be reached ({mask_url(str(error))}). {_OTHER_SERVER}"
    if (problems := _describe_wrong_settings(error)) is not None:
        return (
            f"Prefect's settings cannot be used: {problems}. Check PREFECT_API_URL and the other variables of Prefect"
        )
    if exceptions is None or not isinstance(error, exceptions.PrefectHTTPStatusError):
        return None
    status = error.response.status_code
    if status in (401, 403):
        return f"the Prefect server requires a password ({status}); set PREFECT_API_AUTH_STRING. {_OTHER_SERVER}"
    return f"the Prefect server returned an error ({status}); see its log"


def _describe_wrong_settings(error: Exception) -> str | None:
    """Return the problems with the settings that Prefect read when it was imported; None for other errors.

    The values are not repeated, because they may be passwords.
    """
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or not isinstance(error, pydantic.ValidationError) or error.title not in _SETTINGS:
        return None
    return "; ".join(": ".join((*map(str, found["loc"]), found["msg"])) for found in error.errors(include_url=False))
