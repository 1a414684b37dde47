"""Parse the arguments of a verb: an option that is given twice adds up or is refused."""

from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, TypeVar

import typer
from typer.core import TyperCommand

FIRST_HEADING = "Start here"
"""Heading of the options that most users of a verb need."""
_OWN = "Options"
"""Heading of the options without one: those that only this verb has."""
_ALL = "assay.help_all"
F = TypeVar("F", bound=Callable[..., Any])


class Verb(TyperCommand):
    """A verb of the command line.

    By default the last value of a repeated option would be used, and the others ignored without a message.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; refuse repeated options that have one value."""
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(list(args))
            for parameter, count in Counter(order).items():
                if count > 1 and _has_one_value(parameter):
                    ctx.fail(f"{max(parameter.opts, key=len)} is given {count} times, and has one value. Give it once.")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the help of arguments and options: all of them with --help-all."""
        records: dict[str, list[tuple[str, str]]] = {"Arguments": [], FIRST_HEADING: [], _OWN: []}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                is_option = parameter.param_type_name == "option"
                records.setdefault(_heading(parameter) if is_option else "Arguments", []).append(record)
        shown = records if ctx.meta.get(_ALL) else ("Arguments", FIRST_HEADING, _OWN)
        for heading in shown:
            if found := records[heading]:
                with formatter.section(heading):
                    formatter.write_dl(found)


class VerbGroup(typer.Typer):
    """The command of a module: a verb, or a group of verbs if it has a callback."""

    def __init__(self, **options: Any) -> None:
        super().__init__(add_completion=False, rich_markup_mode=None, **options)

    def command(self, *arguments: Any, **options: Any) -> Callable[[F], F]:
        """Return a decorator that adds a verb."""
        return super().command(*arguments, **{"cls": Verb, **options})


def _heading(parameter: Any) -> str:
    return getattr(parameter, "rich_help_panel", None) or _OWN


def _show_all(context: typer.Context, is_given: bool) -> None:
    if is_given and not context.resilient_parsing:
        context.meta[_ALL] = True
        typer.echo(context.command.get_help(context))
        raise typer.Exit


HelpAll: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--help-all", is_eager=True, expose_value=False, callback=_show_all, help="Show all options and exit."
    ),
]
"""Option of a verb whose short help leaves options out."""


def _has_one_value(parameter: Any) -> bool:
    """Return whether a second occurrence on the command line may contradict the first one."""
    is_switch = parameter.is_flag and not parameter.secondary_opts
    return parameter.param_type_name == "option" and not (parameter.multiple or parameter.count or is_switch)
