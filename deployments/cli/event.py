"""`assay event`: announce events, for programs that are not written in Python."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from deployments.cli._support.console import stdout
from deployments.cli._support.verb import VerbGroup
from deployments.local_server import find_address, use_server
from flows.index_events.index_event import IndexRebuilt
from metric_core.errors import ConfigError
from tasks.runtime.credentials import mask_url
from tasks.runtime.home import assay_home

app = VerbGroup(no_args_is_help=True)


@app.callback()
def event() -> None:
    """Announce an event, such as a rebuilt index."""


@app.command("index-rebuilt")
def index_rebuilt(
    index: Annotated[str, typer.Option("--index", help="Id of the index.")] = "",
    version: Annotated[
        str, typer.Option("--version", help="Version of the index: a number, a time, or any other name.")
    ] = "",
    dataset: Annotated[
        str,
        typer.Option(
            "--dataset",
            help="Location of the new responses and contexts; 'retriever:' fetches them from the index.",
        ),
    ] = "",
    chunks: Annotated[
        str,
        typer.Option("--chunks", help="Chunks of the index, or their receipt, to check before anything is evaluated."),
    ] = "",
) -> None:
    """Announce that an index was rebuilt, so that its new version is evaluated."""
    server = find_address(assay_home())
    if server is None:
        fields = {"index": index, "version": version, "dataset": dataset, "chunks": chunks}
        IndexRebuilt.from_payload(fields, datetime.now(UTC))
        raise ConfigError("no Prefect server is running: set PREFECT_API_URL, or start `assay serve`")
    with use_server(server):
        from deployments.events import emit_index_rebuilt

        event_id = emit_index_rebuilt(index, version, dataset, chunks=chunks)
    message = f"announced to {mask_url(server.url)}: index {index} was rebuilt, version {version} (event {event_id})"
    stdout.print(message)
