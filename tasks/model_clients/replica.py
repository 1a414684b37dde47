"""One server: sends a request, says what came back, or how the request was lost."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from aiohttp import ClientConnectorError, ClientError, ClientSession, ConnectionTimeoutError

from tasks.model_clients.backoff import retry_after_seconds

HIDDEN = "[key]"
SECRET_CHARACTERS = 8
"""Shorter keys ("x", "none") are no secrets, and to strike them out would strike out much of what a judge says."""

_SHOWN = 300
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class UnreachableError(Exception):
    """No connection could be made, so nothing was sent."""


class LostReplyError(Exception):
    """The request was sent, and no reply came back.

    Args:
        problem: what happened.
        timed_out: whether the server kept silent, rather than hung up.
    """

    def __init__(self, problem: str, timed_out: bool) -> None:
        super().__init__(problem)
        self.timed_out = timed_out


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server sent back.

    Args:
        status: the HTTP status.
        content: the parsed JSON, or the text where it is none.
        seconds: from sending to having read it.
        retry_after: seconds that the server asks to wait.
        requests: how often the request was sent until this came back.
    """

    status: int
    content: Any
    seconds: float
    retry_after: float | None = None
    requests: int = 1

    @property
    def is_answer(self) -> bool:
        """Whether it is what was asked for: a JSON object, and no error."""
        return self.status == 200 and isinstance(self.content, Mapping)

    @property
    def message(self) -> str:
        """The server's words about an error, on one short line.

        >>> Reply(400, {"error": {"message": "too long"}}, 0.1).message
        'too long'
        """
        words = " ".join(str(_message_in(self.content)).split())[:_SHOWN]
        return words.encode("utf-8", "replace").decode("utf-8")  # half of a character fits into no table


class Replica:
    """One server.

    Args:
        url: its `/v1` URL.
        session: makes the connections; its default headers carry the key.
        key: the key, so that it can be struck out of error messages.
    """

    def __init__(self, url: str, session: ClientSession, key: str | None) -> None:
        self.url = url
        self._root = url.removesuffix("/v1")
        self._session = session
        self._key = key
        self._proxy = proxy_for(url)

    async def post(self, path: str, body: Mapping[str, Any]) -> Reply:
        """Posts JSON.

        Args:
            path: below `/v1`; one that starts with a slash is taken from the server's root.
            body: the JSON object.

        Raises:
            UnreachableError: there is no connection.
            LostReplyError: there is no reply.
        """
        data = _ENCODER.encode(body).encode("utf-8", "replace")
        return await self._request("POST", path, data)

    async def get(self, path: str) -> Reply:
        """Gets JSON; see `post`."""
        return await self._request("GET", path, None)

    async def _request(self, method: str, path: str, data: bytes | None) -> Reply:
        url = f"{self._root}{path}" if path.startswith("/") else f"{self.url}/{path}"
        start = time.monotonic()
        try:
            async with self._session.request(
                method, url, data=data, proxy=self._proxy, allow_redirects=False
            ) as response:
                raw = await response.read()
                retry_after = retry_after_seconds(response.headers.get("Retry-After"))
                return Reply(response.status, self._content(raw), time.monotonic() - start, retry_after)
        except (ClientConnectorError, ConnectionTimeoutError) as error:
            raise UnreachableError(str(error)) from error
        except TimeoutError as error:
            raise LostReplyError("no reply within the timeout", timed_out=True) from error
        except (ClientError, OSError) as error:
            raise LostReplyError(str(error) or type(error).__name__, timed_out=False) from error

    def _content(self, raw: bytes) -> Any:
        text = raw.decode("utf-8", "replace")
        if self._key is not None and len(self._key) >= SECRET_CHARACTERS:
            text = text.replace(self._key, HIDDEN)
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for a URL (`HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`).

    Looked up once: aiohttp's own way (`trust_env`) does it for every request, in another thread.
    """
    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None
    return getproxies().get(parts.scheme)


def _message_in(content: Any) -> Any:
    if isinstance(content, Mapping):
        for name in ("error", "message", "detail"):
            if content.get(name):
                return _message_in(content[name])
    return content
