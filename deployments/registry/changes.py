"""Record what became of the objects on a Prefect server."""

from dataclasses import dataclass
from enum import StrEnum


class Change(StrEnum):
    """The change of an object on the server."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    TO_REMOVE = "to remove"


@dataclass(frozen=True, slots=True)
class AppliedChanges:
    """An object on the server, and its change.

    Args:
        kind: Kind of the object: work pool, deployment, automation, block or limit; "overlap" for two deployments that
            evaluate the same index, "unreported" for a recipient that the server cannot send messages to, "incident"
            for one that stays open although its deployment is removed.
        detail: Schedule or events of a deployment, type of a pool, or slots of a limit.
    """

    kind: str
    name: str
    change: Change
    detail: str = ""
