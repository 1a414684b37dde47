"""Evaluate from a notebook or a script, on the local Prefect server that the command line uses.

from rag_assay import evaluate, open_run

run = evaluate("answers.jsonl", metrics=["faithfulness"])
run.scores().to_pandas()
"""

import logging
import os
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from deployments.local_server import ensure_server, use_server
from flows.results.comparison_result import ComparisonResult, compare
from flows.results.gate_assertion import GateRules, assert_gate
from flows.results.run_result import RunResult, open_run
from tasks.runtime.short_tracebacks import shortens_tracebacks

if TYPE_CHECKING:
    from tasks.options.metric_options import MetricTable
    from tasks.sources.in_memory import Data

__all__ = ["ComparisonResult", "GateRules", "RunResult", "assert_gate", "compare", "evaluate", "open_run"]


@shortens_tracebacks
def evaluate(data: "Data", *, metrics: "str | Sequence[str | MetricTable] | None" = None, **options: Any) -> RunResult:
    """Evaluate data.

    Args:
        data: Path or URL, list of dicts, pandas data frame, Arrow table (or a table of another library that exports
            Arrow streams, such as polars) or `datasets.Dataset`.
        metrics: Metrics, each as its name with parameters in parentheses, `"factual_correctness(mode=recall)"`, or as a
            table, `{"metric": "factual_correctness", "parameters": {"mode": "recall"}, "key": "recall"}`; by default
            all that the data and the judge allow.
        **options: Other fields of the configuration, as in a configuration file: `judge="http://localhost:8000/v1"`,
            `out="runs/first"`, `limit=100`, `column_map={"prompt": "user_input"}`.

    Returns:
        The finished run.

    Raises:
        FailedCellsError: The run is finished, but too many of its cells failed; `open_run(error.folder)` opens it.
        AssayError: The configuration, the data or a model cannot be used; the message says what to do.
    """
    from flows.config.loading import load_config  # noqa: PLC0415 keeps the import of this module quick
    from flows.planning.planner import plan_run  # noqa: PLC0415 keeps the import of this module quick
    from tasks.runtime.home import assay_home  # noqa: PLC0415
    from tasks.runtime.proxies import exempt_loopback  # noqa: PLC0415
    from tasks.sources.in_memory import save_rows  # noqa: PLC0415

    chosen = metrics if metrics is None or isinstance(metrics, str) else list(metrics)
    config = load_config(None, {"metrics": chosen, **options})
    if isinstance(data, (str, PathLike)):
        source = os.fspath(data)
    else:
        source = save_rows(data, config.tables_root, config.redact)
    config = config.model_copy(update={"source": source})
    _silence_prefect()
    exempt_loopback()
    plan = plan_run(config)
    with use_server(ensure_server(assay_home())):
        from flows.evaluate import evaluate_plan  # noqa: PLC0415 Prefect reads its settings when it is imported

        return RunResult(evaluate_plan(plan).folder)


def _silence_prefect() -> None:
    """Silence Prefect's log unless PREFECT_LOGGING_LEVEL is set."""
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    for worker in ("APILogWorker", "EventsWorker"):
        logging.getLogger(worker).setLevel(logging.ERROR)
