"""Evaluate retrieval-augmented generation.

    from rag_assay import evaluate, open_run

    run = evaluate("answers.jsonl", metrics=["faithfulness"])
    run.scores().to_pandas()

The public names are those of this package, of `rag_assay.plugins` and of `rag_assay.prefect_flows`: docs/api.md says
what is promised about them. Importing this package is quick and binds no other name; the first use of a name loads what
it needs.
"""

import importlib
from typing import TYPE_CHECKING, Any

from rag_assay._packages import open_packages

if TYPE_CHECKING:
    from deployments.events import emit_index_rebuilt
    from deployments.notebook import (
        ComparisonResult,
        GateRules,
        RunResult,
        assert_gate,
        compare,
        evaluate,
        open_run,
    )
    from metric_core.errors import (
        AssayError,
        BadRowsError,
        ConfigError,
        EmbedderError,
        JudgeError,
        MetricError,
        MetricParameterError,
        MissingDependencyError,
        NotComparableError,
        PluginError,
        RunFolderError,
        SourceError,
        UnknownMetricError,
    )
    from tasks.documents.run.run_table import RunTable
    from tasks.options.metric_options import MetricTable
    from tasks.sources.in_memory import ArrowStream, Data, DatasetLike

__all__ = [
    "ArrowStream",
    "AssayError",
    "BadRowsError",
    "ComparisonResult",
    "ConfigError",
    "Data",
    "DatasetLike",
    "EmbedderError",
    "GateRules",
    "JudgeError",
    "MetricError",
    "MetricParameterError",
    "MetricTable",
    "MissingDependencyError",
    "NotComparableError",
    "PluginError",
    "RunFolderError",
    "RunResult",
    "RunTable",
    "SourceError",
    "UnknownMetricError",
    "__version__",
    "assert_gate",
    "compare",
    "emit_index_rebuilt",
    "evaluate",
    "open_run",
]

__version__: str

_MODULES = {
    "deployments.events": ("emit_index_rebuilt",),
    "deployments.notebook": (
        *("ComparisonResult", "GateRules", "RunResult"),
        *("assert_gate", "compare", "evaluate", "open_run"),
    ),
    "metric_core.errors": (
        *("AssayError", "BadRowsError", "ConfigError", "EmbedderError", "JudgeError", "MetricParameterError"),
        *(
            "MetricError",
            "MissingDependencyError",
            "NotComparableError",
            "PluginError",
            "RunFolderError",
            "SourceError",
        ),
        "UnknownMetricError",
    ),
    "tasks.options.metric_options": ("MetricTable",),
    "tasks.documents.run.run_table": ("RunTable",),
    "tasks.sources.in_memory": ("ArrowStream", "Data", "DatasetLike"),
}
_ORIGINS = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name == "__version__":
        open_packages()
        value: Any = importlib.import_module("tasks.runtime.release").version()
    elif name in _ORIGINS:
        open_packages()
        value = getattr(importlib.import_module(_ORIGINS[name]), name)
    else:
        raise AttributeError(f"module 'rag_assay' has no attribute {name!r}; it has: {', '.join(__all__)}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
