"""`assay traces receive`: write traces that arrive over HTTP to files."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from deployments.cli._support.console import stdout
from deployments.cli._support.verb import VerbGroup
from deployments.trace_receiver.receiver import open_receiver
from deployments.trace_receiver.trace_files import TraceFiles

app = VerbGroup(no_args_is_help=True)

_LOOPBACK = "127.0.0.1"


@app.callback()
def traces() -> None:
    """Receive traces of a running system."""


@app.command()
def receive(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the files to.")] = Path("traces"),
    port: Annotated[int, typer.Option(help="Port to listen at.", min=1, max=65535)] = 4318,
    host: Annotated[
        str, typer.Option(help="Address to listen at. There is no access control: others may write files.")
    ] = _LOOPBACK,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--host-name",
            metavar="NAME",
            help="Further name by which clients reach it, such as that of its container; can be given several times.",
        ),
    ] = None,
    max_gib: Annotated[
        float, typer.Option("--max-gib", help="Maximum size of the files in GiB; then no more are written.", min=0.001)
    ] = 10.0,
) -> None:
    """Write traces that arrive by OTLP over HTTP to files.

    Point an exporter to it (OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318), end it with Ctrl-C, and evaluate
    `traces:` and the folder. JSON and protobuf are received, gRPC is not.
    """
    files = TraceFiles(out, int(max_gib * 1024**3))
    with open_receiver(files, host, port, names or ()) as server, suppress(KeyboardInterrupt):
        stdout.print(f"receiving at http://{host}:{port}/v1/traces, writing to {out}")
        server.serve()
