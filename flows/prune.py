"""The flow `prune`: delete stage tables and cached answers that have not been used recently."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from prefect import flow

from metric_core.errors import ConfigError
from tasks.cache.maintenance import prune as prune_answers
from tasks.models.caches import open_cache
from tasks.options.settings import Settings
from tasks.runtime.home import assay_home
from tasks.tables.prune_tables import prune_tables

DAYS = 30.0
"""Default age in days."""


class PruneSettings(Settings):
    """Parameters of pruning.

    Args:
        older_than_days: Delete what has not been used for this many days.
        max_bytes: Delete the least recently used tables and cached answers until each of the two stores takes at most
            this many bytes.
        tables: Root of the table store; default ASSAY_HOME/tables.
        cache: Address of the cache; default a file in ASSAY_HOME.
        dry_run: Report what would be deleted, and delete nothing.
    """

    older_than_days: float = DAYS
    max_bytes: int | None = None
    tables: str | None = None
    cache: str | None = None
    dry_run: bool = True


@dataclass(frozen=True, slots=True)
class PruneReport:
    """Counts and bytes of what was deleted, or would be, and the number of active runs."""

    dry_run: bool
    records: int
    tables: int
    sources: int
    temporary: int
    runs: int
    tables_bytes: int
    answers: int
    answers_bytes: int


def run_prune(settings: PruneSettings) -> PruneReport:
    """Delete tables and cached answers that have not been used recently, or count them.

    Raises:
        ConfigError: An age or a size below zero.
        AssayError: The cache cannot be used.
    """
    if settings.older_than_days < 0 or (settings.max_bytes or 0) < 0:
        raise ConfigError("the age and the size must be at least 0")
    before = datetime.now(UTC) - timedelta(days=settings.older_than_days)
    root = settings.tables or str(assay_home() / "tables")
    tables = prune_tables(root, before=before, size=settings.max_bytes, dry_run=settings.dry_run)
    store = open_cache(settings.cache)
    answers = prune_answers(store, before=before, size=settings.max_bytes, dry_run=settings.dry_run)
    return PruneReport(
        dry_run=settings.dry_run,
        records=tables.records,
        tables=tables.tables,
        sources=tables.sources,
        temporary=tables.temporary,
        runs=tables.runs,
        tables_bytes=tables.size,
        answers=answers.count,
        answers_bytes=answers.size,
    )


@flow(name="prune", persist_result=False, validate_parameters=True)
def prune(settings: PruneSettings) -> PruneReport:
    """Run `run_prune` as a flow, for deployments; it deletes nothing without `dry_run = false`."""
    return run_prune(settings)
