"""Keep the webhooks that a Prefect server calls at the same time from ending each other.

Prefect calls all webhooks through connection pools that the calls share, and closes the pool after each call. Another
call that waits for its reply then fails ("Webhook call failed: ReadError"), and is not repeated: of a report to several
recipients, one may get nothing. With this module a call leaves the pool open.

A Prefect server loads it at its start, through the entry point group `prefect.collections`, where rag-assay is
installed beside it.
"""

from httpx import AsyncClient
from prefect.blocks import webhook

__all__ = ["OpenClient"]


class OpenClient(AsyncClient):
    """A client that closes nothing when its context ends: its transport belongs to all clients."""

    async def __aexit__(self, *error: object) -> None:
        """Leave the transport open."""


vars(webhook)["AsyncClient"] = OpenClient
