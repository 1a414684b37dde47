"""Build the options that commands share from their declarations, and the configuration from their values.

Every option is also an environment variable; so is every other field of the configuration, by its name in capitals
after ASSAY_, with two underscores between a table and its field (ASSAY_EMBEDDER__MODEL).
"""

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args

import typer
from annotated_types import Ge

from deployments.cli._support.console import stderr, use_log_format
from deployments.cli._support.verb import FIRST_HEADING, HelpAll
from flows.config.history_options import HistoryOptions
from flows.config.loading import CONFIG_SUFFIXES, load_config
from flows.config.output_options import OutputOptions
from flows.config.run_config import FINDING_GROUPS, RunConfig
from metric_core.errors import ConfigError
from metric_core.metrics.registry import METRICS
from metric_core.parsing.suggestions import suggest_names
from tasks.options.cache_options import CacheOptions
from tasks.options.citation_options import CitationOptions
from tasks.options.cost_options import CostOptions
from tasks.options.embedder_options import EmbedderOptions
from tasks.options.judge_options import JudgeOptions, JudgeSettings
from tasks.options.metric_options import MetricOptions
from tasks.options.model_words import parse_model, replace_judge
from tasks.options.option import Flag, OptionGroup, declarations, facts_of, variable_name
from tasks.options.source_options import RowOptions
from tasks.options.text_forms import RepeatedText, split_commas
from tasks.options.trace_options import TraceSettings
from tasks.runtime.start_up import defer_pandas

ConfigFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", envvar="ASSAY_CONFIG", help="Configuration file (.toml, .yaml).", rich_help_panel="Data"
    ),
]
_PREFIX = "ASSAY_"
_NO_FIELDS = ("config", "home", "model")
"""Names of variables, without the prefix, that are not fields of the configuration."""
_OF_VERBS = ("ASSAY_COMPARE_", "ASSAY_CALIBRATE_")
"""Prefixes of variables that only single verbs read."""

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def by_option(variable: str) -> Any:
    """Return the option `--by`, which the environment variable sets too."""
    return typer.Option("--by", envvar=variable, help="Cluster column: rows that share a value are resampled together.")


def slice_option(variable: str) -> Any:
    """Return the option `--slice`, which can be repeated and which the environment variable sets too."""
    return typer.Option(
        "--slice",
        envvar=variable,
        metavar="COLUMN,...",
        help="Column whose values divide the rows into slices, each compared by itself. Can be repeated.",
        show_default=False,
    )


def split_names(values: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names in the values of a repeated option, each once.

    >>> split_names(["customer,topic", "topic"])
    ('customer', 'topic')
    """
    return tuple(dict.fromkeys(name for value in values or () for name in split_commas(value)))


def seed_option(variable: str) -> Any:
    """Return the option `--seed`, which the environment variable sets too."""
    return typer.Option("--seed", envvar=variable, min=0, help="Random seed of the resampling. Default: a fixed seed.")


def find_misspelled_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for every variable that no option reads and that resembles the name of an option.

    Variables that resemble no option have another purpose: a secret that the configuration names, a setting of a job.

    >>> list(find_misspelled_variables({"ASSAY_LIMT": "5", "ASSAY_LIMIT": "5", "ASSAY_SECRET": "x"}))
    ['no option reads the variable ASSAY_LIMT. Did you mean ASSAY_LIMIT?']
    """
    known = [f"{_PREFIX}{name.upper()}" for name in (*RunConfig.model_fields, *_NO_FIELDS)]
    for variable in sorted(environment):
        name, nested, _ = variable.partition("__")
        if not variable.startswith(_PREFIX) or name in known or name.startswith(_OF_VERBS):
            continue
        if nearest := suggest_names(name.removeprefix(_PREFIX), [option.removeprefix(_PREFIX) for option in known], 1):
            meant = f"{_PREFIX}{nearest[0]}{nested}"
            yield f"no option reads the variable {variable}. Did you mean {meant}{'...' if nested else ''}?"


def _complete_metrics(incomplete: str) -> list[str]:
    """Complete the last of several metrics."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in METRICS if name.startswith(last)]


START_HERE = ("metrics", "judge", "limit", "column_map", "out")
"""Options that the help of a command shows first, in this order, under a heading of their own."""

_HEADINGS: Mapping[str, tuple[type[OptionGroup], ...]] = {
    "Data": (RowOptions, TraceSettings),
    "Scores": (MetricOptions, CitationOptions),
    "Models and cost": (JudgeOptions, JudgeSettings, EmbedderOptions, CacheOptions, CostOptions),
    "Results and history": (OutputOptions, HistoryOptions, *FINDING_GROUPS),
}
"""Headings of the other options in the help of a command."""

_COMPLETIONS: Mapping[str, Callable[[str], list[str]]] = {"metrics": _complete_metrics}


def declared_option(name: str, long: str | None = None, table: tuple[str, ...] = ()) -> Any:
    """Return the option of a command for a declared option, for use in an annotation.

    Args:
        name: Name of the option.
        long: Long flag; None takes the declared one.
        table: Names of the tables that lead to the option.
    """
    group = _group_at(table)
    field, flag = group.model_fields[name], _flag_of(group, name)
    texts = [(flag and flag.help) or str(field.description)]
    default = flag.default if flag is not None and flag.default is not None else field.default
    if isinstance(default, str) and default and not table:
        texts.append(f"Default: {default}.")
    least: Any = next((item.ge for item in field.metadata if isinstance(item, Ge) and not table), None)
    flags = [long or (flag.long if flag else ""), flag.short if flag else None]
    variable: str | None = variable_name((*table, name))
    if flag is not None and flag.repeats:
        # typer would split the variable at white space; the configuration reads it whole.
        texts.append(f"Can be repeated.  [env var: {variable}]")
        variable = None
    return typer.Option(
        *filter(None, flags),
        envvar=variable,
        help=" ".join(texts),
        metavar=flag.metavar if flag else None,
        autocompletion=_COMPLETIONS.get(name) if not table else None,
        show_default=False,
        min=least,
        rich_help_panel=FIRST_HEADING if name in START_HERE and not table else _heading(group, name),
    )


def _heading(group: type[OptionGroup], name: str) -> str | None:
    """Return the heading of an option in the help; None for one of a table without a heading."""
    for heading, groups in _HEADINGS.items():
        if any(name in each.model_fields and issubclass(group, each) for each in groups):
            return heading
    return None


def _group_at(table: tuple[str, ...]) -> type[OptionGroup]:
    if not table:
        return RunConfig
    return next(found.table for found in declarations(RunConfig) if found.place == table and found.table is not None)


def _flag_of(group: type[OptionGroup], name: str) -> Flag | None:
    facts = facts_of(group.model_fields[name])
    return None if facts is None else facts.flag


def _parameter(name: str, kind: Any, declared: Any = None) -> inspect.Parameter:
    annotation = kind if declared is None else Annotated[kind, declared]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def flag_parameters(table: tuple[str, ...] = ()) -> Iterator[inspect.Parameter]:
    """Yield a parameter for every option of a table that has a flag.

    Args:
        table: Names of the tables that lead to the options.
    """
    group = _group_at(table)
    for name, field in group.model_fields.items():
        flag = _flag_of(group, name)
        if flag is None or not flag.long:
            continue
        kind: Any = next(
            (kind for kind in (int, float) if kind in (field.annotation, *get_args(field.annotation))), str
        )
        kind = list[str] if flag.repeats else kind
        yield _parameter(name, kind | None, declared_option(name, table=table))


def _shared_parameters() -> Iterator[inspect.Parameter]:
    source = _flag_of(RunConfig, "source") or Flag(long="")
    yield _parameter("source", str | None, typer.Argument(metavar=source.metavar, help=source.help, show_default=False))
    yield _parameter("config", ConfigFile)
    for parameter in flag_parameters():
        yield parameter
        if parameter.name == "column_map":
            for option in flag_parameters(("traces",)):
                yield option.replace(name=f"{TRACES_OF}{option.name}")
        if parameter.name == "judge":
            model = typer.Option(
                "--model",
                envvar="ASSAY_MODEL",
                help="The judge model's name, if the server has several.",
                rich_help_panel="Models and cost",
            )
            yield _parameter("model", str | None, model)
            for option in flag_parameters(("judge",)):
                yield option.replace(name=f"{JUDGE_OF}{option.name}")


JUDGE_OF = "judge_"
"""Beginning of the name of an option that names the judge of a group of questions."""
TRACES_OF = "traces_"
"""Beginning of the name of an option that selects traces."""


def _place(parameter: inspect.Parameter) -> int:
    """Return where an option comes in the help: the source, then the first options, then the others as declared."""
    first = ("source", *START_HERE)
    return first.index(parameter.name) if parameter.name in first else len(first)


_OPTIONS = tuple(sorted(_shared_parameters(), key=_place))
"""All but `config`, `model` and those of JUDGE_OF and TRACES_OF are fields of the configuration."""


def with_config(command: Callable[..., None]) -> Callable[..., None]:
    """Add the shared options to a command, and pass it the configuration that they make.

    Args:
        command: Function whose first parameter is the configuration; its other parameters are further options.
    """
    return _with_config(command, _OPTIONS)


def with_config_except(
    *names: str, refused: Callable[[ConfigError], None] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator like `with_config` without the named options, which would have no effect on the command.

    Args:
        names: The options to leave out.
        refused: Called with the error of a configuration that cannot be used, before it ends the command.
    """
    options = options_except(*names)
    return lambda command: _with_config(command, options, refused)


def options_except(*names: str) -> tuple[inspect.Parameter, ...]:
    """Return the shared options without the named ones, for `with_parameters`."""
    return tuple(option for option in _OPTIONS if option.name not in names)


def _with_config(
    command: Callable[..., None],
    options: tuple[inspect.Parameter, ...],
    refused: Callable[[ConfigError], None] | None = None,
) -> Callable[..., None]:
    def make(given: dict[str, Any]) -> RunConfig:
        try:
            return make_configuration(**given)
        except ConfigError as error:
            if refused is not None:
                refused(error)
            raise

    return with_parameters(command, options, make)


def with_parameters(
    command: Callable[..., None], options: tuple[inspect.Parameter, ...], make: Callable[[dict[str, Any]], Any]
) -> Callable[..., None]:
    """Add options to a command, and pass it what `make` returns for their values.

    Args:
        command: Function whose first parameter is the result of `make`; its other parameters are further options.
        options: Parameters of the options to add.
        make: Function of the values of these options, by name.
    """
    command_options = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in list(inspect.signature(command).parameters.values())[1:]
    ]

    @wraps(command)
    def wrapper(**values: Any) -> None:
        given = {option.name: combine(values.pop(option.name)) for option in options}
        values.pop("help_all", None)
        command(make(given), **values)

    help_all = inspect.Parameter("help_all", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=HelpAll)
    parameters = [*options, *command_options, help_all]
    vars(wrapper)["__signature__"] = inspect.Signature(parameters)
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper


def combine(value: Any) -> Any:
    """Return the value of an option; those of a repeated one in the form that configurations add up."""
    return (RepeatedText(value) or None) if isinstance(value, list | tuple) else value


def make_configuration(
    source: str | None,
    config: Path | None,
    model: str | None,
    fill: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    **given: Any,
) -> RunConfig:
    """Load the configuration from a file, the environment and the values of the command line.

    Args:
        fill: Function that changes the content of the file.
        given: Values of the other shared options, by name.

    Raises:
        ConfigError: There are two configuration files, or a value cannot be used.
    """
    for warning in find_misspelled_variables(os.environ):
        stderr.print(f"warning: {warning}", style="yellow")
    for name in ("judge", "embedder"):
        parse = replace_judge if name == "judge" else parse_model
        given[name] = None if given[name] is None else parse(given[name])
    if model is not None:
        given["judge"] = given["judge"] or {}
        given["judge"].setdefault("server", {})["model"] = model
    for option in [name for name in given if name.startswith(JUDGE_OF)]:
        if (named := given.pop(option)) is not None:
            given["judge"] = {**(given["judge"] or {}), option.removeprefix(JUDGE_OF): replace_judge(named)}
    selected = {name.removeprefix(TRACES_OF): given.pop(name) for name in list(given) if name.startswith(TRACES_OF)}
    given["traces"] = {name: value for name, value in selected.items() if value is not None} or None
    if source is None or not source.endswith(CONFIG_SUFFIXES):
        loaded = load_config(config, {"source": source, **given}, fill)
    elif config is not None:
        raise ConfigError(f"two configuration files: {source} and {config}. Give one, and the data as SOURCE.")
    else:
        loaded = load_config(Path(source), given, fill)
    use_log_format(loaded.log_format)
    defer_pandas()
    return loaded
