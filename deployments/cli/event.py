"""`assay event`: says what has happened, for programs that are not written in Python."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from deployments.cli._support.console import stdout
from deployments.local_server import find_configured_url, mask_url, server_status, use_server
from metric_core.errors import ConfigError

app = typer.Typer(help="Say what has happened, such as that an index was rebuilt.", no_args_is_help=True)


@app.callback()
def event() -> None:
    """Say what has happened, such as that an index was rebuilt."""


@app.command("index-rebuilt")
def index_rebuilt(
    index: Annotated[str, typer.Option("--index", help="Id of the index.")] = "",
    version: Annotated[
        str, typer.Option("--version", help="Its version: a number, a time, or a name of any other kind.")
    ] = "",
    dataset: Annotated[
        str,
        typer.Option(
            "--dataset",
            help="Where its fresh answers and contexts are; retriever: if they are to be fetched from the index.",
        ),
    ] = "",
) -> None:
    """Say that an index was rebuilt, so that its new version is evaluated."""
    from flows.index_events.index_event import IndexRebuilt  # noqa: PLC0415 loads Prefect
    from tasks.runtime.home import assay_home  # noqa: PLC0415

    url = find_configured_url()
    if url is None:
        status = server_status(assay_home())
        if status.record is None:
            IndexRebuilt.from_payload({"index": index, "version": version, "dataset": dataset}, datetime.now(UTC))
            raise ConfigError("no Prefect server is there to be told: set PREFECT_API_URL, or start `assay serve`")
        url = status.record.api_url
    with use_server(url):
        from deployments.events import emit_index_rebuilt  # noqa: PLC0415

        event_id = emit_index_rebuilt(index, version, dataset)
    said = f"told {mask_url(url)}: index {index} was rebuilt, version {version} (event {event_id})"
    stdout.print(said, markup=False, soft_wrap=True)
