"""`assay history`: show the runs of an evaluation over time, and write them as one offline page."""

import json
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.options import ConfigFile, Json, declared_option
from deployments.cli._support.print_document import print_table
from deployments.cli._support.verb import VerbGroup
from deployments.history_server.history_pages import HOST, open_history
from flows.config.history_options import check_history
from flows.config.loading import load_config
from metric_core.errors import ConfigError
from metric_core.parsing.suggestions import suggest_names
from tasks.documents.blocks import make_table
from tasks.history.catalogue import Catalogue
from tasks.history.standings import read_standings
from tasks.options.text_forms import split_commas
from tasks.reports.history import history_text as text
from tasks.reports.history.history_page import write_history_page
from tasks.reports.history.history_text import describe_outcome, format_time, history_to_dict

app = VerbGroup()

_EXAMPLES = """Examples:

\b
assay history
assay history handbook --last 50 --metrics faithfulness,answer_correctness
assay history handbook --page history.html --open
assay history --rebuild runs
"""

Name = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="Name of the evaluation. Default: the only one.", show_default=False),
]
Address = Annotated[str | None, declared_option("history")]
Last = Annotated[
    int | None,
    typer.Option("--last", min=1, help="Number of the latest runs to show. Default: 20; in JSON and pages all."),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option("--metrics", metavar="NAME,...", help="Metrics in the table. Default: the first five."),
]
Page = Annotated[
    Path | None, typer.Option("--page", metavar="FILE", help="Write the history as one offline HTML page.")
]
Link = Annotated[
    str | None,
    typer.Option(
        "--link",
        metavar="URL",
        help="URL of run folders for the links in the page, with {name} or {folder} in it. Default: relative paths.",
    ),
]
Rebuild = Annotated[
    list[Path] | None,
    typer.Option(
        "--rebuild",
        metavar="FOLDER",
        help="Record all runs in a folder and below it; can be given several times.",
    ),
]
Forget = Annotated[
    list[str] | None,
    typer.Option(
        "--forget",
        metavar="RUN_ID",
        help="Remove the entry of a run, such as one by a wrong clock; its folder stays. Can be given several times.",
    ),
]
Serve = Annotated[
    bool,
    typer.Option("--serve", help="Serve the pages on this machine, with a comparison of any two runs at a click."),
]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port of --serve. Default: a free one.")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]

_SHOWN = 20
_RUN_WIDTH = 14
"""Width of a run's column in the table of metrics, with the gap before it."""


@app.command(epilog=_EXAMPLES)
def history(
    name: Name = None,
    history: Address = None,
    config: ConfigFile = None,
    last: Last = None,
    metrics: Metrics = None,
    page: Page = None,
    link: Link = None,
    rebuild: Rebuild = None,
    forget: Forget = None,
    serve: Serve = False,
    port: Port = 0,
    show: Open = False,
    as_json: Json = False,
) -> None:
    """Show an evaluation over time, as text, JSON or a page."""
    _check_options(page, serve, show, as_json)
    catalogue = Catalogue(find_history(history, config))
    if forget:
        _forget(catalogue, forget)
        return
    if rebuild:
        _rebuild(catalogue, rebuild, as_json)
        if name is None and page is None and not serve:
            return
    names = find_names(catalogue, name)
    if serve:
        _serve(catalogue, name, port, last, show)
    elif page is not None:
        _write_page(catalogue, _only(names), last, page, link)
        if show:
            _open_browser(page.absolute().as_uri())
    elif as_json:
        _print_json(catalogue, names, last)
    elif len(names) > 1:
        _print_names(catalogue, names)
    else:
        _print_runs(catalogue, names[0], last or _SHOWN, metrics)


def _check_options(page: Path | None, serve: bool, show: bool, as_json: bool) -> None:
    if show and page is None and not serve:
        raise ConfigError("--open opens the page: name its file with --page, or serve it with --serve")
    if serve and (page is not None or as_json):
        raise ConfigError("--serve shows the pages in a browser: leave --page and --json out")


def find_history(history: str | None, config: Path | None) -> str | None:
    """Return the address of the history: as given, or as in the configuration."""
    if history is not None:
        return check_history(history)
    return None if config is None else load_config(config).history


def _rebuild(catalogue: Catalogue, folders: list[Path], as_json: bool) -> None:
    report = catalogue.rebuild(folders)
    if as_json:
        skipped = [{"folder": each.folder, "problem": each.problem} for each in report.skipped]
        stdout.print_json(json.dumps({"recorded": report.recorded, "skipped": skipped}))
        return
    for each in report.skipped:
        stderr.print(f"skipped {each.folder}: {each.problem}", style="yellow")
    skipped_text = f", skipped {len(report.skipped)}" if report.skipped else ""
    stdout.print(f"recorded {report.recorded} runs{skipped_text}: {catalogue.address}")


def _forget(catalogue: Catalogue, run_ids: list[str]) -> None:
    for run_id in run_ids:
        if not catalogue.forget(run_id):
            raise ConfigError(
                f"the history {catalogue.address} has no run {run_id!r}: `assay history --json` names those that it has"
            )
        stdout.print(f"removed {run_id} from the history")


def find_names(catalogue: Catalogue, name: str | None) -> list[str]:
    """Return the evaluations to show.

    Raises:
        ConfigError: The history has no run, or none of this name.
    """
    names = catalogue.names()
    if not names:
        raise ConfigError(
            f"the history {catalogue.address} has no runs yet. Every run is recorded when it ends; "
            "`assay history --rebuild runs` records those in the folder runs."
        )
    if name is None:
        return names
    if name not in names:
        near = suggest_names(name, names) or names[:10]
        raise ConfigError(f"the history {catalogue.address} has no evaluation {name!r}, but {', '.join(near)}")
    return [name]


def _only(names: list[str]) -> str:
    if len(names) > 1:
        raise ConfigError(f"a page shows one evaluation: name one of {', '.join(names)}")
    return names[0]


def _write_page(catalogue: Catalogue, name: str, last: int | None, page: Path, link: str | None) -> None:
    written = write_history_page(catalogue, name, page, last=last, link=link)
    stdout.print(str(written))


def _serve(catalogue: Catalogue, name: str | None, port: int, last: int | None, show: bool) -> None:
    with open_history(catalogue, port, last) as server, suppress(KeyboardInterrupt):
        address = f"http://{HOST}:{server.port}/" + ("" if name is None else f"history/{quote(name, safe='')}")
        stdout.print(f"{address}  (Ctrl-C ends it)")
        if show:
            _open_browser(address)
        server.serve()


def _open_browser(address: str) -> None:
    if not webbrowser.open(address):
        stderr.print("cannot start a browser; open the page yourself", style="yellow")


def _print_json(catalogue: Catalogue, names: list[str], last: int | None) -> None:
    evaluations: list[dict[str, Any]] = [
        history_to_dict(
            name,
            catalogue.runs(name, last=last),
            catalogue.incidents(name),
            catalogue.availability(name),
            read_standings(catalogue, name),
        )
        for name in names
    ]
    stdout.print_json(json.dumps({"history": catalogue.address, "evaluations": evaluations}, allow_nan=False))


def _print_names(catalogue: Catalogue, names: list[str]) -> None:
    rows = []
    for name in names:
        (run,) = catalogue.runs(name, last=1)
        incidents = str(len(catalogue.open_incidents(name)) or "-")
        rows.append((name, format_time(run.created), describe_outcome(run), incidents))
    print_table(stdout, make_table(("evaluation", "last run", "outcome", "open incidents"), rows, ()))
    stdout.print("`assay history NAME` shows the runs of an evaluation")


def _print_runs(catalogue: Catalogue, name: str, last: int, metrics: list[str] | None) -> None:
    runs = catalogue.runs(name, last=last)
    known = text.choose_metrics(runs)
    chosen = _parse_metrics(metrics, known) if metrics else known
    stdout.print(name, style="bold")
    print_table(stdout, text.table_of_runs(runs))
    if chosen:
        room = (stdout.width - max(map(len, chosen))) // _RUN_WIDTH
        shown = [run for run in runs if run.metrics][-max(1, room) :]
        stdout.print()
        print_table(stdout, text.table_of_metrics(shown, chosen))
        if (findings := text.table_of_findings(shown)) is not None:
            print_table(stdout, findings)
        if any(run.kept for run in shown):
            stdout.print(text.OTHER_QUESTIONS, style="dim")
    for line in text.change_lines(runs):
        stdout.print(line)
    for availability in catalogue.availability(name):
        if availability.due:
            stdout.print(text.describe_availability(availability))
    for standing in read_standings(catalogue, name):
        stdout.print(standing.sentence, style="red" if standing.problem else None)
    for incident in catalogue.open_incidents(name):
        stdout.print(f"open {text.describe_incident(incident)}", style="red")


def _parse_metrics(given: list[str], known: list[str]) -> list[str]:
    chosen = [name for text in given for name in split_commas(text)]
    for each in chosen:
        if each not in known:
            near = suggest_names(each, known) or known
            raise ConfigError(f"the runs have no values of the metric {each!r}, but of {', '.join(near)}")
    return chosen
