"""`assay init`: write a commented configuration for the user's data.

Metrics that the data allows are on, the rest is commented out.
"""

import json
import os
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo

from deployments.cli._support.console import stdout
from deployments.cli._support.verb import VerbGroup
from flows.config.deploy_options import DeploySettings
from flows.config.run_config import RunConfig
from flows.planning.metric_plan import make_plan
from metric_core.columns import COLUMNS
from metric_core.errors import ConfigError, SourceError
from metric_core.reasons import why_left_out
from tasks.options.cost_options import Prices
from tasks.options.evaluation_options import EvaluationOptions
from tasks.options.option import ModelOptions, declarations
from tasks.options.source_options import split_kind
from tasks.runtime.atomic_files import write_output
from tasks.sources import SourceOptions, read_samples

app = VerbGroup()

_FIRST: Mapping[str, tuple[str, ...]] = {
    "": ("column_map", "limit", "on_bad_row", "by", "slices", "budget", "baseline", "out"),
    "judge": ("backend", "server"),
    "deploy": ("cron", "gate", "alerts"),
}
"""Table -> options that a configuration has without --all, besides the source and the metrics."""
_WIDTH = 100
_INSTEAD = {"interval": "cron"}
"""Options that exclude another one, by name."""


@app.command()
def init(
    source: Annotated[str | None, typer.Argument(help="The data to evaluate.", show_default=False)] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write the configuration to.")] = Path("assay.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Write every option, not only the first ones.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of configurations instead.")] = False,
) -> None:
    """Write a commented configuration for your data."""
    if schema:
        stdout.print_json(json.dumps(RunConfig.model_json_schema()))
        return
    if out.exists() and not force:
        raise ConfigError(f"{out} already exists. Name another file with --out, or replace it with --force.")
    write_output(out, config_template(source, out.parent, everything), "the configuration", ConfigError)
    stdout.print(f"wrote {out}. Evaluate with: assay run {out}")


def config_template(source: str | None, folder: Path, everything: bool = False) -> str:
    """Return a TOML configuration for a source.

    Args:
        source: The data; None returns a configuration to fill in.
        folder: Folder of the configuration; a local source is written relative to it.
        everything: Write every option, not only those of _FIRST.

    Raises:
        SourceError: The source cannot be read.
    """
    reader = None if source is None else read_samples(source, SourceOptions(), {})
    columns = None if reader is None else (*reader.columns, *reader.other_columns)
    shown = "answers.jsonl" if source is None else _relative(source, folder)
    return "\n".join(
        [
            "# Configuration of an evaluation. Run it with: assay run THIS_FILE",
            "# Every option can also be set in the environment: ASSAY_ and its name in capitals",
            "# (ASSAY_LIMIT=10), with two underscores between a table and its option",
            "# (ASSAY_JUDGE__BACKEND=builtin).",
            "",
            "# The data: a file (JSONL, JSON, CSV, Parquet, Arrow), a datasets folder, a URL, hub:owner/name",
            "# or traces:PATH (traces of OpenTelemetry, Langfuse, LangSmith or Phoenix).",
            f"source = {to_toml(shown)}",
            *(() if reader is None or not reader.lookalikes else _lookalike_lines(reader.lookalikes)),
            "",
            *_metric_lines(columns),
            "",
            *_option_lines(everything),
            "",
        ]
    )


def _lookalike_lines(guessed: Mapping[str, str]) -> list[str]:
    return ["# Columns that look like those of a sample; they are read so with:", f"# column_map = {to_toml(guessed)}"]


def _relative(source: str, folder: Path) -> str:
    kind, path = split_kind(source)
    if "://" in source or source.startswith("hub:"):
        return source
    return f"{kind}{os.path.relpath(path, folder)}"


def _metric_lines(columns: tuple[str, ...] | None) -> list[str]:
    lines = [
        "# Metrics to compute; without this, all that the data and the judge allow. `assay metrics`",
        "# lists them. A metric takes parameters in parentheses, or as a table:",
        '#   {metric = "aspect_critic", key = "harmless", parameters = {definition = "Does it do no harm?"}}',
    ]
    example = '# metrics = ["faithfulness"]'
    if columns is None:
        return [*lines, example]
    try:
        plan = make_plan(EvaluationOptions(), columns)
    except SourceError:
        return [
            *lines,
            *_comment(f"The data has none of the columns that metrics work on ({', '.join(COLUMNS)}): see column_map."),
            example,
        ]
    named = [f"    {to_toml(request.key)}," for request in plan.requests]
    missing = [f"    # {to_toml(m)},  # {why_left_out(lacking)}" for m, lacking in plan.left_out.items()]
    return [*lines, "metrics = [", *named, *missing, "]"]


def _option_lines(everything: bool) -> list[str]:
    """Return the options in the order of their groups: single values first, then the tables with defaults."""
    lines: list[str] = []
    tables = []
    left_out = 0
    for option in declarations(RunConfig):
        name = option.place[0]
        if len(option.place) > 1 or name in ("source", "metrics"):
            continue
        if option.table is not None and isinstance(option.field.default, ModelOptions | DeploySettings | Prices):
            tables.append(option)
        elif everything or name in _FIRST[""]:
            lines += _value_lines(name, option.field)
        else:
            left_out += 1
    for table in tables:
        name = table.place[0]
        fields = type(table.field.default).model_fields
        shown = {key: field for key, field in fields.items() if everything or key in _FIRST.get(name, ())}
        left_out += len(fields) - len(shown)
        if shown:
            lines += ["", *_comment(str(table.field.description)), f"# [{name}]"]
        for key, field in shown.items():
            lines += _value_lines(key, field, f"or, instead of {_INSTEAD[key]}: " if key in _INSTEAD else "")
    return [*lines, *(("", f"# {left_out} more options: assay init --all") if left_out else ())]


def _value_lines(name: str, field: FieldInfo, before: str = "") -> Iterator[str]:
    yield from _comment(str(field.description))
    yield f"# {before}{name} = {_format_value(field)}"


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


def _format_value(field: FieldInfo) -> str:
    """Return the default as TOML; where there is none, an example."""
    return to_toml(field.examples[0] if field.examples else field.get_default(call_default_factory=True))


def to_toml(value: Any) -> str:
    r"""Return texts, numbers, and lists and mappings of them as TOML on one line.

    TOML lacks the pairs of escapes that JSON has for characters beyond U+FFFF, and refuses U+007F as it is.

    >>> to_toml({"name": "a\x7f\U0001f600"})
    '{"name" = "a\\u007f\U0001f600"}'
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{to_toml(key)} = {to_toml(entry)}" for key, entry in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
