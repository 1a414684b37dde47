"""The flow `prune`: delete stored rows and cached answers that have not been used recently."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from prefect import flow

from flows.execution.deployed_parameters import as_deployed
from metric_core.errors import ConfigError
from tasks.cache.maintenance import prune_values as prune_answers
from tasks.history.catalogue import Catalogue
from tasks.history.open_alarms import find_baseline_folders
from tasks.opening.caches import open_cache
from tasks.options.settings import Settings
from tasks.rows.prune_tables import prune_tables
from tasks.runs.run_retention import RetentionPolicy, accepted_folders, find_expired, remove_runs
from tasks.runtime.home import assay_home

DAYS = 30.0
"""Default age in days."""


class PruneSettings(Settings):
    """Parameters of pruning.

    Args:
        older_than_days: Delete what has not been used for this many days.
        max_bytes: Delete the least recently used rows and cached answers until each of the two stores takes at most
            this many bytes.
        tables: Root of the table store; default ASSAY_HOME/tables.
        cache: Address of the cache; default a file in ASSAY_HOME.
        runs: Folder of run folders to delete from; None deletes no run folder.
        keep_last_runs: Number of the latest runs to keep per deployment, or per source without one; None for no such
            rule.
        keep_runs_days: Keep runs younger than this many days; None for no such rule. A run is deleted only if neither
            rule keeps it.
        baselines: Folder or URL of accepted baselines, whose runs are kept; default ASSAY_HOME/baselines, which is
            also read if another one is named.
        history: Address of the history; default a file in ASSAY_HOME.
        history_keep_last: Number of the latest runs to keep in the history per evaluation; None for no such rule.
        history_keep_days: Keep runs younger than this many days in the history; None for no such rule. Without a rule
            all runs stay in the history.
        dry_run: Report what would be deleted, and delete nothing.
    """

    older_than_days: float = DAYS
    max_bytes: int | None = None
    tables: str | None = None
    cache: str | None = None
    runs: str | None = None
    keep_last_runs: int | None = None
    keep_runs_days: float | None = None
    baselines: str | None = None
    history: str | None = None
    history_keep_last: int | None = None
    history_keep_days: float | None = None
    dry_run: bool = True


@dataclass(frozen=True, slots=True)
class PruneReport:
    """Counts and bytes of what was deleted, or would be, and the number of active runs."""

    dry_run: bool
    segments: int
    merged: int
    tables: int
    sources: int
    temporary: int
    runs: int
    tables_bytes: int
    answers: int
    answers_bytes: int
    run_folders: int
    run_folders_bytes: int
    recorded_runs: int


def run_prune(settings: PruneSettings) -> PruneReport:
    """Delete stored rows and cached answers that have not been used recently, or count them.

    Raises:
        ConfigError: An age or a size below zero.
        AssayError: The cache cannot be used.
    """
    ages = (settings.older_than_days, settings.keep_runs_days or 0, settings.history_keep_days or 0)
    if min(*ages, settings.max_bytes or 0) < 0:
        raise ConfigError("ages and the size must be at least 0")
    for kept in (settings.keep_last_runs, settings.history_keep_last):
        if kept is not None and kept < 1:
            raise ConfigError(f"at least the last run must be kept, got {kept}")
    if settings.runs is None and (settings.keep_last_runs is not None or settings.keep_runs_days is not None):
        raise ConfigError("which runs are kept is said, but not where they are: name the folder of run folders")
    folders = _prune_runs(settings)  # first: it refuses to delete anything if it cannot read the baselines
    before = datetime.now(UTC) - timedelta(days=settings.older_than_days)
    root = settings.tables or str(assay_home() / "tables")
    tables = prune_tables(root, before=before, size=settings.max_bytes, dry_run=settings.dry_run)
    store = open_cache(settings.cache)
    answers = prune_answers(store, before=before, size=settings.max_bytes, dry_run=settings.dry_run)
    return PruneReport(
        dry_run=settings.dry_run,
        segments=tables.segments,
        merged=tables.merged,
        tables=tables.tables,
        sources=tables.sources,
        temporary=tables.temporary,
        runs=tables.runs,
        tables_bytes=tables.size,
        answers=answers.count,
        answers_bytes=answers.size,
        run_folders=len(folders),
        run_folders_bytes=sum(folders.values()),
        recorded_runs=_prune_history(settings),
    )


def _prune_runs(settings: PruneSettings) -> dict[Path, int]:
    """Delete run folders, or list them, and return their sizes."""
    if settings.runs is None:
        return {}
    root = Path(settings.runs).expanduser().absolute()
    policy = RetentionPolicy(settings.keep_last_runs, _days_ago(settings.keep_runs_days))
    expired = find_expired(root, policy, _accepted(settings))
    sizes = {run.path: run.size for run in expired}
    removed = expired if settings.dry_run else list(remove_runs(root, expired))
    return {run.path: sizes[run.path] for run in removed}


def _prune_history(settings: PruneSettings) -> int:
    """Delete the entries of old runs from the history, or count them."""
    if settings.history_keep_last is None and settings.history_keep_days is None:
        return 0
    removed = Catalogue(settings.history).prune(
        keep_last=settings.history_keep_last,
        before=_days_ago(settings.history_keep_days),
        baselines=_accepted(settings),
        dry_run=settings.dry_run,
    )
    return len(removed)


def _accepted(settings: PruneSettings) -> frozenset[Path]:
    """Return the run folders that later runs are compared with."""
    accepted = accepted_folders() | (accepted_folders(settings.baselines) if settings.baselines else frozenset())
    return find_baseline_folders(Catalogue(settings.history).runs(metrics=False), accepted)


def _days_ago(days: float | None) -> datetime | None:
    return None if days is None else datetime.now(UTC) - timedelta(days=days)


@flow(name="prune", persist_result=False, validate_parameters=False)
@as_deployed()
def prune(settings: PruneSettings) -> PruneReport:
    """Run `run_prune` as a flow, for deployments; it deletes nothing without `dry_run = false`."""
    return run_prune(settings)
