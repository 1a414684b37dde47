"""A run folder: everything about a run in files that other programs can read.

`run.json` (what ran, with what, what it cost), `stages/*.parquet`, `scores.parquet`, `summary.json` and
`report.html`. Every file is written under a temporary name and renamed.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from tasks.tables.table_store import StageRef, concatenate

FORMAT = 1
MANIFEST, SUMMARY, SCORES, STAGES, REPORT = "run.json", "summary.json", "scores.parquet", "stages", "report.html"
CALIBRATION = "calibration.json"
"""How far the judge agreed with people, where the rows of the run are labelled."""
LOCK = ".lock"
_OURS = {MANIFEST, SUMMARY, SCORES, STAGES, REPORT, CALIBRATION, LOCK}


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Makes the folder, or takes over that of an earlier run, which this one replaces; nobody else may meanwhile.

    Raises:
        RunFolderError: there is something else in it, another run is writing into it, or it can not be written.
    """
    _prepare(folder)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise RunFolderError(f"another run is writing into {folder}. Wait for it, or name another folder.") from error
    except OSError as error:
        raise RunFolderError(f"the run folder {folder} can not be written: {error.strerror or error}") from error
    try:
        with translate_write_errors(folder):
            (folder / CALIBRATION).unlink(missing_ok=True)
        yield
    finally:
        lock.release()


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = sorted(path.name for path in folder.iterdir() if path.name not in _OURS)
        if foreign and not (folder / MANIFEST).exists():
            raise RunFolderError(
                f"the folder {folder} holds files that are not a run's ({', '.join(foreign[:3])}). "
                "Name an empty folder, one that does not exist yet, or that of an earlier run."
            )
        (folder / STAGES).mkdir(exist_ok=True)
    except OSError as error:
        raise RunFolderError(f"the run folder {folder} can not be written: {error.strerror or error}") from error


def write_tables(folder: Path, refs: Mapping[Stage, Sequence[StageRef]]) -> None:
    """Writes the tables of all stages; tables of stages that an earlier run had and this one lacks are removed."""
    for stage, shards in refs.items():
        target = folder / SCORES if stage is Stage.AGGREGATION else folder / STAGES / f"{stage}.parquet"
        with _replacing(target) as temporary:
            concatenate(shards, str(temporary))
    for path in (folder / STAGES).glob("*.parquet"):
        if path.stem not in refs:
            path.unlink()


def summarize_scores(folder: Path, requests: Sequence[MetricRequest]) -> list[MetricSummary]:
    """The summary of every metric, from the score table of the run folder, of which a batch is in memory at a time."""
    return [summarize(request.key, request.metric.direction, _scores(folder, request.key)) for request in requests]


def _scores(folder: Path, metric: str) -> Iterator[Score]:
    for batch in read_cells(folder, metric, ("status", "value", "label", "reason")):
        for row in batch.to_pylist():
            yield Score(Status(row["status"]), row["value"], row["label"], row["reason"])


def read_cells(folder: Path, metric: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The cells of a metric in the score table of a run folder, in batches.

    Args:
        folder: the run folder.
        metric: the key of the metric.
        columns: of the score table; `metric` is there too.
    """
    with pq.ParquetFile(folder / SCORES) as file:
        for batch in file.iter_batches(columns=["metric", *columns]):
            yield batch.filter(pc.equal(batch.column("metric"), metric))


def write_summary(
    folder: Path, rows: int, summaries: Sequence[MetricSummary], more: Mapping[str, Mapping[str, Any]]
) -> None:
    """Writes summary.json; of what more there is to say, by name, it has what is not empty."""
    content = {"rows": rows, "metrics": [asdict(summary) for summary in summaries]}
    write_json(folder / SUMMARY, content | {name: said for name, said in more.items() if said})


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Writes a JSON file, whole or not at all. Raises ValueError on NaN: nothing of ours holds one."""
    text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False, default=str) + "\n"
    # A row was perhaps left out because its text is no UTF-8; the note about it must be writable all the same.
    with _replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A place for a file that takes its name when the block is done, and goes away if the block fails."""
    temporary = path.with_suffix(".tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def translate_write_errors(folder: Path) -> Iterator[None]:
    """A block that writes into a run folder.

    Raises:
        RunFolderError: a file can not be written.
    """
    try:
        yield
    except OSError as error:
        raise RunFolderError(
            f"the run folder {folder} can not be written: {error.strerror or error}. See to it and run again: what was "
            "computed is kept."
        ) from error


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """A JSON file of a run folder.

    Raises:
        RunFolderError: the folder is not a run's, or the file is damaged.
    """
    try:
        content = json.loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunFolderError(f"{folder} is not a run folder: it has no {name}") from error
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{folder / name} can not be read: {error}") from error
    if not isinstance(content, dict):
        raise RunFolderError(f"{folder / name} can not be read: expected a JSON object")
    return content


def read_finished_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a finished run: content of its run.json.

    Raises:
        RunFolderError: it is no run folder, or that of a run that did not finish or has another format.
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
            "Start it again with `assay run`; stage tables that were finished are kept."
        )
    return manifest
