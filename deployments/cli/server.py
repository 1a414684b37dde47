"""`assay server`: inspect and stop the local Prefect server that runs share."""

import shlex

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.verb import VerbGroup
from deployments.local_server import LocalServer, server_status, stop_server
from metric_core.errors import ConfigError
from tasks.runtime.home import assay_home

_USE = """\
It asks for a password, made at its start and kept in {record}, which only you can read.
`assay` finds it there. For `prefect` and other programs: eval "$(assay server env)"
It has no web pages; for Prefect's, start a server of your own (`prefect server start`) and set PREFECT_API_URL."""

app = VerbGroup(help="Inspect or stop the local Prefect server that runs share.", no_args_is_help=True)


@app.command()
def status() -> None:
    """Show whether the local server is running, its address, and how other programs use it."""
    found = server_status(assay_home())
    stdout.print(str(found))
    if found.record is not None:
        stdout.print(_USE.format(record=LocalServer(found.folder).record_file))


@app.command()
def env() -> None:
    """Print the variables with which `prefect` and other programs use the local server, its password among them."""
    status = server_status(assay_home())
    if status.record is None:
        raise ConfigError(f"{status}; the next run or `assay serve` starts it")
    for name, value in status.record.address.environment.items():
        stdout.print(f"export {name}={shlex.quote(value)}")


@app.command()
def stop() -> None:
    """Stop the local server."""
    in_use = server_status(assay_home()).open_connections > 0
    stdout.print("stopped" if stop_server(assay_home()) else "no local server was running")
    if in_use:
        stderr.print("the server was in use: a run in progress keeps its cached answers, but cannot finish")
