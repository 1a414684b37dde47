"""Query an index concurrently: in order, with retries, and with a reason for each query that has no usable reply."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from metric_core.errors import AssayError, PluginError
from tasks.options.retriever_options import RetrieverOptions
from tasks.plugins.instantiate import instantiate
from tasks.plugins.load_object import Group, load_object
from tasks.runtime.retry import Backoff, retry
from tasks.sources.retrievers.http_retriever import HttpRetriever
from tasks.sources.retrievers.protocol import (
    BadReplyError,
    Generator,
    Passage,
    Retriever,
    parse_passages,
    parse_response,
)

T = TypeVar("T")
_BACKOFF = Backoff(first=0.2, longest=10.0)


@dataclass(frozen=True, slots=True)
class FetchedContexts:
    """The result of a query.

    Args:
        passages: Passages, best first; empty if the index found none.
        response: Response generated with them; None if none was requested.
        problem: Reason for the missing result; None if there is a result.
    """

    passages: tuple[Passage, ...] = ()
    response: str | None = None
    problem: str | None = None


class Fetcher:
    """A client of the index that the options name.

    Args:
        sleep: Function that waits a number of seconds.

    Raises:
        PluginError: A custom retriever does not exist or cannot be instantiated.
        ConfigError: A key does not exist.
    """

    def __init__(self, options: RetrieverOptions, sleep: Callable[[float], None] = time.sleep) -> None:
        self._options = options
        self._sleep = sleep
        self._retriever = _open_retriever(options)
        self._generator = _open_generator(options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to endpoints; plugins are left as they are."""
        for client in (self._retriever, self._generator):
            if isinstance(client, HttpRetriever):
                client.close()

    @property
    def identity(self) -> str:
        """The identity of the index, for the run's records."""
        return str(self._retriever.identity)

    def fetch(self, queries: Sequence[str]) -> Iterator[FetchedContexts]:
        """Yield the result of each query, in their order; the options limit the concurrency.

        Raises:
            AssayError: The index cannot be used at all.
        """
        with ThreadPoolExecutor(self._options.concurrency, thread_name_prefix="retrieval") as pool:
            yield from pool.map(self._fetch_one, queries)

    def _fetch_one(self, query: str) -> FetchedContexts:
        try:
            passages = self._retry(lambda: parse_passages(self._retriever.retrieve(query)))[: self._options.top_k]
            if self._generator is None:
                return FetchedContexts(passages)
            generator, texts = self._generator, [passage.text for passage in passages]
            return FetchedContexts(passages, self._retry(lambda: parse_response(generator.generate(query, texts))))
        except AssayError:
            raise
        except (BadReplyError, ConnectionError, TimeoutError) as error:
            return FetchedContexts(problem=str(error))
        except Exception as error:  # noqa: BLE001 custom code that fails on one row
            return FetchedContexts(problem=f"{type(error).__name__}: {error}")

    def _retry(self, ask: Callable[[], T]) -> T:
        def pause_after(error: Exception, attempt: int) -> float | None:
            may_retry = isinstance(error, ConnectionError | TimeoutError) and attempt <= self._options.max_retries
            return _BACKOFF.seconds(attempt) if may_retry else None

        return retry(ask, pause_after, self._sleep)


def _open_retriever(options: RetrieverOptions) -> Retriever:
    if "://" in options.index:
        return HttpRetriever(options.index, options)
    retriever: Retriever = instantiate(Group.RETRIEVERS, options.index, options.options).obj
    return retriever


def _open_generator(options: RetrieverOptions) -> Generator | None:
    if options.generator is None:
        return None
    if "://" in options.generator:
        return HttpRetriever(options.generator, options)
    obj: Any = load_object(Group.RETRIEVERS, options.generator).obj
    obj = obj() if isinstance(obj, type) else obj
    if not callable(getattr(obj, "generate", None)):
        raise PluginError(f"{options.generator} cannot generate responses: it has no method generate(query, passages)")
    generator: Generator = obj
    return generator
