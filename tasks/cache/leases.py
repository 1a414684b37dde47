"""Lease answers that are being computed, so that overlapping runs compute each answer once.

A lease ends when its answer is cached, when its owner releases it, or some seconds after the owner's last heartbeat:
an owner that was killed does not delay the others for longer than that.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, Executable, delete, select, update

from tasks.cache.cache_tables import LEASES
from tasks.cache.circuit_breaker import CircuitBreaker
from tasks.runtime.database import Database, chunks

LEASE_SECONDS = 10.0
"""Seconds for which a lease holds without a heartbeat."""


class Leases:
    """The leases of a cache. If the cache cannot be used, every process computes everything."""

    def __init__(self, database: Database, breaker: CircuitBreaker) -> None:
        self._database = database
        self._breaker = breaker
        self._expiry = database.clock + LEASE_SECONDS
        # A lease that ends later than any taken now predates a clock that was set back; its owner may be long gone.
        self._is_over = (LEASES.c.expires < database.clock) | (LEASES.c.expires > self._expiry + LEASE_SECONDS)
        insertion = database.insert(LEASES).values(expires=self._expiry)
        new = {"owner": insertion.excluded.owner, "expires": insertion.excluded.expires}
        self._claim = insertion.on_conflict_do_update(index_elements=["key"], set_=new, where=self._is_over)

    def claim(self, keys: Sequence[bytes], owner: str) -> set[bytes]:
        """Take leases on missing answers for an owner.

        Args:
            owner: Name that no other owner has.

        Returns:
            The keys of the answers that the owner must compute; another owner is computing the others.
        """
        return {key for chunk in chunks(keys) for key in self._claim_chunk(chunk, owner)}

    def _claim_chunk(self, keys: Sequence[bytes], owner: str) -> Sequence[bytes]:
        won = select(LEASES.c.key).where(LEASES.c.key.in_(keys), LEASES.c.owner == owner)

        def work(connection: Connection) -> Sequence[bytes]:
            connection.execute(self._claim, [{"key": key, "owner": owner} for key in keys])
            return connection.execute(won).scalars().all()

        return self._breaker.call("writing", lambda: self._database.write(work), keys)

    def find_claimed(self, keys: Sequence[bytes]) -> set[bytes]:
        """Return the keys whose answers are being computed."""

        def work(connection: Connection) -> set[bytes]:
            held = select(LEASES.c.key).where(~self._is_over)
            return {
                key
                for chunk in chunks(keys)
                for key in connection.execute(held.where(LEASES.c.key.in_(chunk))).scalars()
            }

        return self._breaker.call("reading", lambda: self._database.read(work), set())

    def extend(self, owners: Collection[str]) -> None:
        """Renew the leases of owners: their heartbeat."""
        self._write(update(LEASES).where(LEASES.c.owner.in_(sorted(owners))).values(expires=self._expiry))

    def release(self, owner: str) -> None:
        """End all leases of an owner, and delete expired ones."""
        self._write(delete(LEASES).where((LEASES.c.owner == owner) | self._is_over))

    def _write(self, statement: Executable) -> None:
        self._breaker.call("writing", lambda: self._database.write(lambda c: c.execute(statement)), None)


def release_all(connection: Connection, keys: Sequence[bytes], owner: str) -> None:
    """End an owner's leases on answers, in the transaction that caches them."""
    for chunk in chunks(keys):
        connection.execute(delete(LEASES).where(LEASES.c.key.in_(chunk), LEASES.c.owner == owner))
