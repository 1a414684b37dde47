"""Load a configuration from a TOML or YAML file, the environment and the command line; later ones win."""

import reprlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict

from flows.config.config_files import read_options
from flows.config.option_errors import describe_option_error
from flows.config.result_options import MonitoringOptions
from flows.config.run_config import RunConfig
from metric_core.errors import ConfigError
from tasks.options.option import (
    ENVIRONMENT_PREFIX,
    OptionFacts,
    map_values,
    may_hold_secret,
)
from tasks.options.source_options import split_kind
from tasks.runtime.credentials import is_reference
from tasks.runtime.wording import prefix_place

_FOR_REPORTING = ("name", "source", "history", "history_page", "metrics_file")
_OF_DEPLOY = ("baselines", "heartbeat")
"""Options for reporting a run, besides `deploy.alerts`."""

_EXCERPT = reprlib.Repr()
_EXCERPT.maxstring = _EXCERPT.maxother = 300

CONFIG_SUFFIXES = (".toml", ".yaml", ".yml")


class _Environment(RunConfig, BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, env_nested_delimiter="__", enable_decoding=False, extra="ignore"
    )


class InvalidOptionsError(ConfigError):
    """A value of a configuration cannot be used.

    Args:
        message: Message that names the values.
        content: The configuration; None if it is not known.
    """

    def __init__(self, message: str, content: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.content = content


def load_config(
    file: Path | None = None,
    overrides: Mapping[str, object] | None = None,
    fill: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> RunConfig:
    """Load the configuration from a file, the environment (ASSAY_METRICS, ASSAY_JUDGE__BACKEND, ...) and overrides.

    Args:
        file: TOML or YAML file. A relative path in it is relative to the folder of the file.
        overrides: Options of the command line; None values are not set.
        fill: Function that changes the content of the file, whose paths are resolved.

    Raises:
        ConfigError: The file cannot be read.
        InvalidOptionsError: A value cannot be used.
    """
    merged = _read_file(file) if file is not None else {}
    merged = merged if fill is None else fill(merged)
    merged = _merge(merged, EnvSettingsSource(_Environment)())
    merged = _merge(merged, {name: value for name, value in (overrides or {}).items() if value is not None})
    origin = (
        "in the given options or the environment"
        if file is None
        else f"in {file}, the given options or the environment"
    )
    return check_options(merged, origin)


def check_options(content: Mapping[str, object], origin: str) -> RunConfig:
    """Return the configuration with these options.

    Args:
        origin: Origin of the options, for messages.

    Raises:
        InvalidOptionsError: A value cannot be used.
    """
    try:
        return RunConfig.model_validate(content)
    except ValidationError as error:
        raise InvalidOptionsError(_explain(error, origin), content) from error
    except ConfigError as error:  # of a file that an option names
        raise InvalidOptionsError(str(error), content) from error


def reporting_options(content: Mapping[str, object]) -> MonitoringOptions:
    """Return only the options that reporting a run needs, each read separately.

    Options that cannot be used are left out, so that a mistake in one of them can be reported by the others.

    Args:
        content: The options, as they were read or sent.

    >>> deploy = {"cron": 5, "alerts": {"file": "alerts.jsonl"}}
    >>> content = {"name": "support", "metrics": "faithfulnes", "deploy": deploy}
    >>> options = reporting_options(content)
    >>> options.name, options.deploy.cron, options.deploy.alerts.file
    ('support', None, 'alerts.jsonl')
    """
    deploy = _table(content, "deploy")
    named: dict[tuple[str, ...], Any] = {(name,): content[name] for name in _FOR_REPORTING if name in content}
    named |= {("deploy", name): deploy[name] for name in _OF_DEPLOY if name in deploy}
    named |= {("deploy", "alerts", name): value for name, value in _table(deploy, "alerts").items()}
    found = MonitoringOptions()
    usable: dict[str, Any] = {}
    for place, value in named.items():
        nested: Any = value
        for name in reversed(place):
            nested = {name: nested}
        with suppress(ValidationError):
            found = MonitoringOptions.model_validate(_merge(usable, nested))
            usable = _merge(usable, nested)
    return found


def _table(content: Mapping[str, object], name: str) -> Mapping[str, Any]:
    table = content.get(name)
    return table if isinstance(table, Mapping) else {}


def _read_file(path: Path) -> dict[str, Any]:
    try:
        content = read_options(path, "the configuration file", "TOML" if path.suffix == ".toml" else "YAML")
    except FileNotFoundError as error:
        raise ConfigError(f"there is no configuration file {path}. `assay init` writes one.") from error
    if not isinstance(content, dict):
        raise ConfigError(f"the configuration file {path} must hold a table of options, got {type(content).__name__}")
    return map_values(content, RunConfig, partial(_resolve_path, path), in_lists=False)


def _resolve_path(file: Path, facts: OptionFacts, value: Any) -> Any:
    """Resolve a path against the folder of the file that names it; return any other value unchanged."""
    if not facts.is_path or not isinstance(value, str) or value in facts.words:
        return value
    kind, path = split_kind(value)
    is_elsewhere = "://" in value or path.startswith(("hub:", "~")) or is_reference(value)
    return value if is_elsewhere else f"{kind}{file.parent / path}"


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two configurations: tables key by key, anything else is replaced."""
    merged = dict(below)
    for name, value in above.items():
        if isinstance(value, Mapping) and isinstance(merged.get(name), Mapping) and name != "column_map":
            merged[name] = _merge(merged[name], value)
        else:
            merged[name] = value
    return merged


def _explain(error: ValidationError, origin: str) -> str:
    lines = []
    for problem in error.errors(include_url=False):
        where = [part for part in problem["loc"] if not str(part).startswith("function-")]
        is_secret = may_hold_secret(RunConfig, problem["loc"])
        is_table = isinstance(problem["input"], Mapping)  # its valid options may hold secrets
        shows_value = problem["type"] not in ("missing", "extra_forbidden") and not (is_secret or is_table)
        got = f", got {_EXCERPT.repr(problem['input'])}" if shows_value else ""
        lines.append(f"  {prefix_place(where, describe_option_error(problem, RunConfig))}{got}")
    return f"the configuration ({origin}) cannot be used:\n" + "\n".join(lines)
