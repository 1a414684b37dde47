"""A model behind one or several servers: connect to them, find it in their lists, identify it, and send requests."""

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

from metric_core.errors import AssayError, EmbedderError, JudgeError
from tasks.metering.accounts import Account
from tasks.metering.meter import current_meter
from tasks.models.clients.connection import Connection
from tasks.models.clients.jobs import Arrived, Request, RequestObserver, UnusableError
from tasks.models.clients.observed_model import (
    Kind,
    ModelMemory,
    ObservedModel,
    RecognizedModel,
    Traits,
    describe_card,
    find_disagreement,
    place_of,
)
from tasks.models.clients.replica import Reply, get_model
from tasks.options.server_options import ServerOptions

_ERRORS: Mapping[Kind, type[AssayError]] = {"judge": JudgeError, "embedder": EmbedderError}
_SUBJECTS: Mapping[Kind, str] = {"judge": "the judge", "embedder": "the embedding server"}


class ServedModel:
    """The model of a judge or embedder behind servers. Several threads may use it.

    It is opened in three steps, between which the caller may send probes: `opening` connects and finds the model in the
    lists of the servers, `observe` asks each replica the questions that identify it, and `recognize` compares it with
    the models seen before. A server that `seems` to serve a known model need only be asked a few: `is_still`.

    Args:
        cards: Entry of the model in the list of each server that could be reached, by the URL of the server.
    """

    def __init__(
        self, kind: Kind, options: ServerOptions, connection: Connection, cards: Mapping[str, Mapping[str, object]]
    ) -> None:
        self.connection = connection
        self.card = next(iter(cards.values()))
        """The entry of the model in the list of the first server."""
        self.name = str(self.card["id"])
        self.names = {self.name}
        """The names of the model in replies, which aliases and gateways give it."""
        self.windows = [length for card in cards.values() if (length := describe_card(card)[1] or 0) > 0]
        """Tokens of the context window, for each server that reports them."""
        self.place = " and ".join(options.urls)
        """The addresses of the servers, for messages."""
        self.observed: ObservedModel
        """The model as its servers show it."""
        self.recognized: RecognizedModel
        """The model compared with those seen before."""
        self._kind = kind
        self._options = options
        self._cards = cards
        self._replicas: list[ObservedModel] = []
        self._known: ObservedModel | None = None
        self._read: Callable[[Sequence[Reply]], Traits]

    @classmethod
    @contextmanager
    def opening(cls, kind: Kind, options: ServerOptions) -> Iterator[Self]:
        """Yield the model that options name; close the connection if the block fails.

        Raises:
            ConfigError: The key that the options name does not exist.
            JudgeError: The servers of a judge cannot be used.
            EmbedderError: The same for those of an embedder.
        """
        connection = Connection(options)
        try:
            listed = connection.get_all("models")
            served = cls(kind, options, connection, _find_cards(listed, options.model))
            if served.has_slots:
                connection.limit(_count_slots(connection.get_all("/props").values()))
            yield served
        except UnusableError as error:
            connection.close()
            raise _ERRORS[kind](f"{_SUBJECTS[kind]} cannot be used: {error}") from error
        except BaseException:
            connection.close()
            raise

    @property
    def is_vllm(self) -> bool:
        """Whether the servers are vLLM."""
        return self.card.get("owned_by") == "vllm"

    @property
    def has_slots(self) -> bool:
        """Whether the servers are llama.cpp, which answers as many conversations at once as it has slots."""
        return self.card.get("owned_by") == "llamacpp"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences for users about the model."""
        return () if self.recognized.warning is None else (self.recognized.warning,)

    def observe(
        self, requests: Sequence[Request], read: Callable[[Sequence[Reply]], Traits]
    ) -> Mapping[str, Sequence[Reply]]:
        """Ask each replica the questions that identify a model, now and whenever it returns.

        Args:
            requests: The questions.
            read: Returns the numbers and the text in the replies of a replica.

        Returns:
            The replies by the URL of the replica.

        Raises:
            UnusableError: No replica can be reached.
        """
        self._read = read
        is_known = weakref.WeakMethod(self._is_known)  # a strong one would keep the connection open

        def is_same(replies: Sequence[Reply]) -> bool:
            known = is_known()
            return known is None or known(replies)

        replies = self.connection.ask_each(requests, is_same)
        self.names |= {name for given in replies.values() for each in given if (name := get_model(each)) is not None}
        self._replicas = [self._describe(url, given) for url, given in replies.items()]
        return replies

    def _is_known(self, replies: Sequence[Reply]) -> bool:
        """Return whether the replies of a replica that returns are those of the first one."""
        return not self._replicas or self._describe("", replies).find_difference(self._replicas[0]) is None

    def _describe(self, url: str, replies: Sequence[Reply]) -> ObservedModel:
        told, length = describe_card(self._cards.get(url, self.card))
        numbers, text = self._read(replies)
        return ObservedModel(self._kind, self.name, told, length, numbers, text, (url,))

    def seems(self, known: ObservedModel) -> bool:
        """Return whether the servers are where a known model was, and describe it as they did."""
        told, length = describe_card(self.card)
        places = [set(map(place_of, urls)) for urls in (self._options.urls, known.urls)]
        return (told, length) == (dict(known.told), known.length) and places[0] <= places[1]

    def is_still(self, known: ObservedModel, positions: Sequence[int]) -> bool:
        """Return whether every replica has answered as a known model did, and take it for that model then.

        Args:
            positions: The probe questions that were asked.
        """
        before = known.select(positions)
        is_same = all(
            each.is_read and each.find_difference(replace(before, length=each.length)) is None
            for each in self._replicas
        )
        self._known = known if is_same else None
        return is_same

    def recognize(self, memory: ModelMemory, learnt: Mapping[str, object] | None = None) -> None:
        """Compare the model with those seen before, once its replicas have been observed.

        Args:
            learnt: Facts about the servers, to be remembered with the model.

        Raises:
            UnusableError: Two replicas serve different models.
        """
        if (disagreement := find_disagreement(self._replicas)) is not None:
            raise UnusableError(f"{disagreement}. All replicas must serve the same model")
        self.observed = replace(self._known or self._replicas[0], urls=self._options.urls, learnt=learnt or {})
        self.recognized = memory.recognize(self.observed)

    def send(
        self,
        requests: Sequence[Request],
        arrived: Arrived = lambda _position, _reply: None,
        observer: RequestObserver | None = None,
    ) -> list[Reply]:
        """Post requests and return the replies in their order; see `Connection.send`.

        Raises:
            JudgeError: The servers of a judge cannot be used any more.
            EmbedderError: The same for those of an embedder.
        """
        try:
            return self.connection.send(requests, arrived, observer)
        except UnusableError as error:
            problem = f"{_SUBJECTS[self._kind]} is lost: {error}. Check the server and run again"
            raise _ERRORS[self._kind](problem) from error

    def meter(
        self, account: Account | None, prompts: Iterable[tuple[str, int]] = (), *, has_counters: bool = True
    ) -> RequestObserver | None:
        """Return the observer of the run's requests, which counts them; None outside a run.

        Args:
            account: Account that they are charged to; None for the prices of the run.
            prompts: Prompts of the requests; see `Meter.observe`.
            has_counters: True if the servers may have counters of tokens.
        """
        meter, options = current_meter(), self._options
        if meter is None:
            return None
        counters = self.connection.read_counters if has_counters else None
        return meter.observe(self.place, self.connection.concurrency * len(options.urls), prompts, counters, account)

    def close(self) -> None:
        """Close the connections to the servers. Happens automatically at the end of the process."""
        self.connection.close()


def _count_slots(replies: Iterable[Reply]) -> int:
    """Return the least number of conversations that servers say they answer at once; one if none says it."""
    told = (reply.content.get("total_slots") for reply in replies if reply.is_answer)
    return min((slots for slots in told if isinstance(slots, int) and slots > 0), default=1)


def _find_cards(replies: Mapping[str, Reply], model: str | None) -> dict[str, Mapping[str, Any]]:
    """Return each server's entry for the named model, or for its only model, which must be the same on all servers.

    Args:
        replies: Replies to `/v1/models`, by the server's URL.
        model: Name of the model; None means the only model.

    Raises:
        UnusableError: A server does not have the model, or has several and none is named.
    """
    chosen: dict[str, Mapping[str, Any]] = {}
    for url, reply in replies.items():
        cards = _read_cards(url, reply)
        names = ", ".join(cards) or "none"
        if model is None and len(cards) != 1:
            raise UnusableError(f"{url} serves {len(cards)} models; name one of them: {names}")
        model = model or next(iter(cards))
        if model not in cards:
            raise UnusableError(f"{url} does not serve the model {model!r}, but: {names}")
        chosen[url] = cards[model]
    return chosen


def _read_cards(url: str, reply: Reply) -> dict[str, Mapping[str, Any]]:
    if reply.status in (401, 403):
        raise UnusableError(
            f"{url} refuses the key ({reply.status}); "
            "make api_key refer to an environment variable or a Secret block with a valid key"
        )
    cards = reply.content.get("data") if reply.is_answer else None
    if not isinstance(cards, list):
        raise UnusableError(
            f"{url}/models gives no list of models ({reply.unread or reply.status}); "
            "the URL must be that of an OpenAI-compatible /v1"
        )
    return {card["id"]: card for card in cards if isinstance(card, Mapping) and isinstance(card.get("id"), str)}
