"""What a mistake on the command line is answered with: the verb that was perhaps meant, the file that is in the way."""

from typing import Any

from typer.core import TyperGroup

MEANT = {
    "check": "doctor",
    "diff": "compare",
    "eval": "run",
    "evaluate": "run",
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


class Verbs(TyperGroup):
    """The verbs of the command; for a verb of another tool it names ours."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb that the arguments begin with."""
        if args and args[0] in MEANT and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {MEANT[args[0]]!r}?")
        return super().resolve_command(ctx, args)


def said_of(error: OSError) -> str | None:
    """What a person needs to know about a file that can not be used; None if the error is about no file.

    >>> said_of(FileNotFoundError(2, "No such file or directory", "nowhere/assay.toml"))
    'nowhere/assay.toml: No such file or directory'
    """
    return f"{error.filename}: {error.strerror}" if error.filename is not None and error.strerror else None
