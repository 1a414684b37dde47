"""Guard an HTTP server on this machine against web pages, which a browser lets send requests to any address.

A browser sends some requests without asking: those of links, images and forms, those of scripts whose content type a
form could send as well, and every WebSocket. It says in `Host`, `Origin` and `Sec-Fetch-Site` where they come from, so
the guard refuses those that come from elsewhere, before the application sees them. Programs, which send none of these
but `Host`, are let through.
"""

import base64
import hmac
import platform
from collections.abc import Awaitable, Callable, Collection, Iterator, MutableMapping
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any, TypeAlias

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

JSON = "application/json"

MOST_BYTES = 64 * 1024**2
"""Maximum size of a body, unless a server has another one."""

FORM_TYPES = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
"""Media types that a page may send to any server without its consent."""

HEADERS = {
    b"content-security-policy": b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
}
"""Headers of each response that does not have its own."""

HTTP_PORT = 80
"""Port of a `Host` that names none."""

_WILDCARDS = ("", "0.0.0.0", "::")  # noqa: S104 recognized, not listened at
_SINGLE = ("host", "origin", "sec-fetch-site", "content-type", "content-length", "authorization")


class _RefusedError(Exception):
    """A request is not let through."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(slots=True, kw_only=True)
class Guard:
    """An application that passes on only requests that no foreign web page can have sent.

    Refused are, with their status: a `Host` that is not the server's own (421), an `Origin` or `Sec-Fetch-Site` of
    another origin (403), credentials that are missing or wrong (401), a body of another media type (415) and one that
    is too long (413). A WebSocket is refused with 403. Headers that an application sets itself are kept.

    Args:
        host: Address or name at which the server listens.
        port: Port at which the server listens.
        names: Further names by which the server is reached, such as that of its container; each with its port if that
            is another.
        media_types: Media types that a body may have.
        max_bytes: Maximum size of a body, as it is sent.
        linkable: True lets links on foreign pages open pages of the server.
        credentials: `user:password` that each HTTP request must bring as Basic authorization; None lets all in. A
            WebSocket is not asked, as browsers cannot send the header with it: the application has to do that.

    Raises:
        ValueError: A page may send one of the media types without consent.
    """

    app: App = field(kw_only=False)
    host: str
    port: int
    names: Collection[str] = ()
    media_types: Collection[str] = (JSON,)
    max_bytes: int = MOST_BYTES
    linkable: bool = False
    credentials: str | None = field(default=None, repr=False)
    _hosts: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        if FORM_TYPES & set(self.media_types):
            raise ValueError(f"{sorted(FORM_TYPES & set(self.media_types))} can be sent by any web page")
        self._hosts = frozenset(_with_port(name, self.port) for name in (*_names(self.host), *self.names))

    async def __call__(self, scope: MutableMapping[str, object], receive: Receive, send: Send) -> None:
        """Handle a connection: check it, and pass it on or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        try:
            self._check(scope)
        except _RefusedError as refused:
            if scope["type"] == "websocket":
                await receive()
                await send({"type": "websocket.close", "code": 1008, "reason": str(refused)})
            else:
                await _refuse(refused, _with_headers(send))
            return
        if scope["type"] == "websocket":
            await self.app(scope, receive, send)
        else:
            await self._pass_limited(scope, receive, _with_headers(send))

    def _check(self, scope: MutableMapping[str, object]) -> None:
        headers = dict(_read_headers(scope))
        host = headers.get("host", "").lower()
        if not self._is_own(host):
            raise _RefusedError(HTTPStatus.MISDIRECTED_REQUEST, f"got the host {host!r}, which is not this server's")
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            raise _RefusedError(HTTPStatus.FORBIDDEN, f"requests of the origin {origin!r} are refused")
        site = headers.get("sec-fetch-site", "none")
        if site not in ("none", "same-origin") and not (self.linkable and _follows_link(scope, headers)):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "requests of other sites are refused")
        if scope["type"] == "http":
            self._check_authorization(headers)
            self._check_body(headers)

    def _is_own(self, host: str) -> bool:
        authority = _with_port(host, HTTP_PORT)
        if authority in self._hosts:
            return True
        name, _, port = authority.rpartition(":")
        return self.host in _WILDCARDS and port == str(self.port) and _is_address(name)

    def _check_authorization(self, headers: dict[str, str]) -> None:
        if self.credentials is None:
            return
        given, wanted = headers.get("authorization", ""), basic_authorization(self.credentials)
        if not hmac.compare_digest(given.encode(), wanted.encode()):
            raise _RefusedError(HTTPStatus.UNAUTHORIZED, "the credentials of this server are missing or wrong")

    def _check_body(self, headers: dict[str, str]) -> None:
        length = headers.get("content-length", "0")
        if length == "0" and "transfer-encoding" not in headers:
            return
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type not in self.media_types:
            wanted = " or ".join(sorted(self.media_types)) or "no body"
            raise _RefusedError(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"got {media_type or 'a body without Content-Type'}, wanted {wanted}"
            )
        if not length.isdecimal() or int(length) > self.max_bytes:
            raise self._too_long()

    def _too_long(self) -> _RefusedError:
        return _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have {self.max_bytes:,} bytes at most")

    async def _pass_limited(self, scope: MutableMapping[str, object], receive: Receive, send: Send) -> None:
        """Pass a request on; one whose body turns out too long is refused, and ends for the application."""
        size = 0
        is_refused = False

        async def receive_limited() -> Message:
            nonlocal size, is_refused
            message = await receive()
            size += len(message.get("body", b""))
            if size <= self.max_bytes:
                return message
            if not is_refused:
                is_refused = True
                await _refuse(self._too_long(), send)
            return {"type": "http.disconnect"}

        async def send_unless_refused(message: Message) -> None:
            if not is_refused:
                await send(message)

        try:
            await self.app(scope, receive_limited, send_unless_refused)
        except Exception:
            if not is_refused:  # else the application says that the rest of the body did not come
                raise


def basic_authorization(credentials: str) -> str:
    """Return the `Authorization` header of `user:password`.

    Args:
        credentials: User and password, separated by a colon.

    >>> basic_authorization("assay:secret")
    'Basic YXNzYXk6c2VjcmV0'
    """
    return f"Basic {base64.b64encode(credentials.encode()).decode()}"


def _names(host: str) -> list[str]:
    """Return the names by which a server is reached that listens at an address."""
    if host in _WILDCARDS:
        return ["localhost", platform.node()]
    if host == "localhost":
        return [host, "127.0.0.1", "::1"]
    return [host, "localhost"] if _is_address(host) and ip_address(host).is_loopback else [host]


def _with_port(name: str, port: int) -> str:
    if ":" in name and _is_address(name) and not name.startswith("["):
        name = f"[{name}]"
    has_port = ":" in name.rpartition("]")[2]
    return name.lower() if has_port else f"{name.lower()}:{port}"


def _is_address(name: str) -> bool:
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _read_headers(scope: MutableMapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the headers.

    Raises:
        _RefusedError: One that the guard relies on is there twice, and the application might read the other.
    """
    seen = set()
    for raw_name, value in scope["headers"]:
        name = raw_name.decode("latin-1").lower()
        if name in seen and name in _SINGLE:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, f"got the header {name} twice")
        seen.add(name)
        yield name, value.decode("latin-1")


def _follows_link(scope: MutableMapping[str, object], headers: dict[str, str]) -> bool:
    """Return whether a request opens a page of the server in a tab, rather than inside a foreign page."""
    navigates = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return navigates and scope["type"] == "http" and scope["method"] == "GET"


async def _refuse(refused: _RefusedError, send: Send) -> None:
    body = f"{refused}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    if refused.status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b'Basic realm="rag-assay"'))
    headers.append((b"connection", b"close"))  # a body that was not read would be taken for the next request
    await send({"type": "http.response.start", "status": int(refused.status), "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", ()))
            names = {name.lower() for name, _ in own}
            message = {**message, "headers": own + [each for each in HEADERS.items() if each[0] not in names]}
        await send(message)

    return send_with_headers
