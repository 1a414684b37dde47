"""Read how an evaluation stands over its last runs, as findings tell."""

from datetime import UTC, datetime, timedelta

from tasks.findings.standing import Standing
from tasks.findings.table import standings_of
from tasks.history.catalogue import Catalogue

DAYS = 366
"""Days of the history that count."""


def read_standings(catalogue: Catalogue, name: str) -> tuple[Standing, ...]:
    """Return how an evaluation stands.

    Raises:
        ConfigError: The history cannot be read.
    """
    now = datetime.now(UTC)
    return tuple(standings_of(catalogue.runs(name, since=now - timedelta(days=DAYS)), now))
