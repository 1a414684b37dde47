"""Asks an index about many queries at once: in order, with patience, and with a reason for each that has no reply."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from metric_core.errors import AssayError, PluginError
from tasks.options.retriever_options import RetrieverOptions
from tasks.plugins.instantiate import instantiate
from tasks.plugins.load_object import Group, load_object
from tasks.retrievers.http_retriever import HttpRetriever
from tasks.retrievers.protocol import BadReplyError, Generator, Passage, Retriever, answer_of, passages_of
from tasks.runtime.retry import Backoff, retry

T = TypeVar("T")
_BACKOFF = Backoff(first=0.2, longest=10.0)


@dataclass(frozen=True, slots=True)
class FetchedContexts:
    """What an index gave for a query.

    Args:
        passages: the best first; empty where it found none.
        response: the answer made with them; None where none was asked for.
        problem: why there is nothing; None where there is.
    """

    passages: tuple[Passage, ...] = ()
    response: str | None = None
    problem: str | None = None


class Fetcher:
    """Fetches from the index that the options name.

    Args:
        options: which index, and how it is asked.
        sleep: waits for so many seconds.

    Raises:
        PluginError: an object of the user's own that is not there or can not be made.
        ConfigError: a key that is not there.
    """

    def __init__(self, options: RetrieverOptions, sleep: Callable[[float], None] = time.sleep) -> None:
        self._options = options
        self._sleep = sleep
        self._retriever = _retriever(options)
        self._generator = _generator(options)

    @property
    def identity(self) -> str:
        """What the index is, for the record."""
        return str(self._retriever.identity)

    def fetch(self, queries: Sequence[str]) -> Iterator[FetchedContexts]:
        """What the index gives for each query, in their order; as many are asked at once as the options allow.

        Raises:
            AssayError: the index can not be used at all.
        """
        with ThreadPoolExecutor(self._options.concurrency, thread_name_prefix="retrieval") as pool:
            yield from pool.map(self._one, queries)

    def _one(self, query: str) -> FetchedContexts:
        try:
            found = self._retry(lambda: passages_of(self._retriever.retrieve(query)))[: self._options.top_k]
            if self._generator is None:
                return FetchedContexts(found)
            generator, texts = self._generator, [passage.text for passage in found]
            return FetchedContexts(found, self._retry(lambda: answer_of(generator.generate(query, texts))))
        except AssayError:
            raise
        except (BadReplyError, ConnectionError, TimeoutError) as error:
            return FetchedContexts(problem=str(error))
        except Exception as error:  # noqa: BLE001 code of the user's own, about one row
            return FetchedContexts(problem=f"{type(error).__name__}: {error}")

    def _retry(self, ask: Callable[[], T]) -> T:
        def pause_after(error: Exception, attempt: int) -> float | None:
            is_passing = isinstance(error, ConnectionError | TimeoutError) and attempt <= self._options.max_retries
            return _BACKOFF.seconds(attempt) if is_passing else None

        return retry(ask, pause_after, self._sleep)


def _retriever(options: RetrieverOptions) -> Retriever:
    if "://" in options.index:
        return HttpRetriever(options.index, options)
    retriever: Retriever = instantiate(Group.RETRIEVERS, options.index, options.options).obj
    return retriever


def _generator(options: RetrieverOptions) -> Generator | None:
    if options.generator is None:
        return None
    if "://" in options.generator:
        return HttpRetriever(options.generator, options)
    obj: Any = load_object(Group.RETRIEVERS, options.generator).obj
    obj = obj() if isinstance(obj, type) else obj
    if not callable(getattr(obj, "generate", None)):
        raise PluginError(f"{options.generator} answers nothing: it has no method generate(query, passages)")
    generator: Generator = obj
    return generator
