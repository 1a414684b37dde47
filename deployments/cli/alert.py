"""`assay alert`: open incidents and who got messages; acknowledge, close and silence them; test the recipients."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployments.cli._support.alarm_evidence import print_evidence
from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.log_levels import set_log_levels
from deployments.cli._support.options import ConfigFile, Json
from deployments.cli._support.verb import VerbGroup
from deployments.cli.doctor import PROBLEM
from deployments.cli.history import Address, find_history, find_names
from deployments.local_server import find_address, start_server, use_server
from flows.alerting.incident_states import IncidentState, incident_states
from flows.alerting.silencing import active_silence
from flows.config.alert_options import AlertSettings
from flows.config.intervals import parse_interval
from flows.config.loading import load_config
from metric_core.errors import ConfigError
from metric_core.parsing.suggestions import suggest_names
from tasks.history.alert_log import AlertLog
from tasks.history.catalogue import Catalogue
from tasks.history.operator_log import Acknowledgement, Silence
from tasks.options.option import find_secret_references
from tasks.runs.outcome_file import read_outcome
from tasks.runtime.home import assay_home

_NOT_YET = (
    "the Prefect server goes on to report runs that are late, missing or stuck: only a silence that begins at once can "
    "stop that"
)

LONGEST_SILENCE = timedelta(days=92)
"""Longest time for which messages may be silenced."""

if TYPE_CHECKING:
    from flows.alerting.delivery import Delivery

app = VerbGroup(
    help="Show, acknowledge, close and silence open incidents.",
    invoke_without_command=True,
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the evaluation.", show_default=False)]
Time = Annotated[
    str,
    typer.Option(
        "--until",
        metavar="TIME",
        help="End: a time such as 2026-11-22T06:00, in UTC unless it names its zone, or a length such as 4h or 1d12h.",
    ),
]


@app.callback()
def alert(
    context: typer.Context,
    explain: Annotated[
        Path | None,
        typer.Option(
            "--explain",
            metavar="RUN",
            help="Print the numbers behind the alarms of a monitored run: which runs were read, which were left out, "
            "and the evidence after each.",
            show_default=False,
        ),
    ] = None,
    history: Address = None,
    config: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Show, acknowledge, close and silence open incidents."""
    if explain is None:
        if context.invoked_subcommand is None:
            raise ConfigError("name a run with --explain, or a command: `assay alert --help` lists them")
        return
    if context.invoked_subcommand is not None:
        raise ConfigError(f"--explain has no command after it, got {context.invoked_subcommand}")
    from flows.monitoring.monitored_run_alarms import explain as explain_run

    outcome = read_outcome(explain)
    runs = [] if outcome is None else Catalogue(find_history(history, config)).runs(outcome.name)
    found = explain_run(None if config is None else load_config(config), explain, runs)
    print_evidence(found, () if outcome is None else outcome.alarms, as_json)


@app.command("list")
def list_incidents(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Name of the evaluation. Default: all.", show_default=False),
    ] = None,
    history: Address = None,
    config: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Show open incidents: who got a message, what was not delivered, who takes care of them, what is silenced."""
    log, names = _open(history, config, name)
    now = datetime.now(UTC)
    maintenance = _maintenance(config, now)
    silences = {each: [*maintenance, *log.silences(each, now)] for each in names}
    states = {each: incident_states(log, each) for each in names}
    if as_json:
        found = [_content(each, states[each], silences[each]) for each in names]
        stdout.print_json(json.dumps({"history": log.address, "evaluations": found}))
        return
    for each in names:
        _print(each, states[each], silences[each], now)
    if not any(states.values()):
        stdout.print("no incident is open")


@app.command("acknowledge")
def acknowledge(
    name: Name,
    key: Annotated[
        str | None,
        typer.Argument(metavar="KEY", help="Key of the incident. Default: all open ones.", show_default=False),
    ] = None,
    by: Annotated[str, typer.Option("--by", metavar="WHO", help="Who takes care of it.")] = "",
    history: Address = None,
    config: ConfigFile = None,
) -> None:
    """Note who takes care of an incident, so that it is not escalated."""
    log, _ = _open(history, config, name)
    incidents = log.open_incidents(name)
    known = [each.key for each in incidents]
    if key is not None and key not in known:
        near = suggest_names(key, known) or known
        raise ConfigError(f"{name} has no open incident {key!r}, but {', '.join(near) or 'none'}")
    chosen = [each for each in incidents if key in (None, each.key)]
    log.acknowledge([each.incident_id for each in chosen], Acknowledgement(datetime.now(UTC), by))
    for each in chosen:
        stdout.print(f"acknowledged {each.key}: {each.sentence}")
    if not chosen:
        stdout.print(f"{name} has no open incident")


@app.command("close")
def close(
    name: Name,
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY",
            help="Keys of incidents, also of the Prefect server, such as 'missed runs'. Default: all open ones.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[str, typer.Option("--by", metavar="WHO", help="Who closes it.")] = "",
    history: Address = None,
    config: ConfigFile = None,
) -> None:
    """Close incidents that no run will find over, and tell the recipients; give their configuration with --config."""
    if config is None:
        raise ConfigError("name the configuration with --config: its recipients are told that the incidents are over")
    options = load_config(config)
    if history is not None:
        options = options.model_copy(update={"history": find_history(history, None)})
    set_log_levels(verbose=False)
    with _server_for(options.deploy.alerts):
        from flows.monitoring.closing import close_incidents

        done = close_incidents(options, name, keys or (), by)
    for each in done.incidents:
        stdout.print(f"closed {each.key}: {each.sentence}")
    if not done.incidents:
        stdout.print(f"{name} has no open incident")
    if done.sent.is_silenced:
        stderr.print("messages are silenced: the recipients are told after the silence", style="yellow")
    for sentence in done.sent.undelivered:
        stderr.print(f"not delivered: {sentence}", style="yellow")
    if done.sent.undelivered:
        raise typer.Exit(PROBLEM)


@app.command("silence")
def silence(
    name: Name,
    until: Time,
    begins: Annotated[
        str | None,
        typer.Option(
            "--begin", metavar="TIME", help="Beginning, a time as for --until. Default: now.", show_default=False
        ),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Reason, for those who ask.")] = "",
    history: Address = None,
    config: ConfigFile = None,
) -> None:
    """Send no messages about an evaluation for a while; what is still open then is reported after it."""
    log, _ = _open(history, config, name)
    now = datetime.now(UTC)
    start = now if begins is None else _parse_time("--begin", begins, now)
    end = _parse_time("--until", until, start)
    if end <= max(start, now):
        raise ConfigError(
            f"the silence would end on {_show(end)}, before it begins or in the past: set a later --until"
        )
    if end - start > LONGEST_SILENCE:
        raise ConfigError(
            f"the silence would last until {_show(end)}: nobody would hear of anything for {(end - start).days} days. "
            f"Set an earlier --until, at most {LONGEST_SILENCE.days} days after its beginning"
        )
    log.silence(name, Silence(start, end, reason))
    stdout.print(f"no messages about {name} from {_show(start)} to {_show(end)}")
    if start <= now:
        _change_reports(name, end)
    else:
        stderr.print(_NOT_YET, style="yellow")


@app.command("unsilence")
def unsilence(name: Name, history: Address = None, config: ConfigFile = None) -> None:
    """End all silences of an evaluation, also those that have not begun."""
    log, _ = _open(history, config, name)
    count = log.end_silences(name, datetime.now(UTC))
    stdout.print(f"ended {count} {'silence' if count == 1 else 'silences'} of {name}")
    _change_reports(name, None)


@app.command("test")
def send_test_messages(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="Configuration file with [deploy.alerts].", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Send a test message to each recipient, and show what came back."""
    settings = load_config(config).deploy.alerts
    set_log_levels(verbose=False)
    deliveries = _send(settings)
    if as_json:
        stdout.print_json(json.dumps([asdict(each) for each in deliveries]))
    else:
        for each in deliveries:
            verb = "sent" if each.is_sent else "not sent"
            stdout.print(f"{each.channel}: {verb}, {each.reply}")
        from flows.alerting.recipients import RECIPIENTS, recipients_of

        if not recipients_of(settings) and not settings.routes:
            told = f"no recipient is configured: set one of {', '.join(RECIPIENTS)} in [deploy.alerts]"
            stderr.print(told, style="yellow")
    if not all(each.is_sent for each in deliveries):
        raise typer.Exit(PROBLEM)


def _change_reports(name: str, end: datetime | None) -> None:
    """Silence the reports of the Prefect server about an evaluation until a time, or resume them without one."""
    address = find_address(assay_home())
    if address is None:
        return  # without a server, nothing is reported
    set_log_levels(verbose=False)
    with use_server(address):
        from prefect.client.orchestration import get_client

        from deployments.registry.silenced_reports import resume_reports, silence_reports

        with get_client(sync_client=True) as client:
            found = resume_reports(client, name) if end is None else silence_reports(client, name, end)
    if found:
        done = "resumed" if end is None else "silenced"
        stdout.print(f"reports of the Prefect server about {', '.join(found)}: {done}")


def _open(history: str | None, config: Path | None, name: str | None) -> tuple[AlertLog, list[str]]:
    """Return the history, and the evaluations that are meant, which it must know."""
    address = find_history(history, config)
    return AlertLog(address), find_names(Catalogue(address), name)


def _maintenance(config: Path | None, now: datetime) -> list[Silence]:
    """Return the period of maintenance in a configuration that holds now, if there is one."""
    windows = () if config is None else load_config(config).deploy.alerts.maintenance
    found = active_silence([], windows, now)
    return [] if found is None else [found]


def _parse_time(option: str, text: str, start: datetime) -> datetime:
    """Return a time, which may be a length from another one."""
    try:
        return start + parse_interval(text)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{option} must be a time such as 2026-11-22T06:00, or a length such as 4h or 1d12h, got {text!r}"
        ) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _content(name: str, states: list[IncidentState], silences: list[Silence]) -> dict[str, Any]:
    incidents = [
        {
            "key": each.incident.key,
            "kind": each.incident.kind,
            "sentence": each.incident.sentence,
            "since": _iso(each.incident.opened),
            "notified": each.notified,
            "undelivered": each.waiting,
            "silenced": each.silenced,
            "acknowledged": each.acknowledgement
            and {"by": each.acknowledgement.person, "time": _iso(each.acknowledgement.time)},
        }
        for each in states
    ]
    periods = [{"begins": _iso(each.begins), "ends": _iso(each.ends), "reason": each.reason} for each in silences]
    return {"name": name, "incidents": incidents, "silences": periods}


def _print(name: str, states: list[IncidentState], silences: list[Silence], now: datetime) -> None:
    if not states and not silences:
        return
    stdout.print(name, style="bold")
    for each in silences:
        begins = "" if each.begins <= now else f"from {_show(each.begins)} "
        reason = f": {each.reason}" if each.reason else ""
        stdout.print(f"  silenced {begins}until {_show(each.ends)}{reason}")
    for state in states:
        incident = state.incident
        line = f"  {incident.key}, since {_show(incident.opened)}: {incident.sentence}"
        stdout.print(line, style="red")
        for sentence in state.sentences:
            stdout.print(f"    {sentence}")


def _show(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M}"


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="seconds")


def _send(settings: AlertSettings) -> "tuple[Delivery, ...]":
    with _server_for(settings):
        from flows.alerting.outbox import send_test

        return send_test(settings)


@contextmanager
def _server_for(settings: AlertSettings) -> Iterator[None]:
    """Start a Prefect server for the block if messages need one: only blocks do."""
    others = (settings, *settings.routes, *([] if settings.escalation is None else [settings.escalation]))
    blocks = [each.block for each in others]
    if not any(blocks) and not any(each.startswith("block:") for each in find_secret_references(settings)):
        yield
        return
    with use_server(start_server(assay_home()).wait()):
        yield
