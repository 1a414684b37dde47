"""Where a configuration comes from: a TOML or YAML file, the environment, and the command line, in rising order."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict

from flows.config.option_errors import describe_option_error
from flows.config.run_config import RunConfig
from metric_core.errors import ConfigError

ENVIRONMENT_PREFIX = "ASSAY_"

_MAY_HOLD_SECRETS = (
    ("judge", "backend"),
    ("judge", "server"),
    ("judge", "launch"),
    ("judge", "options"),
    ("panel",),
    ("embedder", "backend"),
    ("embedder", "server"),
    ("embedder", "options"),
    ("language", "options"),
    ("answers",),
    ("source",),
    ("tables",),
    ("retriever",),
    ("deploy", "alerts"),
    ("deploy", "baselines"),
)
"""Tables whose values are not repeated in messages: a URL may hold a password, a variable a key."""

CONFIG_SUFFIXES = (".toml", ".yaml", ".yml")

_PATHS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    (): ("source", "out", "tables", "answers", "baseline", "calibration"),
    ("judge",): ("script",),
    ("deploy",): ("gate", "baselines"),
    ("deploy", "alerts"): ("file",),
}
"""Options of a table that are paths, and relative to the configuration file."""

NO_PATHS = ("none", "kept")
"""What an option that is a path may say besides one."""


class _Environment(RunConfig, BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, env_nested_delimiter="__", enable_decoding=False, extra="ignore"
    )


def load_config(file: Path | None = None, overrides: Mapping[str, Any] | None = None) -> RunConfig:
    """The configuration from a file, the environment (ASSAY_METRICS, ASSAY_JUDGE__BACKEND, ...) and overrides.

    Args:
        file: a TOML or YAML file. A relative source or out in it is relative to the file's folder.
        overrides: what the command line says; None values are not said.

    Raises:
        ConfigError: a file that can not be read, or a value that can not be used.
    """
    merged = _read_file(file) if file is not None else {}
    merged = _merge(merged, EnvSettingsSource(_Environment)())
    merged = _merge(merged, {name: value for name, value in (overrides or {}).items() if value is not None})
    try:
        return RunConfig.model_validate(merged)
    except ValidationError as error:
        raise ConfigError(_explain(error, file)) from error


def _read_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text) if path.suffix == ".toml" else yaml.safe_load(text)
    except FileNotFoundError as error:
        raise ConfigError(f"there is no configuration file {path}. `assay init` writes one.") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"the configuration file {path} can not be read: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"the configuration file {path} must hold a table of options, got {type(content).__name__}")
    for table, names in _PATHS.items():
        below: Any = content
        for name in table:
            below = below.get(name) if isinstance(below, dict) else None
        if not isinstance(below, dict):
            continue
        for name in names:
            value = below.get(name)
            if isinstance(value, str) and _is_path(value):
                below[name] = str(path.parent / value)
    return content


def _is_path(value: str) -> bool:
    return value not in NO_PATHS and "://" not in value and not value.startswith(("hub:", "~"))


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Tables are merged key by key, anything else is replaced."""
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
        is_secret = any(problem["loc"][: len(place)] == place for place in _MAY_HOLD_SECRETS)
        is_table = isinstance(problem["input"], Mapping)  # which may hold secrets in options that are right themselves
        is_told = problem["type"] not in ("missing", "extra_forbidden") and not (is_secret or is_table)
        got = f", got {problem['input']!r}" if is_told else ""
        lines.append(f"  {where}: {describe_option_error(problem, RunConfig)}{got}")
    origin = f"in {file}, the environment or the command line" if file else "in the environment or the command line"
    return f"the configuration ({origin}) can not be used:\n" + "\n".join(lines)
