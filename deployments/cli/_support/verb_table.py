"""List the verbs, and import the module of a verb when it is called or its help is shown.

So `assay --help` and the completion of verbs import none, and the modules of verbs import what they need at their top.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from deployments.cli._support.console import stderr
from deployments.cli._support.interrupts import INTERRUPTED, TERMINATED, Terminated, handle_interrupts
from tasks.runtime.start_up import gc_paused

VERBS: Mapping[str, Mapping[str, str]] = {
    "Evaluate": {
        "init": "Write a commented configuration for your data.",
        "run": "Evaluate a source: write a run folder, print a summary.",
        "rerun": "Run a finished run again: failed, changed or all rows.",
        "compare": "Compare two runs row by row, or check a run against a gate.",
        "plan": "Show what a run would ask, or how many rows it needs.",
        "questions": "Write questions from an index, and keep them up to date.",
        "metrics": "List the metrics, or describe one.",
        "doctor": "Check what a run depends on, and say how to fix it.",
        "prompts": "Export the packaged prompts.",
    },
    "Look": {
        "report": "Write the report of a run again, as one offline HTML file.",
        "history": "Show an evaluation over time, as text, JSON or a page.",
        "export": "Write the scores of a run, or send them to an OTLP endpoint.",
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
        "job": "Run a job of eval-hub: JobSpec in, JobResults out.",
        "alert": "Show, explain, acknowledge, close and silence open incidents.",
        "event": "Announce an event, such as a rebuilt index.",
    },
    "Servers and storage": {
        "store": "Show or check the stored tables and cached answers.",
        "prune": "Remove unused rows and answers, old runs and old entries.",
        "judge": "Install, launch, inspect or try a judge server (vLLM).",
        "server": "Inspect or stop the local Prefect server that runs share.",
        "traces": "Receive traces of a running system.",
    },
}
"""Heading in the help -> verb -> first sentence of its help. A verb is the `app` of the module with its name."""

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

_KEEP_THEIR_WORK = ("run", "monitor", "rerun", "calibrate", "job", "questions")
_CONTINUE = "; answers and finished stage tables are stored; the same command continues from there"


class ListedVerb(TyperCommand):
    """A verb in the table, which becomes the command of its module when it is called or its help is shown."""

    def load(self) -> Any:
        """Import the module of the verb, and return its command."""
        with gc_paused():
            module = import_module(f"deployments.cli.{str(self.name).replace('-', '_')}")
        return typer.main.get_command(module.app)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Return the context of the verb's command for its arguments."""
        return self.load().make_context(*arguments, **options)


class Verbs(TyperGroup):
    """The group of verbs, which suggests a verb for an unknown one."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = {name: ListedVerb(name, help=text) for verbs in VERBS.values() for name, text in verbs.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the verb that the arguments begin with."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
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
        del ctx
        width = max(map(len, self.commands))
        for heading, verbs in VERBS.items():
            with formatter.section(heading):
                shown = {name: self.commands[name].get_short_help_str(formatter.width - 6 - width) for name in verbs}
                formatter.write_dl([(f"{name:{width}}", text) for name, text in shown.items()])

    def invoke(self, ctx: Any) -> Any:
        """Run a verb; if it is interrupted, print what is stored and how to continue."""
        try:
            with handle_interrupts(lambda: _keeps_work(ctx)):
                return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            hint = _CONTINUE if _keeps_work(ctx) else ""
            stderr.print(f"interrupted{hint}")
            raise typer.Exit(TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED) from None


def _keeps_work(ctx: Any) -> bool:
    return ctx.invoked_subcommand in _KEEP_THEIR_WORK
