"""Write the figures of a finished run in the text format of Prometheus, for node_exporter's textfile collector.

Labels hold names only, no text from the data, because everyone who can see the monitoring can read them.
"""

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from flows.execution.run_subject import RunSubject
from metric_core.errors import RunFolderError
from tasks.runs.run_folder import MANIFEST, SUMMARY, RunFolder
from tasks.runtime.atomic_files import write_output

_STATES = ("scored", "undefined", "failed")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._]+")
_NO_NAME = "none"


def write_metrics_file(file: str, folder: RunFolder, subject: RunSubject) -> tuple[str, ...]:
    """Write the figures of a finished run; readers find the whole file or the earlier one.

    Args:
        file: Path of the file, with placeholders; its folder is created.
        folder: The run folder.
        subject: Subject of the run, for labels and placeholders.

    Returns:
        A warning if the file cannot be written: the results are in the run folder all the same.
    """
    registry = collect_figures(folder.read_json(MANIFEST), folder.read_json(SUMMARY), subject, time.time())
    try:
        write_output(metrics_path(file, subject), generate_latest(registry).decode(), "the metrics file")
    except RunFolderError as error:
        return (str(error),)
    return ()


def describe_figures(folder: Path) -> bytes:
    """Return the figures of a finished run in the text format of Prometheus.

    Args:
        folder: The run folder.

    Raises:
        RunFolderError: The folder does not hold a finished run.
    """
    run = RunFolder(folder)
    manifest = run.read_finished_manifest()
    finished = (folder / SUMMARY).stat().st_mtime
    subject = RunSubject(**(manifest.get("deployment") or {}))
    return generate_latest(collect_figures(manifest, run.read_json(SUMMARY), subject, finished))


def metrics_path(file: str, subject: RunSubject) -> Path:
    """Return the path of a metrics file, without placeholders.

    Args:
        file: Path with placeholders.
        subject: Subject of the run.

    >>> str(metrics_path("/metrics/assay-{deployment}-{index}.prom", RunSubject("evaluate-handbook", "the handbook/2")))
    '/metrics/assay-evaluate-handbook-the-handbook-2.prom'
    >>> metrics_path("/metrics/{deployment}.prom", RunSubject()).name
    'none.prom'
    """
    path = Path(file).expanduser().absolute()
    names = {"deployment": subject.name, "index": subject.index}
    texts = {name: _NOT_IN_NAMES.sub("-", text).strip("-.") or _NO_NAME for name, text in names.items()}
    return path.with_name(path.name.format(**texts))


def collect_figures(
    manifest: Mapping[str, Any], summary: Mapping[str, Any], subject: RunSubject, finished: float
) -> CollectorRegistry:
    """Return the figures of a finished run as gauges.

    Args:
        manifest: Content of run.json.
        summary: Content of summary.json.
        subject: Subject of the run.
        finished: Time at which the run finished, in seconds since 1970.
    """
    gauges = _Gauges(subject)
    gauges.set("rows", "Rows that were evaluated.", summary["rows"])
    gauges.set("bad_rows", "Rows that were left out because they are bad.", manifest["bad_row_count"])
    gauges.set("run_seconds", "Wall time of the run before its report was written.", manifest["seconds"])
    gauges.set("run_finished_timestamp_seconds", "Time at which the run finished, since 1970.", finished)
    gauges.set("run_failed", "1 if too many cells of a metric failed, else 0.", int(bool(manifest["failures"])))
    for metric in summary["metrics"]:
        key = metric["metric"]
        for state in _STATES:
            gauges.set("cells", "Cells by metric and state.", metric[state], metric=key, state=state)
        distribution = metric["distribution"] or {}
        interval = distribution.get("interval") or {}
        gauges.set("mean", "Mean score.", distribution.get("mean"), metric=key)
        gauges.set("mean_low", "Lower end of the interval of the mean.", interval.get("low"), metric=key)
        gauges.set("mean_high", "Upper end of the interval of the mean.", interval.get("high"), metric=key)
    for stage, entry in manifest["stages"].items():
        gauges.set("questions", "Distinct questions to the models.", entry["questions"], stage=stage)
        gauges.set("cached_questions", "Questions whose answers were cached.", entry["stored"], stage=stage)
        gauges.set("requests", "Requests sent to servers, with retries.", entry["requests"], stage=stage)
        for kind in ("prompt", "output"):
            gauges.set("tokens", "Tokens sent and generated.", entry[f"{kind}_tokens"], stage=stage, kind=kind)
    return gauges.registry


class _Gauges:
    """Gauges in a registry of their own, all with the labels of the subject."""

    def __init__(self, subject: RunSubject) -> None:
        self.registry = CollectorRegistry()
        self._subject = {"deployment": subject.name, "index": subject.index}
        self._gauges: dict[str, Gauge] = {}

    def set(self, name: str, description: str, value: float | None, **labels: str) -> None:
        """Set a value; a figure that the run does not have is left out."""
        if value is None:
            return
        labels = {**self._subject, **labels}
        if name not in self._gauges:
            self._gauges[name] = Gauge(f"assay_{name}", description, list(labels), registry=self.registry)
        self._gauges[name].labels(**labels).set(value)
