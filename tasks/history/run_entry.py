"""Read the entry of a run in the history from its run folder."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.errors import RunFolderError
from metric_core.stages import Stage
from tasks.calibration.certificates import CERTIFICATE, flips_of
from tasks.comparison.run_differences import TEST_COLUMNS
from tasks.history import recorded_run as keys
from tasks.history.recorded_run import RecordedMetric, RecordedRun, RunCost
from tasks.runs.file_checks import MANIFEST_SCHEMA, check_json
from tasks.runs.judge_drift import find_changed_judges, read_findings
from tasks.runs.judge_roles import judge_roles
from tasks.runs.outcome import RunOutcome, read_outcome
from tasks.runs.run_folder import FORMAT, MANIFEST, STAGES, SUMMARY, RunFolder
from tasks.runtime.stored_data import is_stored
from tasks.runtime.wording import NO_REVISION

_DIGITS = 12
_MOST_LABELS, _LONGEST_LABEL = 8, 60
_KEPT = ("diagnosis", "anchor", "agreement", "cost", "throughput", CERTIFICATE)


def evaluation_name(name: str | None, deployment: str, source: str | None) -> str:
    """Return the name by which the history of an evaluation is kept.

    Args:
        deployment: Name of the deployment; empty for a run that was started manually.

    >>> evaluation_name(None, "evaluate-handbook", "answers.jsonl"), evaluation_name(None, "", "data/answers.jsonl")
    ('evaluate-handbook', 'answers')

    Data from Python have no name: no history is kept of them unless the configuration has one.

    >>> evaluation_name(None, "", "tables/sources/data-9f86d081884c7d65.parquet")
    ''
    """
    if is_stored(source or ""):
        return name or deployment
    stem = re.sub(r"\W+", "-", PurePosixPath(source or "").stem).strip("-").lower()
    return name or deployment or stem or "evaluation"


def read_run_entry(folder: Path) -> RecordedRun:
    """Return the entry of a run that finished, failed or stopped.

    Raises:
        RunFolderError: The folder is not a run folder, its run did not end, or a file in it is damaged.
    """
    run = RunFolder(folder.expanduser().absolute())
    manifest = run.read_json(MANIFEST)
    status = manifest.get("status")
    if status not in keys.STARTED:
        raise RunFolderError(
            f"the run in {run.path} did not end (its status is {status!r}): it is in progress, or was killed"
        )
    if manifest.get("format") != FORMAT:
        raise RunFolderError(
            f"the run in {run.path} has the format {manifest.get('format')!r}, this rag-assay reads {FORMAT}"
        )
    summary: Mapping[str, Any] = {}
    if status == "completed":
        check_json(manifest, MANIFEST_SCHEMA, run.path / MANIFEST)
        summary = run.read_json(SUMMARY)
    outcome = read_outcome(run.path)
    try:
        return _build(run.path, manifest, summary, outcome)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunFolderError(f"{run.path / MANIFEST} cannot be read: {type(error).__name__}: {error}") from error


def _build(
    folder: Path, manifest: Mapping[str, Any], summary: Mapping[str, Any], outcome: RunOutcome | None
) -> RecordedRun:
    deployment, config = manifest.get("deployment") or {}, manifest.get("config") or {}
    start = manifest.get("start") or {}
    source, status = manifest.get("source"), str(manifest["status"])
    name = (outcome.name if outcome is not None else None) or manifest.get("name") or config.get("name")
    return RecordedRun(
        run_id=str(manifest["run_id"]),
        name=evaluation_name(name, deployment.get("name") or "", source),
        created=_read_time(manifest["created"]),
        folder=str(folder),
        status=status,
        reason=str(manifest.get("reason") or ""),
        source=str(source or ""),
        deployment=str(deployment.get("name") or ""),
        rows=int(manifest.get("rows") or 0),
        bad_rows=int(manifest.get("bad_row_count") or 0),
        versions={key: version for key, version in _versions(folder, manifest, deployment, config) if version},
        cost=_cost(manifest),
        failures=tuple(map(str, manifest.get("failures") or ())),
        metrics=tuple(_metrics(manifest, summary)),
        outcome=outcome,
        details={key: summary[key] for key in _KEPT if key in summary}
        | {key: manifest[key] for key in _KEPT if manifest.get(key) is not None},
        trigger=start.get("trigger") or ("" if outcome is None else outcome.trigger),
        due=_read_time(start["due"]) if start.get("due") else None,
    )


def _read_time(text: Any) -> datetime:
    time = datetime.fromisoformat(str(text))
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _versions(
    folder: Path, manifest: Mapping[str, Any], deployment: Mapping[str, Any], config: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    yield keys.SYSTEM, config.get("system_version")
    yield keys.INDEX, " ".join(filter(None, (deployment.get("index"), deployment.get("version"))))
    judge, roles = manifest.get("judge") or {}, judge_roles(manifest)
    if judge.get("backend") != "none":
        yield keys.JUDGE, describe_model(judge)
        yield keys.JUDGES, _judges(roles)
        served = dict.fromkeys(shorten_digest(str(each.get("served") or "")) for each in roles or [judge])
        yield keys.SERVED, " ".join(filter(None, served))
        yield keys.JUDGED, _answers_again(manifest)
        yield keys.CERTIFIED, _certified(manifest)
    for key, entry in ((keys.PROMPTS, "prompts"), (keys.ASKED, "judge_fingerprints")):
        yield key, {kind: str(digest)[:_DIGITS] for kind, digest in (manifest.get(entry) or {}).items()}
    yield keys.EMBEDDER, describe_model(manifest.get("embedder") or {})
    if manifest["status"] == "completed":  # otherwise the tables are those of an earlier run in the folder
        yield keys.DATA, _digest_test(folder / STAGES / f"{Stage.SAMPLES}.parquet")
        digests = "".join(manifest["stages"].get(Stage.SAMPLES, {}).get("digests") or ())
        yield keys.ANSWERS, digests and hashlib.sha256(digests.encode()).hexdigest()[:_DIGITS]
    yield keys.FORMULAS, str(manifest.get("formulas") or "")[:_DIGITS]
    yield keys.SOFTWARE, (manifest.get("versions") or {}).get("rag-assay")


def _answers_again(manifest: Mapping[str, Any]) -> str:
    """Return whether the judges answer about anchor rows as they did; empty if they were not asked again."""
    found = read_findings(manifest)
    others = " and ".join(f"{each['judge']} since {each['told']['since'][:10]}" for each in find_changed_judges(found))
    return f"others of {others}" if others else "as they were" if found else ""


def _certified(manifest: Mapping[str, Any]) -> str:
    """Return the faults in the certificate of the judge; empty without a certificate."""
    entry = manifest.get(CERTIFICATE)
    return "" if entry is None else ", ".join(flips_of(entry).faults) or "no fault"


def _judges(roles: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the judges of each group of questions as text."""
    groups: dict[str, list[str]] = {}
    for role in roles:
        for group in role["groups"]:
            groups.setdefault(group, []).append(describe_model(role))
    return {group: " and ".join(names) for group, names in groups.items()}


def describe_model(model: Mapping[str, Any]) -> str:
    """Return the version of a model as runs are recorded with it: its name and its revision.

    Args:
        model: Fields of its identity.
    """
    return " ".join(
        str(model[name]) for name in ("model", "revision") if model.get(name) not in (None, "", NO_REVISION)
    )


def shorten_digest(digest: str) -> str:
    """Return a digest as versions of recorded runs hold it."""
    return digest[:_DIGITS]


def _digest_test(samples: Path) -> str:
    """Return a digest of the columns that define the test, which does not depend on the order of the rows.

    Raises:
        RunFolderError: The table cannot be read.
    """
    total = 0
    try:
        with pq.ParquetFile(samples, page_checksum_verification=True) as file:
            columns = [name for name in ("row_id", *TEST_COLUMNS) if name in file.schema_arrow.names]
            for batch in file.iter_batches(columns=columns):
                for row in batch.to_pylist():
                    content = json.dumps(row, sort_keys=True, default=str).encode("utf-8", "replace")
                    total += int.from_bytes(hashlib.sha256(content).digest(), "big")
    except (pa.ArrowException, OSError) as error:
        raise RunFolderError(f"the table {samples} cannot be read ({error})") from error
    return f"{total % 2**256:064x}"[:_DIGITS]


def _cost(manifest: Mapping[str, Any]) -> RunCost:
    usage = manifest.get("usage") or {}
    seconds = manifest.get("seconds")
    return RunCost(
        seconds=None if seconds is None else float(seconds),
        judge_seconds=round(float(usage.get("seconds") or 0), 3),
        **{
            key: int(usage.get(key) or 0)
            for key in ("questions", "stored", "requests", "prompt_tokens", "output_tokens")
        },
    )


def _metrics(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> Iterator[RecordedMetric]:
    bounds = {entry["key"]: entry.get("bounds") for entry in manifest.get("metrics") or ()}
    for entry in summary.get("metrics") or ():
        yield from _all_rows(entry, bounds)
    for column in summary.get("slices") or ():
        for one in column["slices"]:
            for entry in one["metrics"]:
                yield _metric(entry, bounds, (column["column"], one["value"]))


def _all_rows(entry: Mapping[str, Any], bounds: Mapping[str, Any]) -> Iterator[RecordedMetric]:
    """Yield a metric over all rows; of one whose rows have different scales or labels, also each of them."""
    yield _metric(entry, bounds)
    scales, labels = entry.get("scales") or {}, entry.get("categories") or {}
    for scale, distribution in scales.items() if entry.get("distribution") is None else ():
        counts = {"scored": distribution["count"], "undefined": 0, "failed": 0, "distribution": distribution}
        yield _metric({**entry, "metric": f"{entry['metric']} on {scale}", **counts}, {})
    for label, count in sorted(labels.items(), key=lambda item: -item[1])[:_MOST_LABELS]:
        rows = sum(labels.values())
        counts = {"scored": rows, "undefined": 0, "failed": 0, "distribution": {"mean": count / rows}}
        name = f"{entry['metric']} = {label[:_LONGEST_LABEL]}"
        yield _metric({**entry, "metric": name, "direction": "neither", **counts}, {name: (0.0, 1.0)})


def _metric(entry: Mapping[str, Any], bounds: Mapping[str, Any], place: tuple[str, str] = ("", "")) -> RecordedMetric:
    distribution = entry.get("distribution") or {}
    interval = distribution.get("interval") or {}
    limits = bounds.get(entry["metric"])
    return RecordedMetric(
        metric=entry["metric"],
        direction=entry["direction"],
        mean=distribution.get("mean"),
        low=interval.get("low"),
        high=interval.get("high"),
        deviation=distribution.get("deviation"),
        scored=entry["scored"],
        undefined=entry["undefined"],
        failed=entry["failed"],
        bounds=(limits[0], limits[1]) if limits else None,
        slice_column=place[0],
        slice=place[1],
    )
