"""`assay server`: inspect and stop the local Prefect server that runs share."""

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.verb import VerbGroup
from deployments.local_server import server_status, stop_server

app = VerbGroup(help="Inspect or stop the local Prefect server that runs share.", no_args_is_help=True)


@app.command()
def status() -> None:
    """Show whether the local server is running, and its address."""
    from tasks.runtime.home import assay_home  # noqa: PLC0415 keeps `assay --help` quick

    stdout.print(str(server_status(assay_home())))


@app.command()
def stop() -> None:
    """Stop the local server."""
    from tasks.runtime.home import assay_home  # noqa: PLC0415 keeps `assay --help` quick

    in_use = server_status(assay_home()).open_connections > 0
    stdout.print("stopped" if stop_server(assay_home()) else "no local server was running")
    if in_use:
        stderr.print("the server was in use: a run in progress keeps its cached answers, but cannot finish")
