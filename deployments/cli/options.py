"""The options that `run` and `plan` share, and how they become a configuration.

Every option is also an environment variable; so is every other field of the configuration, by its name in capitals
after ASSAY_, with two underscores between a table and its field (ASSAY_EMBEDDER__MODEL).
"""

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from metric_core.errors import ConfigError

Source: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="SOURCE|CONFIG",
        help="Data (JSONL, JSON, CSV, Parquet, Arrow, a datasets folder, an fsspec URL, hub:owner/name) "
        "or a configuration file (.toml, .yaml).",
        show_default=False,
    ),
]
ConfigFile: TypeAlias = Annotated[
    Path | None, typer.Option("--config", "-c", envvar="ASSAY_CONFIG", help="Configuration file, beside a SOURCE.")
]
Metrics: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        "-m",
        envvar="ASSAY_METRICS",
        help="Metrics, comma-separated, parameters in parentheses: faithfulness,noise_sensitivity(mode=irrelevant). "
        "Default: all whose columns the data has.",
    ),
]
JudgeBackend: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--judge",
        envvar="ASSAY_JUDGE",
        metavar="builtin|URL",
        help="The packaged baseline, or a judge server's /v1 URL.",
    ),
]
Model: TypeAlias = Annotated[
    str | None, typer.Option("--model", envvar="ASSAY_MODEL", help="The judge model's name, if the server has several.")
]
Limit: TypeAlias = Annotated[
    int | None, typer.Option("--limit", envvar="ASSAY_LIMIT", min=1, help="Take the first rows only.")
]
OnBadRow: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--on-bad-row", envvar="ASSAY_ON_BAD_ROW", metavar="fail|skip", help="Stop at bad rows, or leave them out."
    ),
]
EmptyText: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--empty-text",
        envvar="ASSAY_EMPTY_TEXT",
        metavar="bad|keep",
        help="Whether an empty text in a required column makes a row bad.",
    ),
]
ColumnMap: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--column-map", envvar="ASSAY_COLUMN_MAP", metavar="DATA=SAMPLE,...", help="Columns of the data by other names."
    ),
]
IdColumn: TypeAlias = Annotated[
    str | None, typer.Option("--id-column", envvar="ASSAY_ID_COLUMN", help="Column with the rows' ids.")
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def judge_table(judge: str | None, model: str | None) -> dict[str, Any] | None:
    """What --judge and --model say about the judge, as a table of the configuration; None if they say nothing."""
    from flows.config import judge_named  # noqa: PLC0415 keeps `assay --help` quick

    table: dict[str, Any] = {} if judge is None else judge_named(judge)
    if model is not None:
        table.setdefault("server", {})["model"] = model
    return table or None


def overrides(source: str | None, config: Path | None, **options: Any) -> tuple[Path | None, dict[str, Any]]:
    """The configuration file and what the command line says beside it.

    Args:
        source: the argument: data, or a configuration file by its suffix.
        config: the configuration file of --config.
        **options: fields of the configuration; None: not said.

    Raises:
        ConfigError: two configuration files.
    """
    from flows.config import CONFIG_SUFFIXES  # noqa: PLC0415 keeps `assay --help` quick

    if source is not None and source.endswith(CONFIG_SUFFIXES):
        if config is not None:
            raise ConfigError(f"two configuration files: {source} and {config}. Give one, and the data as SOURCE.")
        return Path(source), options
    return config, {"source": source, **options}
