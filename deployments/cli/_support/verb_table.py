"""List the verbs, and import the module of a verb when it is called or its help is shown.

So `assay --help` and the completion of verbs import none, and the modules of verbs import what they need at their top.
Entry points are looked up only for a verb that is not in the table, and to list all.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from deployments.cli._support.console import stderr
from deployments.cli._support.interrupts import INTERRUPTED, TERMINATED, Terminated, handle_interrupts
from metric_core.errors import PluginError
from tasks.runtime.start_up import gc_paused

if TYPE_CHECKING:
    from tasks.plugins.installed_verb import InstalledVerb

VERBS: Mapping[str, Mapping[str, str]] = {
    "Evaluate": {
        "example": "Write example data: answers from a handbook.",
        "init": "Write a commented configuration for your data.",
        "run": "Evaluate a source: write a run folder, print a summary.",
        "rerun": "Run a finished run again: failed, changed or all rows.",
        "compare": "Compare two runs row by row, or check a run against a gate.",
        "plan": "Show what a run would ask, or how many rows it needs.",
        "metrics": "List the metrics, or describe one.",
        "doctor": "Check what a run depends on, and say how to fix it.",
        "prompts": "Export the packaged prompts.",
    },
    "Look": {
        "report": "Write the report of a run again, as one offline HTML file.",
        "history": "Show an evaluation over time, as text, JSON or a page.",
        "export": "Write the scores of a run, or send its results to a server.",
    },
    "People": {
        "label": "Draw rows or claims for people to label, or import labels.",
        "calibrate": "Measure the agreement of a judge with human labels.",
    },
    "Schedule": {
        "monitor": "Evaluate as a schedule does: compare, gate, accept or alert.",
        "accept": "Accept a run as the baseline of its evaluation.",
        "serve": "Run evaluations on schedules and events until interrupted.",
        "deploy": "Deploy evaluations to a Prefect work pool.",
        "undeploy": "Remove deployments with their schedules and automations.",
        "alert": "Show, acknowledge, close and silence open incidents.",
        "event": "Announce an event, such as a rebuilt index.",
    },
    "Servers and storage": {
        "store": "Show or check the stored tables and cached answers.",
        "prune": "Remove unused rows and answers, old runs and old entries.",
        "judge": "Install, launch, inspect or try a judge server.",
        "server": "Inspect or stop the local Prefect server that runs share.",
    },
}
"""Heading in the help -> verb -> first sentence of its help. A verb is the `app` of the module with its name.

Further verbs are entry points; see `tasks.plugins.installed_verb`.
"""

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

_REFUSED = ("NoSuchOption", "UsageError")
"""Errors of Click, which some releases of Typer contain, about arguments that a verb does not take."""
_KEEP_THEIR_WORK = ("run", "monitor", "rerun", "calibrate")
_CONTINUE = "; answers and finished stage tables are stored; the same command continues from there"


class ListedVerb(TyperCommand):
    """A verb in the table, which becomes the command of its module when it is called or its help is shown."""

    heading = ""
    keeps_work = False

    def load(self) -> Any:
        """Import the module of the verb, and return its command."""
        with gc_paused():
            module = import_module(f"deployments.cli.{str(self.name).replace('-', '_')}")
        return typer.main.get_command(module.app)

    def load_form(self) -> Any:
        """Return the command of the further form of the verb, for arguments that it does not take; None without one."""
        form = _find_form(self.name)
        return None if form is None else _load_command(form.app)

    def make_context(self, info_name: str | None, args: list[str], *others: Any, **options: Any) -> Any:
        """Return the context of the verb's command for its arguments, or that of a further form which takes them."""
        command = self.load()
        if not {"--help", "-h"}.isdisjoint(args) and (form := _find_form(self.name)) is not None:
            command.epilog = f"{form.summary}\n\n{command.epilog or ''}"
        try:
            return command.make_context(info_name, list(args), *others, **options)
        except Exception as refusal:
            if type(refusal).__name__ not in _REFUSED or (other := self.load_form()) is None:
                raise
            unknown = getattr(refusal, "option_name", None)
            if unknown is not None and all(unknown not in option.opts for option in other.params):
                raise
        return other.make_context(info_name, list(args), *others, **options)


def _find_form(name: str | None) -> "InstalledVerb | None":
    from tasks.plugins.installed_verb import installed_form  # noqa: PLC0415 only for help and unknown arguments

    return installed_form(name or "")


def _load_command(app: str) -> Any:
    """Import the `typer.Typer` of an installed verb, and return its command."""
    from tasks.plugins.load_object import Group, load_object  # noqa: PLC0415 not for the verbs of the table

    with gc_paused():
        found = load_object(Group.VERBS, app).obj
    if not isinstance(found, typer.Typer):
        raise PluginError(f"{app} is {found!r}, wanted a typer.Typer")
    return typer.main.get_command(found)


class FoundVerb(ListedVerb):
    """A verb that an installed package declares.

    Args:
        found: Its declaration, or why that cannot be loaded.
    """

    def __init__(self, name: str, found: "InstalledVerb | PluginError") -> None:
        self._found = found
        if isinstance(found, PluginError):
            super().__init__(name, help="Cannot be loaded; call it to see why.")
        else:
            super().__init__(name, help=found.summary)
            self.heading, self.keeps_work = found.heading, found.keeps_work

    def load(self) -> Any:
        """Import the module of the verb, and return its command."""
        if isinstance(self._found, PluginError):
            raise self._found
        try:
            return _load_command(self._found.app)
        except PluginError as error:
            raise PluginError(f"the verb {self.name}: {error}") from error


class Verbs(TyperGroup):
    """The group of verbs, which suggests a verb for an unknown one."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for heading, verbs in VERBS.items():
            for name, text in verbs.items():
                self.commands[name] = verb = ListedVerb(name, help=text)
                verb.heading, verb.keeps_work = heading, name in _KEEP_THEIR_WORK
        self._has_installed = False

    def add_installed(self) -> None:
        """Add the verbs of installed packages, none of which replaces a verb of the table."""
        if not self._has_installed:
            from tasks.plugins.installed_verb import installed_verbs  # noqa: PLC0415 not for the verbs of the table

            self._has_installed = True
            for name, found in installed_verbs().items():
                self.commands.setdefault(name, FoundVerb(name, found))

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all verbs."""
        self.add_installed()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the verb with a name."""
        if cmd_name not in self.commands:
            self.add_installed()
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the verb that the arguments begin with."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from metric_core.parsing.suggestions import suggest_names  # noqa: PLC0415 only for a mistake

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
        width = max(map(len, self.list_commands(ctx)))
        headings: dict[str, list[tuple[str, str]]] = {heading: [] for heading in VERBS}
        for name, verb in self.commands.items():
            heading = getattr(verb, "heading", "")
            text = verb.get_short_help_str(formatter.width - 6 - width)
            headings.setdefault(heading, []).append((f"{name:{width}}", text))
        for heading, shown in headings.items():
            with formatter.section(heading):
                formatter.write_dl(shown)

    def invoke(self, ctx: Any) -> Any:
        """Run a verb; if it is interrupted, print what is stored and how to continue."""
        try:
            with handle_interrupts(lambda: self._keeps_work(ctx)):
                return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            hint = _CONTINUE if self._keeps_work(ctx) else ""
            stderr.print(f"interrupted{hint}")
            raise typer.Exit(TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED) from None

    def _keeps_work(self, ctx: Any) -> bool:
        return getattr(self.commands.get(ctx.invoked_subcommand), "keeps_work", False)
