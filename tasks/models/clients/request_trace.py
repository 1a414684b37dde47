"""Trace the requests to model servers, to show them to a user."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TracedRequest:
    """A request to a model server, and its reply.

    Args:
        urls: Servers tried, including the one that answered.
        path: Path below `/v1`; one that starts with a slash is relative to the server's root.
        status: HTTP status of the reply; 0 if none arrived.
        reply: Content of the reply.
        seconds: Time from the request to the end of the reply.
    """

    urls: tuple[str, ...]
    path: str
    body: Mapping[str, Any]
    status: int
    reply: Any
    seconds: float


_TRACE: ContextVar[list[TracedRequest] | None] = ContextVar("request_trace", default=None)


@contextmanager
def trace_requests() -> Iterator[list[TracedRequest]]:
    """Yield a list to which every request of the block and of its threads is added, with its reply."""
    trace: list[TracedRequest] = []
    token = _TRACE.set(trace)
    try:
        yield trace
    finally:
        _TRACE.reset(token)


def note_requests(urls: Sequence[str], sent: Sequence[tuple[str, Mapping[str, object], int, Any, float]]) -> None:
    """Add requests to the trace, if there is one.

    Args:
        urls: Servers that they were sent to.
        sent: Path, body, status, reply and seconds of each request.
    """
    trace = _TRACE.get()
    if trace is not None:
        trace.extend(TracedRequest(tuple(urls), *each) for each in sent)


def is_traced() -> bool:
    """Return whether requests are traced."""
    return _TRACE.get() is not None
