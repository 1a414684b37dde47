"""Run folders whose rows are divided into slices."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from metric_core.declarations.metric import MetricRequest
from metric_core.records import Direction, Score
from metric_core.stages import Stage
from tasks.findings.slices.slice_summaries import SliceRecords, summarize_slices_of_run
from tasks.runs.row_grouping import columns_with
from tasks.runs.row_slicing import read_slices
from tasks.runs.run_folder import RunFolder
from tests.tasks.reports import folders

METRICS: Mapping[str, Mapping[str, Any]] = {
    "faithfulness": {"direction": "higher", "bounds": [0.0, 1.0]},
    "context_recall": {"direction": "higher", "bounds": [0.0, 1.0]},
    "answer_relevancy": {"direction": "higher", "bounds": [0.0, 1.0]},
    "noise_sensitivity": {"direction": "lower", "bounds": [0.0, 1.0], "parameters": {"mode": "relevant"}},
    "nv_accuracy": {"direction": "higher", "bounds": [0.0, 1.0], "language_model": True},
}
SIZES: Mapping[str | None, int] = {
    "travel": 60,
    "vacation": 90,
    "expenses": 70,
    "it-security": 45,
    "on-call": 12,
    "returns": 3,
    None: 20,
}
CUSTOMERS = ("Adler", "Birch & Sons", "<b>Caro</b>", "Dunlin")


def write_run(folder: Path, poor: Iterable[str | None] = ("travel",), seed: int = 1, **manifest: Any) -> Path:
    """Write a run of three hundred rows in seven slices by topic and four by customer, with its slices in the summary.

    Args:
        folder: Path of the run folder.
        poor: Topics whose scores are low.
        seed: Seed of the scores.
        **manifest: Further entries of the manifest.
    """
    generator = np.random.default_rng(seed)
    scores, samples = {}, []
    rows = [(topic, i) for topic, size in SIZES.items() for i in range(size)]
    for number, (topic, i) in enumerate(rows):
        row_id, level = f"{topic or 'none'}-{i:02}", 0.55 if topic in poor else 0.9
        values = np.clip(np.round(level + generator.normal(0, 0.15, 4), 2), 0, 1).tolist()
        scores[row_id] = {
            "faithfulness": Score.scored(values[0]),
            "context_recall": Score.scored(float(values[1] > 0.75)),
            "answer_relevancy": Score.failed("no usable reply") if i == 1 else Score.scored(values[2]),
            "noise_sensitivity": Score.scored(round(1 - values[3], 2)),
            "nv_accuracy": Score.undefined("needs a language-model judge"),
        }
        topic_column = "" if topic is None else f'"topic": "{topic}", '
        samples.append(
            {
                "row_id": row_id,
                "row_number": number + 1,
                "user_input": f"Question {i} about {topic or 'something'}?",
                "response": f"Answer {i}.",
                "retrieved_contexts": [f"Passage {number}."],
                "reference": f"Reference {i}.",
                "extras": f'{{{topic_column}"customer": "{CUSTOMERS[number % 4]}"}}',
            }
        )
    config = {"config": {"slices": ["topic", "customer"]}, "status": "completed", **manifest}
    folders.write_run(folder, scores, {Stage.SAMPLES: samples}, METRICS, config)
    add_slices(folder, ["topic", "customer"])
    return folder


def add_slices(path: Path, columns: Iterable[str]) -> None:
    """Add the slices by these columns to the summary of a run."""
    folder = RunFolder(path)
    requests = [_request(entry) for entry in folder.read_json("run.json")["metrics"]]
    columns = list(columns)
    slices = read_slices(folder.read_samples(columns_with(*columns)), columns)
    found = SliceRecords(summarize_slices_of_run(folder, requests, slices))
    folder.write_summary(folder.read_summary().with_findings(found))


def _request(entry: Mapping[str, Any]) -> MetricRequest:
    """Return what summaries read of a metric, which need not be a registered one."""
    metric = SimpleNamespace(direction=Direction(entry["direction"]))
    bounds = None if entry.get("bounds") is None else tuple(entry["bounds"])
    return cast("MetricRequest", SimpleNamespace(key=entry["key"], metric=metric, bounds=bounds))
