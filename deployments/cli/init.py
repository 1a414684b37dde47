"""`assay init`: write a commented configuration for the user's data."""

import json
from pathlib import Path
from typing import Annotated

import typer

from deployments.cli._support.config_template import config_template
from deployments.cli._support.console import stdout
from deployments.cli._support.verb import VerbGroup
from flows.config.run_config import RunConfig
from metric_core.errors import ConfigError
from tasks.runtime.atomic_files import write_output

app = VerbGroup()


@app.command()
def init(
    source: Annotated[str | None, typer.Argument(help="The data to evaluate.", show_default=False)] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write the configuration to.")] = Path("assay.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of configurations instead.")] = False,
) -> None:
    """Write a commented configuration for your data."""
    if schema:
        stdout.print_json(json.dumps(RunConfig.model_json_schema()))
        return
    if out.exists() and not force:
        raise ConfigError(f"{out} already exists. Name another file with --out, or replace it with --force.")
    write_output(out, config_template(source, out.parent), "the configuration", ConfigError)
    stdout.print(f"wrote {out}. Evaluate with: assay run {out}", markup=False, soft_wrap=True)
