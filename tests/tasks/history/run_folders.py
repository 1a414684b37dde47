"""Run folders for tests of the history, with the files that it reads."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.run_records import distribution_json, metric_json, record_json
from tests.tasks.builders import samples_table

START = datetime(2026, 3, 1, 6, tzinfo=UTC)
JUDGE = {"backend": "server", "model": "judge-8b", "revision": "r1", "served": "feed" * 8}


def write_run(
    folder: Path,
    night: int,
    *,
    mean: float = 0.8,
    name: str = "nightly",
    outcome: Mapping[str, Any] | None = None,
    questions: Sequence[str] = ("Who?", "Why?"),
    **manifest: Any,
) -> Path:
    """Write the folder of a finished run of a night, and return it."""
    (folder / "stages").mkdir(parents=True, exist_ok=True)
    content = {
        "format": 1,
        "run_id": f"run-{night}",
        "created": (START + timedelta(days=night)).isoformat(),
        "status": "completed",
        "name": name,
        "source": "data/answers.jsonl",
        "config": {"system_version": "1.0"},
        "judge": JUDGE,
        "embedder": None,
        "language": {},
        "judge_fingerprints": {"verdict": "a" * 64},
        "prompts": {"verdict": "b" * 64},
        "formulas": "f" * 32,
        "versions": {"rag-assay": "0.1.0"},
        "deployment": {"name": "monitor", "index": "handbook", "version": f"1.{night}"},
        "rows": 2,
        "bad_row_count": 1,
        "seconds": 12.5,
        "metrics": [
            {"key": "faithfulness", "name": "faithfulness", "direction": "higher", "parameters": {}, "bounds": [0, 1]}
        ],
        "stages": {"samples": {"digests": [f"digest-{night}"]}},
        "usage": {"questions": 40, "stored": 30, "requests": 10, "prompt_tokens": 900, "output_tokens": 10},
        "failures": [],
        **manifest,
    }
    interval = {"low": mean - 0.1, "high": mean + 0.1}
    distribution = distribution_json(mean, interval=interval, deviation=0.2)
    metric = metric_json("faithfulness", undefined=1, failed=1, distribution=distribution)
    rows = [{"user_input": question, "response": f"Because {night}."} for question in questions]
    pq.write_table(samples_table(*rows), folder / "stages" / "samples.parquet")
    (folder / "run.json").write_text(json.dumps(record_json(content)), encoding="utf-8")
    (folder / "summary.json").write_text(json.dumps({"rows": 2, "metrics": [metric]}), encoding="utf-8")
    if outcome is not None:
        (folder / "outcome.json").write_text(json.dumps(outcome), encoding="utf-8")
    return folder


def write_nights(root: Path, count: int) -> None:
    """Write the folders of consecutive nights."""
    for night in range(count):
        write_run(root / f"night-{night}", night)


def outcome_of(baseline: int | None, **entries: Any) -> dict[str, Any]:
    """Return the content of an outcome.json whose baseline is the run of a night."""
    named = {"run_id": f"run-{baseline}", "folder": "", "version": ""}
    return {
        "format": 1,
        "name": "nightly",
        "trigger": "schedule",
        "baseline": None if baseline is None else named,
        **entries,
    }
