"""Announce rebuilt indexes from Python; `assay event index-rebuilt` does the same from a shell."""

from datetime import UTC, datetime
from uuid import UUID

import httpx
from prefect.client.orchestration import get_client
from prefect.events.schemas.events import Event
from prefect.exceptions import PrefectHTTPStatusError
from prefect.settings import get_current_settings

from deployments.local_server import find_address, use_server
from flows.index_events.index_event import EVENT, RESOURCE, IndexRebuilt
from flows.index_events.listeners import describe_listeners, listening, read_listeners
from metric_core.errors import AssayError, ConfigError
from tasks.runtime.credentials import mask_url
from tasks.runtime.home import assay_home
from tasks.runtime.http_errors import name_http_error


def emit_index_rebuilt(
    index: str, version: str, dataset: str, *, chunks: str = "", announced: datetime | None = None
) -> UUID:
    """Announce that an index was rebuilt. Invalid values are refused before the event is sent.

    The event goes to the server of Prefect's settings, or else to that of `assay serve` on this machine.

    Args:
        index: Id of the index: letters, digits, dots, hyphens and underscores.
        version: Version of the index. Numbers (`7`, `v1.10.2`) and times (`2026-11-21T06:00Z`) are ordered by their
            value, others by the time of their announcement.
        dataset: Location of the new responses and contexts: a path, a URL or `hub:owner/name` that workers can read,
            or `retriever:` if the deployment fetches them from the index itself.
        chunks: Address of the chunks of the index, or of their receipt, for a check before anything is evaluated.
        announced: Time of the announcement, in local time if it has no time zone; by default now.

    Returns:
        The id of the event.

    Raises:
        ConfigError: A value is invalid, there is no server, or no deployment of the server evaluates the index.
        AssayError: The server did not accept the event.
    """
    when = datetime.now(UTC) if announced is None else announced.astimezone(UTC)
    fields = {"index": index, "version": version, "dataset": dataset, "chunks": chunks}
    rebuilt = IndexRebuilt.from_payload(fields, when)
    url = get_current_settings().api.url
    if url is None:
        server = find_address(assay_home())
        if server is None:
            raise ConfigError("no Prefect server is running: set PREFECT_API_URL, or start `assay serve`")
        with use_server(server):
            return emit_index_rebuilt(index, version, dataset, chunks=chunks, announced=announced)
    event = Event.model_validate(
        {
            "event": EVENT,
            "occurred": rebuilt.announced,
            "resource": {"prefect.resource.id": f"{RESOURCE}{rebuilt.index}", "prefect.resource.name": rebuilt.index},
            "payload": rebuilt.payload,
        }
    )
    try:
        with get_client(sync_client=True) as client:
            listeners = read_listeners(client)
            if not listening(listeners, f"{RESOURCE}{rebuilt.index}"):
                raise ConfigError(
                    f"no deployment of the Prefect server at {mask_url(url)} evaluates the index {rebuilt.index}, so "
                    f"it was not announced: {describe_listeners(listeners)}"
                )
            client.request("POST", "/events", json=[event.model_dump(mode="json")])
    except (httpx.HTTPError, PrefectHTTPStatusError) as error:
        raise AssayError(
            f"the Prefect server at {mask_url(url)} did not accept the event ({name_http_error(error)}); "
            "the index was not announced"
        ) from error
    return event.id
