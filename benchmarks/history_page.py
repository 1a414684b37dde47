"""Measure the history of 1,000 simulated runs: recording, rebuilding, the size of the page, and how fast it opens.

    python -m benchmarks.history_page [--runs N] [--slices N] [--page FILE] [--no-browser]

The run folders are real files with the metrics of a default evaluation. The page opens in the Chromium of the browser
tests; the time is that of `load`, after the script has drawn all charts.
"""

import argparse
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

from metric_core.stages import Stage
from tasks.history.catalogue import Catalogue
from tasks.history.incident import IncidentFinding
from tasks.history.recorded_run import RecordedRun, missed_run_id
from tasks.reports.history.history_page import write_history_page
from tasks.rows.records import build_table
from tests.run_records import distribution_json, metric_json, record_json

NAME = "handbook-nightly"
START = datetime(2023, 3, 1, 4, 30, tzinfo=UTC)
ROWS = 500
METRICS = {
    "faithfulness": (0.86, "higher"),
    "answer_relevancy": (0.74, "higher"),
    "context_precision": (0.71, "higher"),
    "context_utilization": (0.69, "higher"),
    "context_recall": (0.88, "higher"),
    "context_relevancy": (0.31, "higher"),
    "context_entity_recall": (0.62, "higher"),
    "answer_similarity": (0.81, "higher"),
    "answer_correctness": (0.66, "higher"),
    "factual_correctness": (0.58, "higher"),
    "noise_sensitivity": (0.18, "lower"),
    "nv_accuracy": (0.79, "higher"),
    "nv_context_relevance": (0.73, "higher"),
    "nv_response_groundedness": (0.83, "higher"),
}


def write_runs(root: Path, count: int, slices: int = 0) -> None:
    """Write the folders of simulated nights: changes of all kinds of versions, a drop, failed nights, baselines."""
    numbers = random.Random(7)
    baseline: str | None = None
    for night in range(count):
        if numbers.random() < 0.01 and night:
            continue  # a night that did not run
        manifest, summary, outcome = night_content(night, count, baseline, numbers, slices)
        folder = root / f"{START + timedelta(days=night):%Y%m%d-%H%M%S}-handbook"
        (folder / "stages").mkdir(parents=True)
        if outcome is not None:
            if outcome["accepted"]:
                baseline = manifest["run_id"]
            outcome["baseline"] = baseline and {"run_id": baseline, "folder": "", "version": ""}
            (folder / "outcome.json").write_text(json.dumps(outcome), encoding="utf-8")
            (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
            rows = [{"row_id": f"r{row}", "row_number": row, "user_input": f"Question {row}?"} for row in range(20)]
            table = build_table(Stage.SAMPLES, rows)
            pq.write_table(table, folder / "stages" / "samples.parquet")
            (folder / "report.html").write_text("<!doctype html><title>A report</title>", encoding="utf-8")
        (folder / "run.json").write_text(json.dumps(record_json(manifest)), encoding="utf-8")


def night_content(
    night: int, count: int, baseline: str | None, numbers: random.Random, slices: int
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any] | None]:
    """Return run.json, summary.json and outcome.json of a night; no outcome of a night that failed."""
    share = night / max(1, count - 1)
    dropped = 0.55 < share < 0.62
    release = int(share * 9)
    judge = "qwen3-8b" if share < 0.78 else "qwen3-14b"
    failed = numbers.random() < 0.008 and 0 < night < count - 1
    metrics = [
        _metric(key, share, numbers, lowered=dropped and key in ("faithfulness", "context_recall")) for key in METRICS
    ]
    summary: dict[str, Any] = {"rows": ROWS, "metrics": metrics}
    if slices:
        summary["slices"] = [_slices(metrics, slices, numbers)]
    asked = round(9000 * (0.15 + 0.3 * numbers.random()))
    manifest = {
        "format": 1,
        "run_id": f"{numbers.getrandbits(128):032x}",
        "created": (START + timedelta(days=night, seconds=numbers.randrange(200))).isoformat(),
        "status": "failed" if failed else "completed",
        "reason": "the judge at http://judge:8000/v1 cannot be reached: connection refused" if failed else "",
        "name": NAME,
        "source": "s3://rag/nightly.jsonl",
        "config": {"system_version": f"2025.{release + 1}"},
        "judge": {"backend": "server", "model": judge, "revision": "main", "served": f"{judge:x<12}"},
        "embedder": {"model": "all-MiniLM-L6-v2", "revision": "int8"},
        "language": {},
        "judge_fingerprints": {"verdict": f"{judge}-1", "claims": f"{judge}-2"},
        "prompts": {"verdict": "p1" if share < 0.33 else "p2", "claims": "p1"},
        "versions": {"rag-assay": "0.1.0"},
        "deployment": {"name": "monitor-handbook", "index": "handbook", "version": f"1.{int(share * 30)}"},
        "rows": ROWS,
        "bad_row_count": 0,
        "seconds": round(140 + 60 * numbers.random() + 80 * (judge == "qwen3-14b"), 1),
        "metrics": [
            {"key": key, "name": key, "direction": direction, "parameters": {}, "bounds": [0.0, 1.0]}
            for key, (_, direction) in METRICS.items()
        ],
        "stages": {"samples": {"digests": [f"{night:x}"]}},
        "usage": {
            "questions": 9000,
            "stored": 9000 - asked,
            "requests": asked,
            "prompt_tokens": asked * 640,
            "output_tokens": asked * 3,
            "seconds": asked * 0.2,
        },
        "failures": [],
    }
    if failed:
        return manifest, summary, None
    accepts = baseline is None or numbers.random() < 3 / count
    outcome: dict[str, Any] = {
        "format": 1,
        "name": NAME,
        "trigger": "schedule",
        "gate": "failed" if dropped else "inconclusive" if numbers.random() < 0.01 else "passed",
        "accepted": accepts and not dropped,
    }
    if dropped:
        outcome["message"] = "faithfulness.mean >= 0.8 failed: 0.79 (0.76 to 0.81) over 500 rows"
        since = START + timedelta(days=math.ceil(0.55 * (count - 1)))
        sentence = (
            f"faithfulness is worse since {since:%A}, {since.day} {since:%B}; down 0.04 to 0.09. The system changed."
        )
        outcome["alarms"] = [{"metric": "faithfulness", "sentence": sentence, "drop": [0.04, 0.09], "cause": "system"}]
    return manifest, summary, outcome


def _metric(key: str, share: float, numbers: random.Random, *, lowered: bool) -> dict[str, Any]:
    level, direction = METRICS[key]
    sway = 0.02 * math.sin(7 * share + len(key)) + 0.03 * share + numbers.gauss(0, 0.006) - 0.07 * lowered
    mean = min(0.99, max(0.01, level + (sway if direction == "higher" else -sway)))
    half = 1.96 * math.sqrt(mean * (1 - mean) / ROWS) * 0.8
    failed = round(ROWS * (0.2 if 0.3 < share < 0.31 else 0.004 * numbers.random()))
    undefined = round(ROWS * 0.03) if key == "context_entity_recall" else 0
    scored = ROWS - failed - undefined
    interval = {"low": mean - half, "high": mean + half}
    distribution = distribution_json(mean, count=scored, interval=interval, deviation=0.3)
    counts = {"scored": scored, "undefined": undefined, "failed": failed}
    return metric_json(key, direction=direction, distribution=distribution, **counts)


def _slices(metrics: list[dict[str, Any]], count: int, numbers: random.Random) -> dict[str, Any]:
    languages = ["en", "de", "fr", "es", "it", "nl", "pl", "pt", "sv", "da", "fi", "cs"][:count]
    found = []
    for place, language in enumerate(languages):
        rows = max(9, ROWS // (place + 2))
        entries = []
        for metric in metrics:
            mean = min(0.99, max(0.01, metric["distribution"]["mean"] - 0.02 * place + numbers.gauss(0, 0.01)))
            half = 1.96 * math.sqrt(mean * (1 - mean) / rows)
            interval = {"low": max(0.0, mean - half), "high": min(1.0, mean + half)}
            distribution = distribution_json(mean, count=rows, interval=interval)
            entries.append(metric | {"scored": rows, "distribution": distribution})
        found.append({"value": language, "rows": rows, "is_small": rows < 30, "metrics": entries})
    return {"column": "language", "values": count, "merged": 0, "slices": found}


def record_missed(catalogue: Catalogue, count: int) -> None:
    """Record the nights that did not run."""
    took_place = {run.created.date() for run in catalogue.runs(NAME, metrics=False)}
    for due in (START + timedelta(days=night) for night in range(count)):
        if due.date() not in took_place:
            run_id, reason = missed_run_id(NAME, due), "nothing ran it: no worker asked for work"
            catalogue.add(RecordedRun.without_results(run_id, NAME, due, "missed", reason, "schedule"))


def open_incidents(catalogue: Catalogue, count: int) -> None:
    """Record a closed incident during the drop, and an open one in a long history."""
    runs = catalogue.runs(NAME)
    dropped = [run for run in runs if run.outcome is not None and run.outcome.alarms]
    if dropped:
        sentence = "faithfulness is worse than in the accepted baseline; down 0.04 to 0.09"
        finding = IncidentFinding("alarm:faithfulness", "alarm", sentence, dropped[0].created, dropped[0].run_id)
        catalogue.open_incident(NAME, finding)
        catalogue.close_incident(NAME, "alarm:faithfulness", at=dropped[-1].created + timedelta(days=1))
    if count > 100:
        finding = IncidentFinding("source", "source", "the source has not changed for 9 days", runs[-3].created)
        catalogue.open_incident(NAME, finding)


def measure_opening(page: Path, times: int = 7) -> Iterator[dict[str, float]]:
    """Yield the milliseconds until `load`, and until the first paint, of several openings of a page."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 only for the browser

    from tests.browser.chromium import build, find_chromium  # noqa: PLC0415

    chromium = find_chromium() or build()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(chromium.program),
            args=["--no-sandbox", "--disable-gpu"],
            env={**os.environ, **chromium.environment},
        )
        for _ in range(times):
            opened = browser.new_page(viewport={"width": 1280, "height": 900})
            opened.goto(page.as_uri())
            assert opened.locator("#charts svg").count() > 10
            timing = "performance.getEntriesByType('navigation')[0].loadEventEnd"
            paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
            yield {"load": opened.evaluate(timing), "paint": opened.evaluate(paint)}
            opened.close()
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--slices", type=int, default=0)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--no-browser", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary) / "runs"
        write_runs(root, options.runs, options.slices)
        catalogue = Catalogue(str(Path(temporary) / "history.db"))
        started = time.perf_counter()
        report = catalogue.rebuild([root])
        assert not report.skipped, report.skipped[0].problem
        rebuilt = time.perf_counter() - started
        record_missed(catalogue, options.runs)
        open_incidents(catalogue, options.runs)
        page = (options.page or root / "history.html").absolute()
        started = time.perf_counter()
        write_history_page(catalogue, NAME, page)
        written = time.perf_counter() - started
        again = next(root.glob("*/outcome.json")).parent
        started = time.perf_counter()
        catalogue.record(again)
        recorded = time.perf_counter() - started
        size = sum(file.stat().st_size for file in Path(temporary).glob("history.db*"))
        print(f"runs: {report.recorded} recorded, {len(report.skipped)} skipped")
        print(f"rebuild: {rebuilt:.2f} s; record one more: {recorded * 1000:.0f} ms; database {size / 1e6:.2f} MB")
        print(f"page: {page.stat().st_size / 1e6:.3f} MB, written in {written:.2f} s")
        if not options.no_browser:
            found = list(measure_opening(page))
            for what in ("load", "paint"):
                values = sorted(each[what] for each in found)
                print(f"{what}: median {statistics.median(values):.0f} ms, slowest {values[-1]:.0f} ms")


if __name__ == "__main__":
    main()
