"""The flow `prune`: drops stage tables and answers that nothing has used for long, by hand or on a schedule."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from prefect import flow

from metric_core.errors import ConfigError
from tasks.cache.maintenance import prune as prune_answers
from tasks.models.models import open_cache
from tasks.options.settings import Settings
from tasks.runtime.home import assay_home
from tasks.tables.prune_tables import prune_tables

DAYS = 30.0
"""How long something may be unused, unless told otherwise."""


class PruneSettings(Settings):
    """What is dropped, and from where.

    Args:
        older_than_days: drop what has not been used for as many days.
        max_bytes: drop the tables and the answers that have not been used for longest until each of the two stores
            takes no more room than this.
        tables: root of the store of stage tables; default ASSAY_HOME/tables.
        cache: Address of the cache; default a file in ASSAY_HOME.
        dry_run: only tell what would be dropped.
    """

    older_than_days: float = DAYS
    max_bytes: int | None = None
    tables: str | None = None
    cache: str | None = None
    dry_run: bool = True


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What was dropped, or would be: how much of what, and the bytes that it takes; and how many runs are under way."""

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
    """Drops what nothing has used for long, or tells what that would be.

    Raises:
        ConfigError: an age or a size below zero.
        AssayError: the store of answers can not be used.
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
    """As `pruned`, as a flow for deployments; without `dry_run = false` it drops nothing."""
    return run_prune(settings)
