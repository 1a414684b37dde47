"""Keep the catalogue of runs and incidents: in a SQLite file, or in PostgreSQL for several machines."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Row, delete, select, update

from metric_core.errors import ConfigError, RunFolderError
from tasks.history.availability import WINDOWS, Availability, measure_availability
from tasks.history.history_tables import INCIDENTS, METRICS, RUNS
from tasks.history.incident_log import IncidentLog
from tasks.history.kept_questions import add_kept_questions
from tasks.history.recorded_run import COMPLETED, MISSED, RecordedMetric, RecordedRun, RunCost, RunDetails
from tasks.history.run_entry import read_run_entry
from tasks.history.run_search import find_run_folders
from tasks.record.outcome import RunOutcome

_CHUNK = 400
"""Runs per statement: the oldest SQLite accepts 999 values."""

_CONTENT = ("reason", "source", "deployment", "rows", "bad_rows", "versions", "failures", "details", "trigger")


@dataclass(frozen=True, slots=True)
class SkippedFolder:
    """A run folder that could not be recorded."""

    folder: str
    problem: str


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """The result of recording the runs of whole folders."""

    recorded: int
    skipped: tuple[SkippedFolder, ...]


class Catalogue(IncidentLog):
    """The history of runs. Several threads, processes and machines may use it.

    The database is opened when it is first used, and its tables are created where they are missing.

    Args:
        url: Path of a SQLite file, a `postgresql://` URL, or a reference to one (`env:NAME`, `block:NAME`), as in the
            option `history`; None means a file in ASSAY_HOME.

    Raises:
        ConfigError: The address is none of these, or the reference names no secret.
    """

    def record(self, folder: Path) -> RecordedRun:
        """Record the run of a folder, or replace its entry if it is recorded, and return the entry.

        A run of data from Python without a name is not recorded: nothing says which other runs it belongs to.

        Args:
            folder: Folder of a run that finished or failed.

        Raises:
            RunFolderError: The folder is not that of such a run, or is damaged.
            ConfigError: The database cannot be used.
        """
        return self._record(read_run_entry(folder))

    def _record(self, run: RecordedRun) -> RecordedRun:
        if not run.name:
            return run
        before = self.runs(run.name, last=1, before=run.created, statuses=(COMPLETED,), metrics=False)
        run = add_kept_questions(run, before[0] if before else None)
        self.add(run)
        return run

    def add(self, run: RecordedRun) -> None:
        """Add a run, or replace its entry.

        Runs of an evaluation that were due at the same time are one run, so it has one entry, whoever records it: a
        run that took place replaces a missed one, and one with a folder replaces one without. A run that failed
        although its evaluation is recorded as completed gives that entry its reason.

        Args:
            run: The run. One that has no folder is made by `RecordedRun.without_results`.

        Raises:
            ConfigError: The database cannot be used.
        """
        content = {name: getattr(run, name) for name in _CONTENT} | {
            "details": run.details.to_json(),
            "cost": asdict(run.cost),
            "due": None if run.due is None else _time_text(run.due),
        }
        values = {
            "run_id": run.run_id,
            "name": run.name,
            "created": run.created.timestamp(),
            "folder": run.folder,
            "status": run.status,
            "content": content,
            "outcome": None if run.outcome is None else run.outcome.model_dump(mode="json"),
        }
        metrics = [
            _metric_values(metric) | {"run_id": run.run_id, "position": position}
            for position, metric in enumerate(run.metrics)
        ]

        def work(connection: Connection) -> None:
            if run.due is not None and not _give_way(connection, run, run.due):
                return
            insertion = self.database.insert(RUNS).values(values)
            changed = {name: insertion.excluded[name] for name in values if name != "run_id"}
            # Locks the run, so that two writers of the same run follow each other.
            connection.execute(insertion.on_conflict_do_update(index_elements=["run_id"], set_=changed))
            connection.execute(delete(METRICS).where(METRICS.c.run_id == run.run_id))
            if metrics:
                connection.execute(self.database.insert(METRICS), metrics)

        with self.translate_errors("written"):
            self.database.write(work)

    def runs(  # noqa: PLR0913 ways to choose runs
        self,
        name: str | None = None,
        *,
        last: int | None = None,
        since: datetime | None = None,
        before: datetime | None = None,
        statuses: Collection[str] = (),
        metrics: bool = True,
    ) -> list[RecordedRun]:
        """Return recorded runs, oldest first.

        Args:
            name: Name of the evaluation; None for all.
            last: Number of the latest runs to return; None for all.
            since: Time at which a run started at the earliest; None for any.
            before: Time before which a run started; None for any.
            statuses: Statuses of the runs, such as STARTED for all but missed ones; empty for any.
            metrics: False leaves out the metrics, which are most of the data.

        Raises:
            ConfigError: The database cannot be used.
        """
        query = select(RUNS).order_by(RUNS.c.created.desc(), RUNS.c.run_id.desc()).limit(last)
        if name is not None:
            query = query.where(RUNS.c.name == name)
        if since is not None:
            query = query.where(RUNS.c.created >= since.timestamp())
        if before is not None:
            query = query.where(RUNS.c.created < before.timestamp())
        if statuses:
            query = query.where(RUNS.c.status.in_(statuses))

        def work(connection: Connection) -> list[RecordedRun]:
            rows = list(reversed(connection.execute(query).all()))
            found = _read_metrics(connection, [row.run_id for row in rows]) if metrics else {}
            return [_run(row, found.get(row.run_id, ())) for row in rows]

        with self.translate_errors("read"):
            return self.database.read(work)

    def availability(self, name: str, now: datetime | None = None) -> tuple[Availability, ...]:
        """Return how many of the scheduled runs of an evaluation have a result, over several numbers of days.

        Args:
            now: Time at which the days end; None means the present.

        Raises:
            ConfigError: The database cannot be used.
        """
        now = now or datetime.now(UTC)
        return measure_availability(self.runs(name, since=now - timedelta(days=max(WINDOWS)), metrics=False), now)

    def run(self, run_id: str) -> RecordedRun | None:
        """Return a run by its id; None if it is not recorded."""

        def work(connection: Connection) -> RecordedRun | None:
            row = connection.execute(select(RUNS).where(RUNS.c.run_id == run_id)).one_or_none()
            return None if row is None else _run(row, _read_metrics(connection, [run_id])[run_id])

        with self.translate_errors("read"):
            return self.database.read(work)

    def names(self) -> list[str]:
        """Return the names of all evaluations, the one with the latest run first."""
        query = select(RUNS.c.name, RUNS.c.created).order_by(RUNS.c.created.desc())
        with self.translate_errors("read"):
            found = self.database.read(lambda connection: connection.execute(query).all())
        return list(dict.fromkeys(row.name for row in found))

    def rebuild(self, roots: Iterable[Path]) -> RebuildReport:
        """Record all runs in folders and below them. Entries of runs that are not there stay.

        Args:
            roots: Folders of run folders.

        Returns:
            The number of recorded runs, and the folders that were skipped because they are damaged.

        Raises:
            RunFolderError: One of the roots does not exist.
            ConfigError: The database cannot be used.
        """
        found, skipped = list[RecordedRun](), list[SkippedFolder]()
        for folder in find_run_folders(roots):
            try:
                found.append(read_run_entry(folder))
            except RunFolderError as error:
                skipped.append(SkippedFolder(str(folder), str(error)))
        found = [run for run in found if run.name]
        for run in sorted(found, key=lambda each: each.created):  # each is compared with the one before
            self._record(run)
        return RebuildReport(len(found), tuple(skipped))

    def prune(
        self,
        *,
        keep_last: int | None = None,
        before: datetime | None = None,
        baselines: Collection[Path] = (),
        dry_run: bool = False,
    ) -> list[RecordedRun]:
        """Remove the entries of old runs, and of incidents that were over before them; run folders stay.

        A run is removed only if no rule keeps it. The baselines of the runs that are kept stay, too, and so does the
        latest accepted run of each evaluation.

        Args:
            keep_last: Number of the latest runs to keep per evaluation; None for no such rule. Missed runs do not
                count, and stay as long as the runs around them.
            before: Keep runs that started at this time or later; None for no such rule. Without any rule all stay.
            baselines: Folders of accepted runs, which stay in any case.
            dry_run: Only return what would be removed.

        Returns:
            The runs that were removed, oldest first.

        Raises:
            ConfigError: The database cannot be used.
        """
        if keep_last is None and before is None:
            return []
        by_name: dict[str, list[RecordedRun]] = defaultdict(list)
        for run in self.runs():
            by_name[run.name].append(run)
        accepted = {str(folder) for folder in baselines}
        removed = [
            run
            for runs in by_name.values()
            for run in _find_expired(runs, keep_last, before)
            if run.folder not in accepted
        ]
        if not dry_run and removed:
            self._remove(removed)
        return sorted(removed, key=lambda run: run.created)

    def forget(self, run_id: str) -> bool:
        """Remove the entry of a run, and return whether there was one; its folder stays.

        Raises:
            ConfigError: The database cannot be used.
        """

        def work(connection: Connection) -> bool:
            connection.execute(delete(METRICS).where(METRICS.c.run_id == run_id))
            return connection.execute(delete(RUNS).where(RUNS.c.run_id == run_id)).rowcount > 0

        with self.translate_errors("written"):
            return self.database.write(work)

    def _remove(self, runs: Sequence[RecordedRun]) -> None:
        newest: dict[str, float] = {}
        for run in runs:
            newest[run.name] = max(newest.get(run.name, 0.0), run.created.timestamp())

        def work(connection: Connection) -> None:
            for ids in _chunks([run.run_id for run in runs]):
                connection.execute(delete(RUNS).where(RUNS.c.run_id.in_(ids)))
                connection.execute(delete(METRICS).where(METRICS.c.run_id.in_(ids)))
            for name, time in newest.items():
                connection.execute(delete(INCIDENTS).where(INCIDENTS.c.name == name, INCIDENTS.c.closed <= time))

        with self.translate_errors("written"):
            self.database.write(work)


def _find_expired(runs: Sequence[RecordedRun], keep_last: int | None, before: datetime | None) -> list[RecordedRun]:
    """Return the runs of an evaluation, which are given oldest first, that no rule keeps."""
    started = [place for place, run in enumerate(runs) if run.status != MISSED]
    kept_from = len(runs) if not keep_last else started[-keep_last] if len(started) >= keep_last else 0
    old = runs[:kept_from]
    expired = [run for run in old if before is None or run.created < before]
    ids = {run.run_id for run in expired}
    kept = [run.outcome for run in runs if run.run_id not in ids]
    baselines = {each.baseline.run_id for each in kept if each is not None and each.baseline is not None}
    baselines.update([run.run_id for run in runs if run.outcome is not None and run.outcome.accepted][-1:])
    return [run for run in expired if run.run_id not in baselines]


def _give_way(connection: Connection, run: RecordedRun, due: datetime) -> bool:
    """Remove the entries that a run replaces because they were due at the same time, and return whether it is added.

    It is not added if another entry of the time says more.
    """
    others = connection.execute(
        select(RUNS).where(
            RUNS.c.name == run.name, RUNS.c.run_id != run.run_id, RUNS.c.content["due"].as_string() == _time_text(due)
        )
    ).all()
    if better := [each for each in others if _rank(each) > _rank(run)]:
        for each in better if run.status != MISSED else ():
            if each.status == COMPLETED and not (each.content["reason"] or each.content["failures"]):
                content = {**each.content, "reason": run.reason}
                connection.execute(update(RUNS).where(RUNS.c.run_id == each.run_id).values(content=content))
        return False
    replaced = [each.run_id for each in others if not each.folder]
    connection.execute(delete(RUNS).where(RUNS.c.run_id.in_(replaced)))
    return True


def _time_text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()


def _rank(run: Row[Any] | RecordedRun) -> int:
    """Return how much an entry says about the run that was due: a missed one least, one with a folder most."""
    return (run.status != MISSED) + bool(run.folder)


def _metric_values(metric: RecordedMetric) -> dict[str, Any]:
    values = asdict(metric)
    low, high = values.pop("bounds") or (None, None)
    return values | {"bound_low": low, "bound_high": high}


def _read_metrics(connection: Connection, run_ids: Sequence[str]) -> dict[str, list[RecordedMetric]]:
    found: dict[str, list[RecordedMetric]] = defaultdict(list)
    for ids in _chunks(run_ids):
        query = select(METRICS).where(METRICS.c.run_id.in_(ids)).order_by(METRICS.c.position)
        for row in connection.execute(query):
            found[row.run_id].append(
                RecordedMetric(
                    metric=row.metric,
                    direction=row.direction,
                    mean=row.mean,
                    low=row.low,
                    high=row.high,
                    scored=row.scored,
                    undefined=row.undefined,
                    failed=row.failed,
                    deviation=row.deviation,
                    bounds=None if row.bound_low is None else (row.bound_low, row.bound_high),
                    slice_column=row.slice_column,
                    slice=row.slice,
                )
            )
    return found


def _run(row: Row[Any], metrics: Sequence[RecordedMetric]) -> RecordedRun:
    content = {name: value for name, value in row.content.items() if name in _CONTENT}
    outcome, due = _outcome(row), row.content.get("due")
    return RecordedRun(
        **{
            **content,
            "details": RunDetails.model_validate(content.get("details") or {}),
            "failures": tuple(content.get("failures") or ()),
            "trigger": content.get("trigger") or ("" if outcome is None else outcome.trigger),
        },
        run_id=row.run_id,
        name=row.name,
        created=datetime.fromtimestamp(row.created, UTC),
        folder=row.folder,
        status=row.status,
        cost=RunCost(**row.content["cost"]),
        metrics=tuple(metrics),
        outcome=outcome,
        due=None if due is None else datetime.fromisoformat(due),
    )


def _outcome(row: Row[Any]) -> RunOutcome | None:
    try:
        return None if row.outcome is None else RunOutcome.model_validate(row.outcome)
    except ValidationError as error:
        raise ConfigError(
            f"the outcome of the run {row.run_id} in the history cannot be read: another release of rag-assay recorded "
            "it. Install that release, or record its folder again with `assay history --rebuild FOLDER`."
        ) from error


def _chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + _CHUNK] for start in range(0, len(ids), _CHUNK))
