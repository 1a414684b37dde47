"""Render the history of an evaluation as one HTML page that works offline."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from metric_core.errors import ConfigError
from tasks.documents.blocks import Items, own
from tasks.documents.html import to_html
from tasks.documents.timestamps import format_timestamp
from tasks.findings.standing import Standing
from tasks.history.availability import Availability
from tasks.history.catalogue import Catalogue
from tasks.history.incident import Incident
from tasks.history.recorded_run import COMPLETED, MISSED, RecordedRun
from tasks.history.standings import read_standings
from tasks.reports.history.history_text import describe_availability, describe_incident, describe_outcome
from tasks.reports.history.history_view import Links, find_pages, history_view, link_pages
from tasks.reports.page import render_page, script_json
from tasks.runtime.atomic_files import write_output
from tasks.runtime.release import version

_STYLES, _SCRIPTS = ("report.css", "history.css"), ("dom.js", "charts.js", "history.js")


def write_history_page(
    catalogue: Catalogue, name: str, page: Path, *, last: int | None = None, link: str | None = None
) -> Path:
    """Write the page of an evaluation, and return its absolute path.

    Args:
        page: File to write; its folder is created.
        last: Number of the latest runs to show; None for all.
        link: URL of run folders with {folder} or {name} in it; None for relative paths to reports on this machine.

    Raises:
        ConfigError: The history has no run of this name, cannot be read, or the file cannot be written.
    """
    path = page.expanduser().absolute()
    links = find_pages(path) if link is None else link_pages(link)
    runs, incidents = catalogue.runs(name, last=last), catalogue.incidents(name)
    standings = read_standings(catalogue, name)
    text = history_page(name, runs, incidents, links, availability=catalogue.availability(name), standings=standings)
    write_output(path, text, "the page", ConfigError)
    return path


def history_page(  # noqa: PLR0913, PLR0917 the parts of a page
    name: str,
    runs: Sequence[RecordedRun],
    incidents: Sequence[Incident],
    links: Links,
    compare: str | None = None,
    availability: Sequence[Availability] = (),
    standings: Sequence[Standing] = (),
) -> str:
    """Return the page of an evaluation.

    Args:
        runs: Runs, oldest first.
        incidents: Incidents, oldest first.
        links: Function that returns the address of a page in a run's folder, or None.
        compare: Address of comparisons of two runs on a server, with {a} and {b} in it; None for a page in a file.

    Raises:
        ConfigError: There are no runs.
    """
    if not runs:
        raise ConfigError(f"the history has no run of {name!r}")
    view = history_view(name, runs, incidents, links) | {"compare": compare}
    due = [own(describe_availability(each)) for each in availability if each.due]
    due += [own(each.sentence) for each in standings]
    content = {
        "name": name,
        "version": version(),
        "started": sum(run.status != MISSED for run in runs),
        "missed": sum(run.status == MISSED for run in runs),
        "first": format_timestamp(runs[0].created.isoformat()),
        "last": format_timestamp(runs[-1].created.isoformat()),
        "outcome": describe_outcome(runs[-1]),
        "kind": _kind(runs[-1]),
        "message": view["message"].get(str(len(runs) - 1), ""),
        "availability": to_html([Items(tuple(due))] if due else ()),
        "open": [describe_incident(incident) for incident in incidents if incident.closed is None],
        "has_slices": bool(view["slices"]),
        "data": Markup(script_json(view)),  # noqa: S704 escaped by script_json
    }
    return render_page("history.html.j2", content, _STYLES, _SCRIPTS)


def _kind(run: RecordedRun) -> str:
    """Return the class of the badge of a run's outcome."""
    if run.status != COMPLETED or run.failures or run.reason or (run.outcome is not None and run.outcome.alarms):
        return "failed"
    gate = None if run.outcome is None else run.outcome.gate
    return gate or "finished"
