"""`assay server`: the local Prefect server that single runs share."""

import typer

from deployments.cli._support.console import stderr, stdout
from deployments.local_server import server_status, stop_server

app = typer.Typer(help="The local Prefect server that single runs share.", no_args_is_help=True)


@app.command()
def status() -> None:
    """Say whether the kept server runs, and where."""
    from tasks.runtime.home import assay_home  # noqa: PLC0415 keeps `assay --help` quick

    stdout.print(str(server_status(assay_home())))


@app.command()
def stop() -> None:
    """Stop the kept server."""
    from tasks.runtime.home import assay_home  # noqa: PLC0415 keeps `assay --help` quick

    in_use = server_status(assay_home()).open_connections > 0
    stdout.print("stopped" if stop_server(assay_home()) else "no kept server was running")
    if in_use:
        stderr.print("it was in use: a run that is going on keeps its answers, but can not end in good order")
