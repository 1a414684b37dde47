"""Identify the code of the formulas, so that results are kept for as long as the code that computes them is the same.

Every stage has a version, but whoever corrects a formula would forget to increase it. The code is that which this
process has loaded; if files have changed since, results are neither stored to be found nor found.
"""

import hashlib
import logging
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from metric_core.declarations.metric import Metric
from metric_core.stages import Stage
from tasks.engine.module_graph import METRICS, REGISTRY, ChangedCodeError, ModuleGraph
from tasks.options.judged_settings import StoredSettings
from tasks.options.metric_settings import MetricSettings
from tasks.options.settings import Settings
from tasks.runtime.loaded_files import NOTED
from tasks.stages.definition import StageDefinition

_FORMULAS = (
    "metric_core.",
    "tasks.rows.sample_evidence.",
    "tasks.models.recognizers.detection.",
    "tasks.models.recognizers.scripts.",
)
"""Beginnings of the names of modules with formulas. Other code has a version: that of a stage, or of a model."""

_MODELS = "tasks.opening.run_models"
"""The module that opens the models of stages, which these do not import themselves."""

_DIGITS = 32

_logger = logging.getLogger(__name__)


def digest_formulas() -> str | None:
    """Return the digest of the code of all formulas; None if a file has changed since it was loaded."""
    return _unless_changed(lambda: _digest(filter(_is_formula, _graph().files)))


def digest_formulas_of(definition: StageDefinition[Any], settings: Settings) -> str | None:
    """Return the digest of the formulas that a stage can run with some settings.

    A user-defined metric, or a function that a parameter names, may run any code. What it asks is identified by its own
    code, which is in the settings, and by all formulas; its scores are not.

    Returns:
        The digest; None for scores by such code, and if a file has changed since it was loaded.
    """
    if any(metric.code for metric in _settings_of_metrics(settings)):
        return digest_formulas() if definition.cached else None
    return _unless_changed(lambda: _digest(formulas_of(definition.stage, settings)))


def formulas_of(stage: Stage, settings: Settings) -> set[str]:
    """Return the modules of the formulas that a stage can run, if none of its metrics is user-defined."""
    roots = [f"tasks.stages.{stage}"]
    if isinstance(settings, StoredSettings):
        roots.append(_MODELS)
    for metric in _settings_of_metrics(settings):
        roots += _modules_of_metrics()[metric.request().metric.name]
    return set(filter(_is_formula, chain.from_iterable(map(_graph().reach, roots))))


def _unless_changed(digest: Callable[[], str]) -> str | None:
    try:
        return digest()
    except ChangedCodeError as error:
        _warn_once(str(error))
        return None


@cache
def _warn_once(path: str) -> None:
    _logger.warning(
        "%s has changed since this process started: what its code computes is not taken from earlier runs, and not "
        "kept for later ones. Start the process again",
        path,
    )


@cache
def _graph() -> ModuleGraph:
    return ModuleGraph(Path(__file__).parents[2], NOTED)


def _settings_of_metrics(settings: Settings) -> Sequence[MetricSettings]:
    metrics: Sequence[MetricSettings] = getattr(settings, "metrics", ())
    return metrics


@cache
def _modules_of_metrics() -> Mapping[str, set[str]]:
    """Return the modules that declare or import each built-in metric, among those of metrics."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, module in list(sys.modules.items()):
        if name.startswith(METRICS) and name != REGISTRY:
            for value in vars(module).values():
                if isinstance(value, Metric):
                    found[value.name].add(name)
    return dict(found)


def _is_formula(module: str) -> bool:
    return f"{module}.".startswith(_FORMULAS)


def _digest(modules: Iterable[str]) -> str:
    graph, digest = _graph(), hashlib.sha256()
    for module in sorted(modules):
        digest.update(f"{module} {graph.digest(module)}\n".encode())
    return digest.hexdigest()[:_DIGITS]
