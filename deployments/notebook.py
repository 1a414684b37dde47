"""Evaluation from Python: one call for a notebook or a script, on the Prefect server that the command line shares.

from deployments.notebook import evaluate, open_run

run = evaluate("answers.jsonl", metrics=["faithfulness"])
run.scores().to_pandas()
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deployments.local_server import ensure_server, use_server
from flows.results.comparison_result import ComparisonResult, compare
from flows.results.run_result import RunResult, open_run

__all__ = ["ComparisonResult", "RunResult", "compare", "evaluate", "open_run"]


def evaluate(data: Any, *, metrics: Sequence[str] | None = None, **options: Any) -> RunResult:
    """Evaluates data.

    Args:
        data: a path or URL, a list of dicts, a pandas data frame, an Arrow table or a `datasets.Dataset`.
        metrics: metrics, with parameters in parentheses; by default all whose columns the data has.
        **options: other fields of the configuration, as in a configuration file: `judge="http://localhost:8000/v1"`,
            `out="runs/first"`, `limit=100`, `column_map={"prompt": "user_input"}`.

    Returns:
        The finished run.

    Raises:
        AssayError: anything that the user can put right; the message says how.
    """
    from flows.config.loading import load_config  # noqa: PLC0415 keeps the import of this module quick
    from flows.config.run_config import tables_root  # noqa: PLC0415 keeps the import of this module quick
    from tasks.runtime.home import assay_home  # noqa: PLC0415
    from tasks.sources.in_memory import save_rows  # noqa: PLC0415

    named = None if metrics is None else list(metrics)
    config = load_config(None, {"metrics": named, **options})
    source = str(data) if isinstance(data, (str, Path)) else save_rows(data, tables_root(config))
    config = config.model_copy(update={"source": source})
    _silence()
    with use_server(ensure_server(assay_home())):
        from flows.evaluate import run_evaluation  # noqa: PLC0415 Prefect reads its settings when it is imported

        return RunResult(run_evaluation(config).folder)


def _silence() -> None:
    """Prefect's log is for those who ask for it, by PREFECT_LOGGING_LEVEL."""
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    for worker in ("APILogWorker", "EventsWorker"):
        logging.getLogger(worker).setLevel(logging.ERROR)
