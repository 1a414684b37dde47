"""Connect to PostgreSQL so that a server, or a network before it, that falls silent is noticed.

A connection whose entry in a firewall or an address translation was dropped looks open for ever: what is sent is lost,
and no error comes back. Probes of the operating system notice that where nothing in between answers them, the limit of
statements ends those that a server works on for too long, and the limit here holds in all cases.
"""

import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg

R = TypeVar("R")

ANSWER_SECONDS = 30.0
"""Seconds without a byte from the server after which a connection counts as lost, and a statement as too slow."""

MAINTENANCE_SECONDS = 3600.0
"""The same for statements that measure or clean a whole table."""

_PROBES = {"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}


def connect(*arguments: Any, **parameters: Any) -> "GuardedConnection":
    """Connect to a server, with limits where the address has none of its own."""
    limits = {**_PROBES, "tcp_user_timeout": int(1000 * ANSWER_SECONDS)}
    connection = GuardedConnection.connect(*arguments, **(limits | parameters))
    if "statement_timeout" not in str(parameters.get("options", "")):
        connection.limit_statements(ANSWER_SECONDS)
    return connection


class GuardedConnection(psycopg.Connection[Any]):
    """A connection that is closed when the server is silent for too long while it is waited for."""

    seconds = ANSWER_SECONDS
    """Seconds of silence after which the connection is closed."""

    def limit_statements(self, seconds: float) -> None:
        """Set the time after which the server ends a statement, and this side the wait for it."""
        self.seconds = 1.2 * seconds  # the server is the first to know
        self.execute(f"SET statement_timeout = {int(1000 * seconds)}")
        self.commit()

    def wait(self, gen: Generator[Any, Any, R], *arguments: Any, **options: Any) -> R:
        """Run an operation of the driver to its end.

        Raises:
            psycopg.OperationalError: The server was silent for too long; the connection is closed.
        """
        return super().wait(self._guard(gen), *arguments, **options)

    def _guard(self, gen: Generator[Any, Any, R]) -> Generator[Any, Any, R]:
        deadline = time.monotonic() + self.seconds
        try:
            state = next(gen)
            while True:
                ready = yield state
                if ready:
                    deadline = time.monotonic() + self.seconds
                elif time.monotonic() > deadline:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no reply from the server for {self.seconds:g} seconds")
                state = gen.send(ready)
        except StopIteration as end:
            result: R = end.value
            return result
