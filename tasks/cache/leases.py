"""Claims on answers that are being computed, so that runs that overlap compute an answer once between them.

A claim ends when its answer is kept, when its owner lets go of it, or some seconds after the owner's last sign of life:
an owner that was killed does not hold up the others for longer than that.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, Executable, delete, select, update

from tasks.cache.cache_tables import LEASES
from tasks.cache.circuit_breaker import CircuitBreaker
from tasks.cache.database import Database, chunks

LEASE_SECONDS = 10.0
"""How long a claim holds without a sign of life."""


class Leases:
    """Who is computing which answer. With a store that can not be used everybody computes everything.

    Args:
        database: where the claims are written down.
        guard: of the database.
    """

    def __init__(self, database: Database, guard: CircuitBreaker) -> None:
        self._database = database
        self._guard = guard
        self._expiry = database.clock + LEASE_SECONDS
        # A claim that ends later than any made now was made before the clock was put back; its owner may be long gone.
        self._is_over = (LEASES.c.expires < database.clock) | (LEASES.c.expires > self._expiry + LEASE_SECONDS)
        insertion = database.insert(LEASES).values(expires=self._expiry)
        new = {"owner": insertion.excluded.owner, "expires": insertion.excluded.expires}
        self._claim = insertion.on_conflict_do_update(index_elements=["key"], set_=new, where=self._is_over)

    def claim(self, keys: Sequence[bytes], owner: str) -> set[bytes]:
        """Claims missing answers for an owner.

        Args:
            keys: of the answers.
            owner: a name that nobody else has.

        Returns:
            The keys of the answers that the owner is to compute; somebody else is at work on the others.
        """
        return {key for chunk in chunks(keys) for key in self._claim_chunk(chunk, owner)}

    def _claim_chunk(self, keys: Sequence[bytes], owner: str) -> Sequence[bytes]:
        won = select(LEASES.c.key).where(LEASES.c.key.in_(keys), LEASES.c.owner == owner)

        def work(connection: Connection) -> Sequence[bytes]:
            connection.execute(self._claim, [{"key": key, "owner": owner} for key in keys])
            return connection.execute(won).scalars().all()

        return self._guard.asked("writing", lambda: self._database.write(work), keys)

    def claimed(self, keys: Sequence[bytes]) -> set[bytes]:
        """Those of the keys on whose answers somebody is at work."""

        def work(connection: Connection) -> set[bytes]:
            held = select(LEASES.c.key).where(~self._is_over)
            return {
                key
                for chunk in chunks(keys)
                for key in connection.execute(held.where(LEASES.c.key.in_(chunk))).scalars()
            }

        return self._guard.asked("reading", lambda: self._database.read(work), set())

    def extend(self, owner: str) -> None:
        """Gives the claims of an owner their full time again: its sign of life."""
        self._write(update(LEASES).where(LEASES.c.owner == owner).values(expires=self._expiry))

    def release(self, owner: str) -> None:
        """Ends all claims of an owner, and those that are over."""
        self._write(delete(LEASES).where((LEASES.c.owner == owner) | self._is_over))

    def _write(self, statement: Executable) -> None:
        self._guard.asked("writing", lambda: self._database.write(lambda c: c.execute(statement)), None)


def release_all(connection: Connection, keys: Sequence[bytes], owner: str) -> None:
    """Ends an owner's claims on answers, in the transaction that keeps them."""
    for chunk in chunks(keys):
        connection.execute(delete(LEASES).where(LEASES.c.key.in_(chunk), LEASES.c.owner == owner))
