"""Route requests to the replica that most likely has the beginning of their prompt in its prefix cache."""

import hashlib
from collections.abc import Sequence


def choose_replica(affinity: str, replicas: Sequence[str]) -> int:
    """Return the index of the replica that gets the requests with an affinity.

    Rendezvous hashing gives the same replica in every process and run. When a replica is added or removed, only the
    requests that it gains or loses move.

    Args:
        affinity: Text that related requests share: the beginning of their prompts.
        replicas: Names of the replicas, in any order.

    Returns:
        An index into `replicas`.

    >>> names = ["http://a/v1", "http://b/v1", "http://c/v1"]
    >>> homes = [names[choose_replica(f"context {i}", names)] for i in range(6)]
    >>> homes == [names[::-1][choose_replica(f"context {i}", names[::-1])] for i in range(6)]
    True
    >>> len(set(homes)) > 1
    True
    """
    if len(replicas) == 1:
        return 0
    key = hashlib.blake2b(affinity.encode("utf-8", "surrogatepass"), digest_size=16)
    weights = []
    for name in replicas:
        digest = key.copy()
        digest.update(name.encode())
        weights.append(digest.digest())
    return weights.index(max(weights))
