"""Complete the files of run folders that tests write by hand with what their tests do not care about."""

import json
from collections.abc import Mapping
from typing import Any

from tasks.record.run_record import RunRecord
from tasks.record.run_summary import RunSummary
from tasks.runs.judge_roles import groups_of

_IDENTITY = {"backend": "builtin", "model": "m", "revision": "r1"}
_JUDGE = {**_IDENTITY, "note": "a baseline", "language_model": False}
_EMBEDDER = {"backend": "minilm", "model": "MiniLM", "revision": "r2", "dimensions": 384}
_RUN = {
    "format": 1,
    "run_id": "0f0e-run",
    "created": "2026-02-11T14:03:22+00:00",
    "source": "data/handbook.jsonl",
    "config": {},
    "status": "completed",
    "rows": 0,
    "metrics": [],
    "stages": {},
    "usage": {},
    "versions": {"rag-assay": "0.1.0"},
}


def record_json(content: Mapping[str, Any] = {}, **more: Any) -> dict[str, Any]:
    """Return the content of a whole run.json, with entries that are given."""
    found = {**_RUN, **content, **more}
    found["judge"] = {**_JUDGE, **found.get("judge", {})}
    found["language"] = {**_IDENTITY, **found.get("language", {})}
    if found.get("embedder") is not None:
        found["embedder"] = {**_EMBEDDER, **found["embedder"]}
    found.setdefault("bad_row_count", len(found.get("bad_rows", ())))
    found["metrics"] = [_metric(each) for each in found["metrics"]]
    found["calibration"] = _calibration(found.get("calibration") or {})
    if found.get("baseline") is not None:
        found["baseline"] = {"run_id": "accepted", **found["baseline"]}
    if found.get("anchor") is not None:
        found["anchor"] = anchor_json(**found["anchor"])
    kinds = list(found.get("judge_fingerprints", {}))
    alone = {"name": found["judge"]["model"], "groups": groups_of(kinds), "kinds": kinds, **found["judge"]}
    given = found.get("judges", [alone] if found["judge"]["backend"] != "none" else [])
    found["judges"] = [{**_JUDGE, **each} for each in given]
    if "panel" in found:
        found["panel"] = [{**_JUDGE, **each} for each in found["panel"]]
    return found


def _metric(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"key": given.get("name"), "name": given.get("key"), "direction": "higher", "parameters": {}, **given}


def _calibration(given: Mapping[str, Any]) -> dict[str, Any]:
    known = {"created": "2026-11-21T16:04:00+00:00", "source": "labels.jsonl", "compared": 66, "figures": {}}
    known |= {"verdict": "binary"}
    metrics = {key: {**known, **facts} for key, facts in (given.get("metrics") or {}).items()}
    return {"metrics": {}, "not_covered": [], **given, **({"metrics": metrics} if metrics else {})}


def anchor_json(**given: Any) -> dict[str, Any]:
    """Return an anchor, with entries that are given."""
    found = {"source": "data/anchor.jsonl", **given}
    counts = {"low": None, "high": None, "scored": 60, "undefined": 0, "failed": 0}
    if "metrics" in found:
        found["metrics"] = {key: {**counts, **each} for key, each in found["metrics"].items()}
    if found.get("asked_again") is not None:
        changed = {"since": "2026-11-02", "raised": "2026-11-02", "rows": 9, "changed": 3, "sentence": "it changed"}
        judges = [
            {**each, "change": {**changed, **each["change"]} if each.get("change") else None}
            for each in found["asked_again"].get("judges", ())
        ]
        found["asked_again"] = {**found["asked_again"], "judges": judges}
    return found


def make_record(content: Mapping[str, Any] = {}, **more: Any) -> RunRecord:
    """Return a record of a finished run, with entries that are given."""
    return RunRecord.model_validate(record_json(content, **more))


def distribution_json(mean: float = 0.5, **more: Any) -> dict[str, Any]:
    """Return a distribution of a summary."""
    given = {"count": 18, "mean": mean, "interval": None, "median": mean, "deviation": None}
    return {**given, "least": 0.0, "greatest": 1.0, **more}


def metric_json(metric: str, **more: Any) -> dict[str, Any]:
    """Return the summary of a metric."""
    counts = {"scored": 18, "undefined": 0, "failed": 0}
    found = {"metric": metric, "direction": "higher", **counts, "distribution": None, **more}
    return {"scales": {}, "categories": {}, "reasons": {}, **found}


def make_summary(**content: Any) -> RunSummary:
    """Return the summary of a run, with entries that are given."""
    return RunSummary.model_validate(json.loads(json.dumps({"rows": 2, "metrics": [], **content})))
