"""Read how an evaluation stands over its last runs, as findings tell."""

from datetime import UTC, datetime, timedelta

from tasks.findings.standing import Standing
from tasks.findings.table import has_standings, standings_of
from tasks.history.catalogue import Catalogue

DAYS = 366
"""Days of the history that count."""


def read_standings(catalogue: Catalogue, name: str) -> tuple[Standing, ...]:
    """Return how an evaluation stands.

    Raises:
        ConfigError: The history cannot be read.
    """
    now = datetime.now(UTC)
    since = now - timedelta(days=DAYS)
    if not has_standings(catalogue.runs(name, since=since, metrics=False)):
        return ()  # without reading the metrics, which are most of the history
    return tuple(standings_of(catalogue.runs(name, since=since), now))
