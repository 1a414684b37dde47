"""Query an index, or a generator of responses, over HTTP.

An index receives `{"query": ..., "top_k": ...}` and replies with `{"passages": [...]}` or the list alone; a passage is
a text or `{"text": ..., "id": ...}`. A generator receives `{"query": ..., "passages": [...]}` and replies with
`{"response": ...}`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from metric_core.errors import ConfigError
from tasks.options.retriever_options import RetrieverOptions
from tasks.runtime.credentials import read_secret
from tasks.runtime.http_bodies import ACCEPTED, BoundedBody, UnreadableBodyError
from tasks.runtime.proxies import proxy_for
from tasks.runtime.trust import trusted_certificates
from tasks.sources.retrievers.protocol import BadReplyError, PassageLike

_RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504})
_REFUSED = frozenset({401, 403, 404, 405})
"""Statuses that every row would get, because the URL or the key is wrong."""

MAX_REPLY_BYTES = 16 * 1024**2
"""Size of the largest reply that is read, after decompression."""


class HttpRetriever:
    """A client of an endpoint that receives and returns JSON. Several threads may use it.

    Raises:
        ConfigError: The key does not exist, or the environment names a proxy that cannot be used.
    """

    def __init__(self, url: str, options: RetrieverOptions) -> None:
        self._url = url
        self._top_k = options.top_k
        key = None if options.api_key is None else read_secret(options.api_key)
        limits = httpx.Limits(max_connections=options.concurrency)
        self._client = httpx.Client(
            timeout=options.timeout,
            headers={"Accept-Encoding": ACCEPTED} | ({} if key is None else {"Authorization": f"Bearer {key}"}),
            transport=httpx.HTTPTransport(verify=trusted_certificates(), limits=limits, proxy=proxy_for(url)),
        )

    def close(self) -> None:
        """Close the connections to the endpoint."""
        self._client.close()

    @property
    def identity(self) -> str:
        """The URL of the endpoint."""
        return self._url

    def retrieve(self, query: str) -> Sequence[PassageLike]:
        """Return the passages for a query."""
        reply = self._post({"query": query, "top_k": self._top_k})
        passages: Sequence[PassageLike] = _member(reply, "passages") if isinstance(reply, Mapping) else reply
        return passages

    def generate(self, query: str, passages: Sequence[str]) -> str:
        """Return the response to a query.

        Args:
            passages: Texts of the passages to respond with.
        """
        reply = self._post({"query": query, "passages": list(passages)})
        response: str = _member(reply, "response") if isinstance(reply, Mapping) else reply
        return response

    def _post(self, content: Mapping[str, object]) -> Any:
        try:
            with self._client.stream("POST", self._url, json=content) as response:
                self._check_status(response.status_code)
                body = BoundedBody(response.headers.get("Content-Encoding"), MAX_REPLY_BYTES)
                for piece in response.iter_raw():
                    body.add(piece)
                return json.loads(body.content())
        except httpx.TimeoutException as error:
            raise TimeoutError(f"{self._url} did not answer in time") from error
        except httpx.TransportError as error:
            raise ConnectionError(f"{self._url} cannot be reached: {error}") from error
        except UnreadableBodyError as error:
            raise BadReplyError(str(error)) from error
        except (ValueError, RecursionError) as error:
            raise BadReplyError("the reply is not JSON") from error

    def _check_status(self, status: int) -> None:
        if status in _RETRYABLE:
            raise ConnectionError(f"{self._url} replied with status {status}")
        if status in _REFUSED:
            raise ConfigError(f"the index at {self._url} replied with status {status}; check its URL and api_key")
        if status != httpx.codes.OK:
            raise BadReplyError(f"status {status}")


def _member(reply: Mapping[str, object], name: str) -> Any:
    if name not in reply:
        raise BadReplyError(f"the reply has no {name!r}, it has {', '.join(map(repr, reply)) or 'nothing'}")
    return reply[name]
