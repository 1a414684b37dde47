"""`assay alert --test`: send a test message to the recipients of alerts, and show what came back."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.options import Json
from deployments.cli.doctor import PROBLEM
from deployments.cli.run import set_log_levels
from deployments.local_server import start_server, use_server
from metric_core.errors import ConfigError

if TYPE_CHECKING:
    from flows.alerting.outbox import Delivery
    from flows.config.alert_options import AlertSettings


def alert(
    config: Annotated[
        Path | None,
        typer.Argument(metavar="CONFIG", help="Configuration file with [deploy.alerts].", show_default=False),
    ] = None,
    test: Annotated[bool, typer.Option("--test", help="Send a test message to each recipient.")] = False,
    as_json: Json = False,
) -> None:
    """Send a test alert, and show what came back."""
    from flows.config.loading import load_config  # noqa: PLC0415 keeps `assay --help` quick

    settings = load_config(config).deploy.alerts
    if not test:
        raise ConfigError("alerts are sent by runs; `assay alert --test CONFIG` sends a test message to each recipient")
    set_log_levels(verbose=False)
    deliveries = _send(settings)
    if as_json:
        stdout.print_json(json.dumps([asdict(each) for each in deliveries]))
    else:
        for each in deliveries:
            verb = "sent" if each.is_sent else "not sent"
            stdout.print(f"{each.channel}: {verb}, {each.reply}", markup=False, soft_wrap=True)
        from flows.alerting.recipients import RECIPIENTS, recipients_of  # noqa: PLC0415 loads Prefect

        if not recipients_of(settings):
            told = f"no recipient is configured: set one of {', '.join(RECIPIENTS)} in [deploy.alerts]"
            stderr.print(told, style="yellow", markup=False)
    if not all(each.is_sent for each in deliveries):
        raise typer.Exit(PROBLEM)


def _send(settings: "AlertSettings") -> "tuple[Delivery, ...]":
    """Send the message; a Prefect server is needed only for blocks."""
    from flows.config.references import find_references  # noqa: PLC0415 keeps `assay --help` quick
    from tasks.runtime.home import assay_home  # noqa: PLC0415

    if settings.block is None and not any(each.startswith("block:") for each in find_references(settings)):
        from flows.alerting.outbox import send_test  # noqa: PLC0415 loads Prefect

        return send_test(settings)
    with use_server(start_server(assay_home()).wait()):
        from flows.alerting.outbox import send_test  # noqa: PLC0415 Prefect reads its settings at import

        return send_test(settings)
