"""`assay undeploy`: remove the deployments of a configuration from a Prefect server."""

import os
from typing import Annotated

import typer

from deployments.cli._support.console import stdout
from deployments.cli._support.options import Json
from deployments.cli._support.verb import VerbGroup
from deployments.cli.deploy import Suffix, print_changes
from deployments.local_server import ensure_server, use_server
from tasks.runtime.credentials import mask_url
from tasks.runtime.home import assay_home

app = VerbGroup()


@app.command()
def undeploy(
    name: Suffix = "",
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Remove; without this option, only show what would be removed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove deployments with their schedules and automations."""
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")

    with use_server(server := ensure_server(assay_home())):  # the local server has the deployments of `assay serve`
        from deployments.registry.apply import remove
        from deployments.registry.specs import name_suffix

        done = remove(name_suffix(name), dry_run=not yes)
    print_changes(done, as_json)
    if as_json:
        return
    if not done:
        stdout.print(f"there are no such deployments on {mask_url(server.url)}")
    elif not yes:
        stdout.print("nothing was removed; add --yes to remove these, and their runs that have not started")
