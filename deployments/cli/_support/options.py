"""The options that commands about a run share, and how they become its configuration. Each is written here once.

Every option is also an environment variable; so is every other field of the configuration, by its name in capitals
after ASSAY_, with two underscores between a table and its field (ASSAY_EMBEDDER__MODEL).
"""

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from deployments.cli._support.console import stderr
from metric_core.errors import ConfigError

if TYPE_CHECKING:
    from flows.config.run_config import RunConfig

ConfigFile: TypeAlias = Annotated[
    Path | None, typer.Option("--config", "-c", envvar="ASSAY_CONFIG", help="Configuration file, beside a SOURCE.")
]
_PREFIX = "ASSAY_"
_NO_FIELDS = ("config", "home", "model")
"""What variables say besides fields of the configuration."""
_OF_VERBS = ("ASSAY_COMPARE_", "ASSAY_CALIBRATE_")
"""Variables that the options of single verbs read."""

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def find_misspelled_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """One sentence for every variable that no option reads and whose name is much like that of an option.

    Variables that are like no option are somebody's own: a secret that the configuration names, a setting of a job.

    >>> list(find_misspelled_variables({"ASSAY_LIMT": "5", "ASSAY_LIMIT": "5", "ASSAY_SECRET": "x"}))
    ['no option reads the variable ASSAY_LIMT. Did you mean ASSAY_LIMIT?']
    """
    from flows.config.run_config import RunConfig  # noqa: PLC0415 keeps `assay --help` quick
    from metric_core.suggestions import suggest_names  # noqa: PLC0415

    known = [f"{_PREFIX}{name.upper()}" for name in (*RunConfig.model_fields, *_NO_FIELDS)]
    for variable in sorted(environment):
        name, nested, _ = variable.partition("__")
        if not variable.startswith(_PREFIX) or name in known or name.startswith(_OF_VERBS):
            continue
        if nearest := suggest_names(name.removeprefix(_PREFIX), [option.removeprefix(_PREFIX) for option in known], 1):
            meant = f"{_PREFIX}{nearest[0]}{nested}"
            yield f"no option reads the variable {variable}. Did you mean {meant}{'...' if nested else ''}?"


def _parameter(name: str, kind: Any, declared: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=declared, annotation=kind)


def _option(name: str, *short: str, kind: type = str, **more: Any) -> inspect.Parameter:
    declarations = ("--" + name.replace("_", "-"), *short)
    return _parameter(name, kind | None, typer.Option(None, *declarations, envvar=f"ASSAY_{name.upper()}", **more))


def _metrics_that_begin(incomplete: str) -> list[str]:
    """Completes the last of several metrics."""
    from metric_core.registry import METRICS  # noqa: PLC0415 keeps `assay --help` quick

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in METRICS if name.startswith(last)]


_OPTIONS: tuple[inspect.Parameter, ...] = (
    _parameter(
        "source",
        str | None,
        typer.Argument(
            None,
            metavar="SOURCE|CONFIG",
            help="Data (JSONL, JSON, CSV, Parquet or Arrow: a file, a folder, a quoted pattern such as 'logs/*.jsonl', "
            "an fsspec URL; a datasets folder; hub:owner/name) "
            "or a configuration file (.toml, .yaml).",
            show_default=False,
        ),
    ),
    _parameter("config", ConfigFile, None),
    _option(
        "metrics",
        "-m",
        help="Metrics, comma-separated, parameters in parentheses: faithfulness,noise_sensitivity(mode=irrelevant). "
        "Default: all whose columns the data has.",
        autocompletion=_metrics_that_begin,
    ),
    _option(
        "judge", metavar="builtin|URL", help="The packaged baseline, or a judge server's /v1 URL. Default: builtin."
    ),
    _option("model", help="The judge model's name, if the server has several."),
    _option(
        "embedder", metavar="minilm|URL", help="The packaged model, or an embedding server's /v1 URL. Default: minilm."
    ),
    _option(
        "explain",
        metavar="none|unsupported|all",
        help="Which verdicts on claims the judge is to explain afterwards. Default: none.",
    ),
    _option("out", "-o", help="Run folder. Default: runs/<time>-<source>."),
    _option("baseline", help="Run folder of an earlier run: say which rows have changed since."),
    _option("refresh", metavar="STAGE,...", help="Stages to compute and ask anew although they are kept."),
    _option(
        "answers",
        metavar="FILE|URL",
        help="Store of answers: a SQLite file or a postgresql:// URL. Default: a file in ASSAY_HOME.",
    ),
    _option("limit", kind=int, min=1, help="Take the first rows only."),
    _option("on_bad_row", metavar="fail|skip", help="Stop at bad rows, or leave them out. Default: fail."),
    _option(
        "empty_text",
        metavar="bad|keep",
        help="Whether an empty text in a required column makes a row bad, or is kept. Default: bad.",
    ),
    _option("column_map", metavar="DATA=SAMPLE,...", help="Columns by other names: prompt=user_input,gold=reference."),
    _option("id_column", help="Column with the rows' ids. Default: row_id or id, else made from the content."),
)
"""All but `source`, `config` and `model` are fields of the configuration."""


def with_config(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the shared options, whose first parameter is the configuration that they make.

    Args:
        command: called with the configuration, and with what its own options say.
    """
    return _with_options(command, _OPTIONS)


def with_config_except(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `configured`, for a command on which some of the shared options would have no effect."""
    options = tuple(option for option in _OPTIONS if option.name not in names)
    return lambda command: _with_options(command, options)


def _with_options(command: Callable[..., None], options: tuple[inspect.Parameter, ...]) -> Callable[..., None]:
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in list(inspect.signature(command).parameters.values())[1:]
    ]

    @wraps(command)
    def called(**values: Any) -> None:
        said = {option.name: values.pop(option.name) for option in options}
        command(_configuration(**said), **values)

    parameters = [*options, *own]
    vars(called)["__signature__"] = inspect.Signature(parameters)
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def _configuration(source: str | None, config: Path | None, model: str | None, **said: Any) -> "RunConfig":
    """The configuration from a file, the environment and what the command line says.

    Raises:
        ConfigError: two configuration files, or a value that can not be used.
    """
    from flows.config.loading import CONFIG_SUFFIXES, load_config  # noqa: PLC0415 keeps `assay --help` quick
    from flows.config.run_config import parse_model  # noqa: PLC0415 keeps `assay --help` quick

    for warning in find_misspelled_variables(os.environ):
        stderr.print(f"warning: {warning}", style="yellow", markup=False, soft_wrap=True)
    for name in ("judge", "embedder"):
        said[name] = None if said[name] is None else parse_model(said[name])
    if model is not None:
        said["judge"] = said["judge"] or {}
        said["judge"].setdefault("server", {})["model"] = model
    if source is None or not source.endswith(CONFIG_SUFFIXES):
        return load_config(config, {"source": source, **said})
    if config is not None:
        raise ConfigError(f"two configuration files: {source} and {config}. Give one, and the data as SOURCE.")
    return load_config(Path(source), said)
