"""Evaluate the anchor of a run into its folder: rows that never change, judged by the judge of the day.

Answers about the anchor are cached; a few are asked for again, to see that the judge still answers as it did. A judge
that cannot answer about the anchor does not take the results of the run away: the anchor's entry then says why it has
none.
"""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flows.execution.anchor_repeats import EarlierRepeats, ask_again, keep_findings
from flows.execution.engine import compute_rows
from flows.execution.read_source import read_source
from flows.execution.run import Run
from flows.execution.run_record import build_manifest
from flows.execution.run_writing import write_run_folder
from flows.execution.uniform_scores import is_suspiciously_uniform
from flows.planning.anchor import AnchorPlan, plan_anchor
from metric_core.calibration.calibrate import measure_human_agreement
from metric_core.errors import AssayError
from metric_core.statistics.resampling import SEED
from tasks.calibration.calibration_files import figure_to_dict
from tasks.calibration.label_pairing import pair_labels
from tasks.rows.computed_tables import RunTables
from tasks.runs.finished_run import FinishedRun
from tasks.runs.judge_drift import ASKED_AGAIN
from tasks.runs.run_folder import ANCHOR, SUMMARY, RunFolder


def evaluate_anchor(run: Run, tables: RunTables) -> dict[str, Any] | None:
    """Evaluate the anchor of a run, write its run folder below that of the run, and return its entry in run.json.

    Args:
        tables: The tables of the run, whose stages are computed.

    Returns:
        The entry; None for a run without an anchor. With `reason` in it, the anchor has no scores.
    """
    settings = run.plan.anchor
    if settings is None:
        return None
    try:
        return _evaluate(run, tables, plan_anchor(run.plan, settings))
    except AssayError as error:
        reason = str(error)
        return {
            "source": settings.source,
            "reason": reason,
            ASKED_AGAIN: keep_findings(EarlierRepeats.of_run(run), reason),
        }


def missing_scores(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a sentence if the anchor of a run has no scores.

    Args:
        entry: Entry of the anchor in run.json; empty without an anchor.
    """
    if "reason" not in entry:
        return ()
    return (f"the anchor has no scores, so a change of the judge will not show: {entry['reason']}",)


def anchor_warnings(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the warnings of a run about its anchor.

    Args:
        entry: Entry of the anchor in run.json.
    """
    if missing := missing_scores(entry):
        return missing
    unlabelled = {key: found["reason"] for key, found in entry["agreement"].items() if "reason" in found}
    found = [
        f"the judge is not compared with the labels of {key} in the anchor: {reason}"
        for key, reason in unlabelled.items()
    ]
    if (reason := (entry[ASKED_AGAIN] or {}).get("reason")) is not None:
        found.append(f"no anchor row was asked about again, so another judge of the same name will not show: {reason}")
    return tuple(found)


def _evaluate(run: Run, of_run: RunTables, anchor: AnchorPlan) -> dict[str, Any]:
    started = time.monotonic()
    folder = RunFolder(run.folder.path / ANCHOR)
    manifest = {
        **run.manifest,
        **build_manifest(anchor.run, run.models),
        "run_id": f"{run.manifest['run_id']}-{ANCHOR}",
        "anchor_of": {"run_id": run.manifest["run_id"], "folder": str(run.folder.path)},
    }
    own = replace(run, plan=anchor.run, folder=folder, manifest=manifest)
    with folder.lock():
        read = read_source(anchor.run)
        tables = compute_rows(own, read.refs)
        write_run_folder(own, read, tables, {"seconds": round(time.monotonic() - started, 3)})
    finished = FinishedRun(folder.path)
    usage = _usage(finished.manifest["usage"])
    earlier = EarlierRepeats.of_run(run)
    is_uniform = is_suspiciously_uniform(of_run, earlier.last_metrics())
    is_new = usage["asked"] > usage["stored"]
    again = ask_again(own, anchor, tables, earlier, is_new=is_new, is_uniform=is_uniform)
    return {
        "source": anchor.settings.source,
        "folder": ANCHOR,
        "rows": finished.manifest["rows"],
        "digest": _digest(finished),
        "seconds": round(time.monotonic() - started, 3),
        "usage": usage,
        "metrics": _means(folder.read_json(SUMMARY)),
        "left_out": {metric: list(columns) for metric, columns in anchor.run.metrics.left_out.items()},
        "agreement": _agreements(finished, anchor),
        ASKED_AGAIN: again,
    }


def _digest(anchor: FinishedRun) -> str:
    """Return the digest of the rows; anchors with the same digest are the same."""
    digests = anchor.manifest["stages"]["samples"]["digests"]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    names = ("questions", "stored", "requests", "prompt_tokens", "cached_tokens", "output_tokens")
    return {"asked": usage["questions"] - usage["stored"]} | {name: usage[name] for name in names}


def _means(summary: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    means = {}
    for metric in summary["metrics"]:
        found = metric["distribution"] or {}
        interval = found.get("interval") or {}
        means[metric["metric"]] = {
            "mean": found.get("mean"),
            "low": interval.get("low"),
            "high": interval.get("high"),
            **{name: metric[name] for name in ("scored", "undefined", "failed")},
        }
    return means


def _agreements(finished: FinishedRun, anchor: AnchorPlan) -> dict[str, dict[str, Any]]:
    """Return the agreement of the judge with the labels of the anchor, by metric."""
    found: dict[str, dict[str, Any]] = {}
    for column, request in anchor.labelled.items():
        try:
            rows = pair_labels(finished, request, anchor.read_labels(column), anchor.rules(column))
        except AssayError as error:
            found[request.key] = {"label": column, "reason": str(error)}
            continue
        figures = measure_human_agreement(rows.judged, SEED).figures
        found[request.key] = {
            "label": column,
            "compared": rows.counts.compared,
            "figures": {name: figure_to_dict(figure) for name, figure in figures.items()},
        }
    return found
