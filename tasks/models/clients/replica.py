"""Send requests to one model server, and read its replies; a field of another type counts as missing."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import ClientConnectorError, ClientError, ClientResponse, ClientSession, ConnectionTimeoutError

from tasks.models.clients.backoff import retry_after_seconds
from tasks.runtime.http_bodies import BoundedBody, UnreadableBodyError
from tasks.runtime.usage import Usage

HIDDEN = "[key]"
SECRET_CHARACTERS = 8
"""Shortest key that is hidden; shorter ones ("x", "none") are not secrets, and hiding them would hide ordinary text."""

_SHOWN = 300
_DETAILS = {"cached_tokens": "prompt_tokens_details", "reasoning_tokens": "completion_tokens_details"}
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class UnreachableError(Exception):
    """The server could not be connected to, so the request was not sent."""


class LostReplyError(Exception):
    """The request was sent, but no reply arrived.

    Args:
        timed_out: True if the server did not answer in time, False if it closed the connection.
    """

    def __init__(self, problem: str, timed_out: bool) -> None:
        super().__init__(problem)
        self.timed_out = timed_out


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of a server.

    Args:
        status: HTTP status; 0 if no reply arrived.
        content: Parsed JSON, or the text if it is not JSON.
        seconds: Time from sending the request to the end of the reply.
        retry_after: Seconds that the server asks to wait.
        requests: Number of times that the request was sent.
        unread: Reason why the body was not read to its end; None if it was. The content is then this reason.
        conversations: Number of conversations that were sent in one request with this one.
        splits: Number of requests with several conversations, beginning with this one, that failed and were sent again
            one by one.
    """

    status: int
    content: Any
    seconds: float
    retry_after: float | None = None
    requests: int = 1
    unread: str | None = None
    conversations: int = 1
    splits: int = 0

    @property
    def is_answer(self) -> bool:
        """Whether the reply is a JSON object and not an error."""
        return self.status == 200 and isinstance(self.content, dict)

    @property
    def message(self) -> str:
        """The server's error message, on one short line.

        >>> Reply(400, {"error": {"message": "too long"}}, 0.1).message
        'too long'
        """
        words = " ".join(str(_message_in(self.content)).split())[:_SHOWN]
        return words.encode("utf-8", "replace").decode("utf-8")  # tables cannot hold half of a surrogate pair


def get_choices(reply: Reply) -> list[Mapping[str, Any]]:
    """Return the choices in a reply; an error has none.

    >>> get_choices(Reply(200, {"choices": [{"index": 0}, None]}, 0.1)), get_choices(Reply(200, {"choices": "no"}, 0.1))
    ([{'index': 0}], [])
    """
    choices = reply.content.get("choices") if reply.is_answer else None
    return [choice for choice in choices if isinstance(choice, Mapping)] if isinstance(choices, list) else []


def get_model(reply: Reply) -> str | None:
    """Return the model that a reply names; None if it names none.

    >>> get_model(Reply(200, {"model": "Qwen/Qwen3-8B"}, 0.1))
    'Qwen/Qwen3-8B'
    """
    name = reply.content.get("model") if reply.is_answer else None
    return name if isinstance(name, str) and name else None


def get_mapping(content: Mapping[str, object], name: str) -> Mapping[str, Any]:
    """Return the object with a name; an empty one if there is none."""
    value = content.get(name)
    return value if isinstance(value, Mapping) else {}


def get_count(reply: Reply, name: str) -> int:
    """Return a count from the `usage` of a reply; 0 if it is not reported.

    >>> get_count(Reply(200, {"usage": {"prompt_tokens": 7}}, 0.1), "prompt_tokens")
    7
    """
    return get_reported_count(reply, name) or 0


def get_counts(reply: Reply) -> tuple[int, int, int]:
    """Return the prompt tokens, the cached ones of these and the output tokens of a reply; 0 where none are reported.

    >>> get_counts(Reply(200, {"usage": {"prompt_tokens": 7, "completion_tokens": 1}}, 0.1))
    (7, 0, 1)
    >>> get_counts(Reply(200, {"usage": {"input_tokens": 7, "output_tokens": 1}}, 0.1))  # of a decision model
    (7, 0, 1)
    """
    usage = reply.content.get("usage") if reply.is_answer else None
    if not isinstance(usage, dict):
        return 0, 0, 0
    details = usage.get("prompt_tokens_details", usage.get("input_tokens_details"))
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    prompt = usage.get("prompt_tokens", usage.get("input_tokens"))
    return _count(prompt), _count(cached), _count(usage.get("completion_tokens", usage.get("output_tokens")))


def _count(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0


def get_reported_count(reply: Reply, name: str) -> int | None:
    """Return a count from the `usage` of a reply; None if it is not reported."""
    if not reply.is_answer:
        return None
    usage = get_mapping(reply.content, "usage")
    value = (get_mapping(usage, _DETAILS[name]) if name in _DETAILS else usage).get(name)
    return value if type(value) is int and value >= 0 else None


def usage_of(reply: Reply, tells_cached: bool) -> Usage:
    """Return the cost of a reply; an error has no tokens.

    Args:
        tells_cached: True if the server reports how many tokens it found in its prefix cache.
    """
    prompt, cached, output = get_counts(reply)
    unreported = 0 if tells_cached and reply.conversations == 1 else prompt
    return Usage(reply.requests, prompt, cached, output, reply.seconds, unreported, reply.splits)


class Replica:
    """A client of one server.

    Args:
        session: HTTP session, whose default headers contain the key. It must not decompress replies.
        key: Key to hide in error messages.
        max_reply_bytes: Maximum number of bytes of a reply, after decompression.
        proxy: URL of the HTTP proxy; None for none, or if the session has a proxy.
    """

    def __init__(
        self, url: str, session: ClientSession, key: str | None, max_reply_bytes: int, proxy: str | None = None
    ) -> None:
        self.url = url
        self._root = url.removesuffix("/v1")
        self._session = session
        self._key = key
        self._max_reply_bytes = max_reply_bytes
        self._proxy = proxy
        self.timeout = session.timeout
        """Limits of the time that a request may take."""

    async def post(self, path: str, body: Mapping[str, object]) -> Reply:
        """Post a JSON object and return the reply.

        Args:
            path: Path below `/v1`; one that starts with a slash is relative to the server's root.

        Raises:
            UnreachableError: The server cannot be connected to.
            LostReplyError: No reply arrived.
        """
        return await self._request("POST", path, _encode(body))

    async def get(self, path: str) -> Reply:
        """Get a path and return the reply; see `post`.

        Args:
            path: Path below `/v1`; one that starts with a slash is relative to the server's root.
        """
        return await self._request("GET", path, None)

    async def _request(self, method: str, path: str, data: bytes | None) -> Reply:
        url = f"{self._root}{path}" if path.startswith("/") else f"{self.url}/{path}"
        start = time.monotonic()
        try:
            async with self._session.request(
                method, url, data=data, proxy=self._proxy, allow_redirects=False, timeout=self.timeout
            ) as response:
                retry_after = retry_after_seconds(response.headers.get("Retry-After"))
                try:
                    raw = await self._read(response)
                except UnreadableBodyError as error:
                    response.close()  # the rest is not worth reading
                    problem = str(error)
                    return Reply(response.status, problem, time.monotonic() - start, retry_after, unread=problem)
                return Reply(response.status, self._content(raw), time.monotonic() - start, retry_after)
        except (ClientConnectorError, ConnectionTimeoutError) as error:
            raise UnreachableError(str(error)) from error
        except TimeoutError as error:
            raise LostReplyError("no reply within the timeout", timed_out=True) from error
        except (ClientError, OSError) as error:
            raise LostReplyError(str(error) or type(error).__name__, timed_out=False) from error

    async def _read(self, response: ClientResponse) -> bytes:
        body = BoundedBody(response.headers.get("Content-Encoding"), self._max_reply_bytes)
        async for piece in response.content.iter_any():
            body.add(piece)
        return body.content()

    def _content(self, raw: bytes) -> Any:
        has_secret = self._key is not None and len(self._key) >= SECRET_CHARACTERS and self._key.encode() in raw
        if not has_secret:
            try:
                return orjson.loads(raw)
            except ValueError:
                pass  # the slow parser accepts more: broken characters, NaN
        text = raw.decode("utf-8", "replace")
        if has_secret and self._key is not None:
            text = text.replace(self._key, HIDDEN)
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text


def _encode(body: Mapping[str, object]) -> bytes:
    """Return the JSON of a body; halves of surrogate pairs become question marks."""
    try:
        return orjson.dumps(body)
    except TypeError:
        return _ENCODER.encode(body).encode("utf-8", "replace")


def _message_in(content: Any) -> Any:
    if isinstance(content, Mapping):
        for name in ("error", "message", "detail"):
            if content.get(name):
                return _message_in(content[name])
    return content
