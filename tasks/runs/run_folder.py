"""A run folder: everything about a run in files that other programs can read.

`run.json` (what ran, with what, what it cost), `stages/*.parquet`, `scores.parquet`, `summary.json` and
`report.html`. Every file appears whole or not at all.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from metric_core.errors import RunFolderError
from metric_core.metric import MetricRequest
from metric_core.records import Score, Status
from metric_core.stages import Stage
from metric_core.statistics.summary import MetricSummary, summarize
from tasks.runtime import atomic_files
from tasks.runtime.atomic_files import atomic_file, atomic_write, is_temporary
from tasks.tables.table_store import StageRef, concatenate

FORMAT = 1
MANIFEST, SUMMARY, SCORES, STAGES, REPORT = "run.json", "summary.json", "scores.parquet", "stages", "report.html"
CALIBRATION = "calibration.json"
"""Measured agreement of the judge with people, where rows of the run are labelled."""
LOCK = ".lock"
_OWN_FILES = {MANIFEST, SUMMARY, SCORES, STAGES, REPORT, CALIBRATION, LOCK}


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Create the run folder, or take over that of an earlier run to replace it, and lock it for the block.

    Args:
        folder: Run folder.

    Raises:
        RunFolderError: The folder holds other files, another run is writing into it, or it cannot be written.
    """
    lock = FileLock(folder / LOCK)
    with atomic_files.translate_write_errors(f"the run folder {folder}", RunFolderError):
        _prepare(folder)
        try:
            lock.acquire(blocking=False)
        except Timeout as error:
            message = f"another run is writing into {folder}. Wait for it, or name another folder."
            raise RunFolderError(message) from error
    try:
        with translate_write_errors(folder):
            (folder / CALIBRATION).unlink(missing_ok=True)
        yield
    finally:
        lock.release()


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = {path.name for path in folder.iterdir() if not is_temporary(path.name)}
    foreign = sorted(names - _OWN_FILES)
    if foreign and MANIFEST not in names:
        raise RunFolderError(
            f"the folder {folder} holds files that are not a run's ({', '.join(foreign[:3])}). "
            "Name an empty folder, one that does not exist yet, or that of an earlier run."
        )
    (folder / STAGES).mkdir(exist_ok=True)


def write_tables(folder: Path, refs: Mapping[Stage, Sequence[StageRef]]) -> None:
    """Write the tables of all stages and remove those of an earlier run's other stages.

    Args:
        folder: Run folder.
        refs: References to the tables of the shards, by stage.
    """
    for stage, shards in refs.items():
        target = folder / SCORES if stage is Stage.AGGREGATION else folder / STAGES / f"{stage}.parquet"
        with atomic_file(target) as temporary:
            concatenate(shards, str(temporary))
    for path in (folder / STAGES).glob("*.parquet"):
        if path.stem not in refs:
            path.unlink()


def summarize_scores(folder: Path, requests: Sequence[MetricRequest]) -> list[MetricSummary]:
    """Summarize every metric from the score table of a run folder, with one batch of it in memory at a time.

    Args:
        folder: Run folder.
        requests: Metrics to summarize.
    """
    return [summarize(request.key, request.metric.direction, _scores(folder, request.key)) for request in requests]


def _scores(folder: Path, metric: str) -> Iterator[Score]:
    for batch in read_cells(folder, metric, ("status", "value", "label", "reason")):
        for row in batch.to_pylist():
            yield Score(Status(row["status"]), row["value"], row["label"], row["reason"])


def read_cells(folder: Path, metric: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Iterate over the cells of a metric in the score table of a run folder, in batches.

    Args:
        folder: Run folder.
        metric: Key of the metric.
        columns: Columns of the score table to read besides `metric`.
    """
    with pq.ParquetFile(folder / SCORES) as file:
        for batch in file.iter_batches(columns=["metric", *columns]):
            yield batch.filter(pc.equal(batch.column("metric"), metric))


def write_summary(
    folder: Path, rows: int, summaries: Sequence[MetricSummary], more: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write summary.json.

    Args:
        folder: Run folder.
        rows: Number of rows of the run.
        summaries: Summaries of the metrics.
        more: Further sections by name; empty ones are left out.
    """
    content = {"rows": rows, "metrics": [asdict(summary) for summary in summaries]}
    write_json(folder / SUMMARY, content | {name: section for name, section in more.items() if section})


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file whole or not at all.

    Args:
        path: Target file.
        content: JSON object; values that JSON lacks are written as their `str`.

    Raises:
        ValueError: The content holds NaN or an infinity.
    """
    text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False, default=str) + "\n"
    # The note about a row that was left out because its text is not UTF-8 must be writable.
    atomic_write(path, text, errors="backslashreplace")


def translate_write_errors(folder: Path) -> AbstractContextManager[None]:
    """Raise the errors of a block that writes into a run folder as errors that name the folder.

    Args:
        folder: Run folder.

    Raises:
        RunFolderError: A file cannot be written.
    """
    advice = "Check the folder and its disk, and run again: finished answers and tables are reused."
    return atomic_files.translate_write_errors(f"the run folder {folder}", RunFolderError, advice)


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """Read a JSON file of a run folder.

    Args:
        folder: Run folder.
        name: Name of the file.

    Raises:
        RunFolderError: The folder lacks the file, or the file is damaged.
    """
    try:
        content = json.loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunFolderError(f"{folder} is not a run folder: it has no {name}") from error
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{folder / name} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise RunFolderError(f"{folder / name} cannot be read: expected a JSON object")
    return content


def read_finished_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest (`run.json`) of a finished run.

    Args:
        folder: Run folder.

    Raises:
        RunFolderError: The folder is not a run folder, or its run did not finish or has another format.
    """
    manifest = read_json(folder, MANIFEST)
    if (found := manifest.get("format")) != FORMAT:
        raise RunFolderError(
            f"the run in {folder} has the format {found!r}, this rag-assay reads {FORMAT}. "
            "Evaluate its source again with `assay run`."
        )
    if (status := manifest.get("status")) != "completed":
        raise RunFolderError(
            f"the run in {folder} is not finished (its status is {status!r}). "
            "Start it again with `assay run`; finished stage tables are reused."
        )
    return manifest
