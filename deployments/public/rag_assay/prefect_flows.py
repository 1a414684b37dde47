"""The Prefect flows: entrypoints of deployments (`rag_assay.prefect_flows.evaluate`), and parts of your own flows.

A worker imports an entrypoint in the working folder of the run, which may have a `flows/` or `tasks.py` of its own.
"""

from rag_assay._packages import open_packages

open_packages(alone=True)

from flows.calibrate import CalibrationResult, calibrate  # noqa: E402 the packages are open only now
from flows.compare import Comparison, compare  # noqa: E402
from flows.config.calibration_request import CalibrationRequest  # noqa: E402
from flows.config.run_config import RunConfig  # noqa: E402
from flows.evaluate import Evaluation, evaluate, run_evaluation  # noqa: E402
from flows.index_rebuilt import index_rebuilt  # noqa: E402
from flows.monitor import monitor  # noqa: E402
from flows.prune import PruneReport, PruneSettings, prune  # noqa: E402
from flows.refuse_event import refuse_event  # noqa: E402
from flows.rerun_stage import rerun_stage  # noqa: E402
from flows.resume_crashed import rerun_crashed  # noqa: E402
from tasks.runtime.terminal_text import guard_logs  # noqa: E402

__all__ = [
    "CalibrationRequest",
    "CalibrationResult",
    "Comparison",
    "Evaluation",
    "PruneReport",
    "PruneSettings",
    "RunConfig",
    "calibrate",
    "compare",
    "evaluate",
    "index_rebuilt",
    "monitor",
    "prune",
    "refuse_event",
    "rerun_crashed",
    "rerun_stage",
    "run_evaluation",
]

guard_logs()
