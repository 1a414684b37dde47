"""Lease answers that are being computed, so that overlapping runs compute each answer once.

A lease ends when its answer is cached, when its owner releases it, or some seconds after the owner's last heartbeat:
an owner that was killed does not delay the others for longer than that.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, Connection, Executable, bindparam, delete, literal_column, select, update

from tasks.cache.cache_tables import LEASES
from tasks.cache.circuit_breaker import CircuitBreaker
from tasks.runtime.database import Database, Upsert, chunks

LEASE_SECONDS = 10.0
"""Seconds for which a lease holds without a heartbeat."""

# Built once: building a statement takes longer than running it.
_OF_OWNER = (LEASES.c.key.in_(bindparam("keys")), LEASES.c.owner == bindparam("holder"))
_HELD = select(LEASES.c.key).where(*_OF_OWNER)
_RELEASE = delete(LEASES).where(*_OF_OWNER)


class Leases:
    """The leases of a cache. If the cache cannot be used, every process computes everything."""

    def __init__(self, database: Database, breaker: CircuitBreaker) -> None:
        self._database = database
        self._breaker = breaker
        duration: ColumnElement[float] = literal_column(str(LEASE_SECONDS))
        self._expiry = database.clock + duration
        # A lease that ends later than any taken now predates a clock that was set back; its owner may be long gone.
        self._is_over = (LEASES.c.expires < database.clock) | (LEASES.c.expires > self._expiry + duration)
        insertion = database.insert(LEASES).values(expires=self._expiry)
        new = {"owner": insertion.excluded.owner, "expires": insertion.excluded.expires}
        self._claim = Upsert(insertion.on_conflict_do_update(index_elements=["key"], set_=new, where=self._is_over))

    def claim(self, keys: Sequence[bytes], owner: str) -> set[bytes]:
        """Take leases on missing answers for an owner.

        Args:
            owner: Name that no other owner has.

        Returns:
            The keys of the answers that the owner must compute; another owner is computing the others.
        """
        return {key for chunk in chunks(keys) for key in self._claim_chunk(chunk, owner)}

    def _claim_chunk(self, keys: Sequence[bytes], owner: str) -> Sequence[bytes]:
        def work(connection: Connection) -> Sequence[bytes]:
            self._claim.execute(connection, [{"key": key, "owner": owner} for key in keys])
            return connection.execute(_HELD, {"keys": keys, "holder": owner}).scalars().all()

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
        connection.execute(_RELEASE, {"keys": chunk, "holder": owner})
