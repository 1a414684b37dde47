"""Load a configuration from a TOML or YAML file, the environment and the command line; later ones win."""

import os
import reprlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict

from flows.config.config_files import read_options
from flows.config.option_errors import describe_option_error
from flows.config.run_config import RunConfig
from metric_core.errors import ConfigError
from tasks.options.option import (
    ENVIRONMENT_PREFIX,
    OptionFacts,
    declarations,
    map_values,
    may_hold_secret,
    variable_name,
)
from tasks.options.source_options import split_kind
from tasks.runtime.credentials import is_reference

_EXCERPT = reprlib.Repr()
_EXCERPT.maxstring = _EXCERPT.maxother = 300

CONFIG_SUFFIXES = (".toml", ".yaml", ".yml")


class _Environment(RunConfig, BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, env_nested_delimiter="__", enable_decoding=False, extra="ignore"
    )


def load_config(file: Path | None = None, overrides: Mapping[str, Any] | None = None) -> RunConfig:
    """Load the configuration from a file, the environment (ASSAY_METRICS, ASSAY_JUDGE__BACKEND, ...) and overrides.

    Args:
        file: TOML or YAML file. A relative path in it is relative to the folder of the file.
        overrides: Options of the command line; None values are not set.

    Raises:
        ConfigError: The file cannot be read, or a value cannot be used.
    """
    refuse_renamed_variables(os.environ)
    merged = _read_file(file) if file is not None else {}
    merged = _merge(merged, EnvSettingsSource(_Environment)())
    merged = _merge(merged, {name: value for name, value in (overrides or {}).items() if value is not None})
    try:
        return RunConfig.model_validate(merged)
    except ValidationError as error:
        raise ConfigError(_explain(error, file)) from error


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
    if facts.path is not True or not isinstance(value, str) or value in (*facts.words, *facts.renamed_values):
        return value
    kind, path = split_kind(value)
    is_elsewhere = "://" in value or path.startswith(("hub:", "~")) or is_reference(value)
    return value if is_elsewhere else f"{kind}{file.parent / path}"


def refuse_renamed_variables(environment: Mapping[str, str]) -> None:
    """Refuse environment variables under the earlier name of an option, which nothing reads.

    Raises:
        ConfigError: A variable is set under an earlier name; the message says the current one.
    """
    for option in declarations(RunConfig):
        if option.earlier_place is not None and (earlier := variable_name(option.earlier_place)) in environment:
            raise ConfigError(f"the environment variable {earlier} is now called {variable_name(option.place)}")


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two configurations: tables key by key, anything else is replaced."""
    merged = dict(below)
    for name, value in above.items():
        if isinstance(value, Mapping) and isinstance(merged.get(name), Mapping) and name != "column_map":
            merged[name] = _merge(merged[name], value)
        else:
            merged[name] = value
    return merged


def _explain(error: ValidationError, file: Path | None) -> str:
    lines = []
    for problem in error.errors(include_url=False):
        where = ".".join(str(part) for part in problem["loc"] if not str(part).startswith("function-"))
        is_secret = may_hold_secret(RunConfig, problem["loc"])
        is_table = isinstance(problem["input"], Mapping)  # its valid options may hold secrets
        shows_value = problem["type"] not in ("missing", "extra_forbidden") and not (is_secret or is_table)
        got = f", got {_EXCERPT.repr(problem['input'])}" if shows_value else ""
        lines.append(f"  {where}: {describe_option_error(problem, RunConfig)}{got}")
    origin = f"in {file}, the environment or the command line" if file else "in the environment or the command line"
    return f"the configuration ({origin}) cannot be used:\n" + "\n".join(lines)
