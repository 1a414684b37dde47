"""The engine that asks a model behind one or several servers, such as vLLM."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from metric_core.errors import JudgeError
from tasks.metering.accounts import account_of
from tasks.models.clients.jobs import Request, UnusableError
from tasks.models.clients.probe_result import ProbeResult, describe_unknown, read_probe
from tasks.models.clients.replica import Reply, get_model, usage_of
from tasks.models.clients.served_model import ServedModel
from tasks.models.judges.openai.completion import is_readable, read_completions
from tasks.models.judges.openai.model_probe import CHAT
from tasks.models.judges.openai.probe import TOKENIZE, read_token_count
from tasks.models.judges.openai.reply_parsing import OTHER_MODEL
from tasks.models.judges.verifiers.byte_level import token_offsets
from tasks.models.judges.verifiers.chunking import size
from tasks.models.judges.verifiers.engine import ClaimPair, OnVerdict
from tasks.models.judges.verifiers.probabilities import (
    CUT_BY_SERVER,
    NO_VERDICT,
    Verdict,
    class_support,
    decision_support,
    fail,
    read_chat,
    score_support,
    span_support,
)
from tasks.models.judges.verifiers.prompt_formats import chat_body, decision_body, pair_of, text_of, whole_text
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.profile import (
    ChatForm,
    ClassReading,
    DecisionForm,
    DecisionReading,
    PairForm,
    Profile,
    ScoreReading,
    SpanReading,
    TextForm,
    TokenReading,
)
from tasks.runtime.usage import Usage

CLASSIFY, SCORE, POOLING = "/classify", "/score", "/pooling"
"""Endpoints below the root of a server."""

TOKEN_CLASSES = "token_classify"  # noqa: S105 a task of vLLM

BATCH = 16
"""Pairs per request where an endpoint takes several: few are lost with a request, and requests are fewer."""

QUESTIONS = 8
"""Questions per request to a decision model: the fewest that a service takes at once."""

_TEMPLATE_TOKENS = 1024
"""An upper bound of the tokens that a chat template adds, where a server does not count them."""

_DECISION_TOKENS = 256
"""An upper bound of the tokens that a server of decision models writes around a text and a question."""

_SPECIAL_TOKENS = 8
_JOINT = 16
"""Tokens by which a text may differ in a prompt, where it touches other texts."""

_KNOWN = 65_536


def group_pairs(profile: Profile, pairs: Sequence[ClaimPair]) -> list[list[int]]:
    """Return the positions of the pairs that each request asks about.

    >>> from tasks.options.load_profile import load_profile
    >>> pairs = [ClaimPair("Rain.", "It rains."), ClaimPair("Snow.", "It snows."), ClaimPair("Rain.", "It pours.")]
    >>> [group_pairs(load_profile(name), pairs) for name in ("minicheck-7b", "lettucedetect", "pplx-decider-1.1")]
    [[[0], [1], [2]], [[0, 1, 2]], [[0, 2], [1]]]
    """
    if profile.route == "chat":
        return [[position] for position in range(len(pairs))]
    groups: dict[str, list[int]] = {}
    for position, pair in enumerate(pairs):
        groups.setdefault(pair.premise if isinstance(profile.form, DecisionForm) else "", []).append(position)
    most = QUESTIONS if isinstance(profile.form, DecisionForm) else BATCH
    return [group[start : start + most] for group in groups.values() for start in range(0, len(group), most)]


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The tokens of a text: their ids, and their names if the server gives them."""

    text: str
    ids: tuple[int, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PairRequest:
    """A request about pairs.

    Args:
        lengths: Per pair its number of tokens, and the tokens of its claim, where they are needed to read the reply.
    """

    pairs: tuple[ClaimPair, ...]
    request: Request
    lengths: tuple[tuple[int, _Tokens], ...] = ()


class ServedEngine:
    """The model of a verifier behind servers. Thread-safe.

    Args:
        window: Tokens of a request, as profile, servers and options allow.

    Raises:
        UnusableError: A server lacks what the profile needs.
    """

    def __init__(self, profile: Profile, served: ServedModel, options: ServerJudgeOptions, window: int) -> None:
        self.model = served.name
        self.window = window
        self._profile = profile
        self._served = served
        self._account = account_of(options, served.name)
        self._lock = Lock()
        self._counts: OrderedDict[str, int] = OrderedDict()
        (probed,) = self._post([self._tokenize("It rains.", special=False)])
        counts = read_probe(probed, is_read=True, shows=read_token_count(probed) is not None)
        self.has_tokenizer = counts is ProbeResult.YES
        """Whether the server counts tokens."""
        self.unknown = {"tokenizer": describe_unknown(probed)} if counts is ProbeResult.UNKNOWN else {}
        """Why a feature of the server could not be probed, by its name."""
        self._specials = self._find_specials() if profile.route == "pooling" else (0, 0)
        self.overhead = self._find_overhead()

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text; without a tokenizer the number of its bytes, an upper bound."""
        if not self.has_tokenizer:
            return [size(text) for text in texts]
        with self._lock:
            unknown = [text for text in dict.fromkeys(texts) if text not in self._counts]
        replies = self._post([self._tokenize(text, special=False) for text in unknown])
        with self._lock:
            for text, reply in zip(unknown, replies, strict=True):
                counted = read_token_count(reply)
                self._counts[text] = size(text) if counted is None else counted
            found = [self._counts[text] if text in self._counts else size(text) for text in texts]
            while len(self._counts) > _KNOWN:
                self._counts.popitem(last=False)
        return found

    def find_unknown(self, reply: Reply) -> str | None:
        """Return why a reply says nothing about the model; None if it does."""
        is_read = self._profile.route != "chat" or is_readable(reply)
        result = read_probe(reply, is_read=is_read, shows=True)
        return describe_unknown(reply) if result is ProbeResult.UNKNOWN else None

    def ask(self, pairs: Sequence[ClaimPair], on_verdict: OnVerdict) -> None:
        """Ask about each pair; pairs with equal premises go to the same replica."""
        batches = group_pairs(self._profile, pairs)
        refused: list[int] = []

        def send(batches: Sequence[Sequence[int]], on_refused: Callable[[Sequence[int]], object] | None) -> None:
            asked = self.prepare([[pairs[i] for i in batch] for batch in batches])

            def on_reply(number: int, reply: Reply) -> None:
                if not reply.is_answer and len(batches[number]) > 1 and on_refused is not None:
                    on_refused(batches[number])  # one pair may be the reason
                    return
                for position, verdict in zip(batches[number], self.read(asked[number], reply), strict=True):
                    on_verdict(position, verdict)

            self._served.send([one.request for one in asked], on_reply, self._served.meter(self._account))

        send(batches, refused.extend)
        if refused:
            send([[i] for i in refused], None)

    def prepare(self, batches: Sequence[Sequence[ClaimPair]], optional: bool = False) -> list[PairRequest]:
        """Return the requests about batches of pairs.

        Args:
            batches: Pairs; one per batch where the endpoint takes one.
            optional: True if the servers may lack the endpoint.
        """
        form = self._profile.form
        tokens: Mapping[str, _Tokens] = {}
        if self._profile.route == "pooling" and isinstance(form, PairForm):
            texts = [text for batch in batches for pair in batch for text in pair_of(form, pair.premise, pair.claim)]
            tokens = self._tokens_of(list(dict.fromkeys(texts)))
        asked = []
        for batch in batches:
            joined = [self._join(form, pair, tokens) for pair in batch] if isinstance(form, PairForm) and tokens else []
            path, body = self._body(batch, [ids for ids, _ in joined])
            lengths = tuple((len(ids), claim) for ids, claim in joined)
            asked.append(PairRequest(tuple(batch), Request(path, body, batch[0].premise, optional), lengths))
        return asked

    def read(self, asked: PairRequest, reply: Reply) -> list[Verdict]:
        """Return the verdicts on the pairs of a request."""
        pairs = asked.pairs
        usage = usage_of(reply, tells_cached=True)
        shares = [usage] + [Usage()] * (len(pairs) - 1)
        if not reply.is_answer:
            completion = read_completions(reply)[0]
            return [fail(completion.problem or NO_VERDICT, completion.text, share) for share in shares]
        name = get_model(reply)
        if name is not None and name not in self._served.names:
            return [fail(OTHER_MODEL, name, share) for share in shares]
        if (detail := self._find_cut(pairs, usage)) is not None:
            return [fail(CUT_BY_SERVER, detail, share) for share in shares]
        reading = self._profile.reading
        if isinstance(reading, TokenReading):
            return [read_chat(reply, reading, usage)]
        if isinstance(reading, DecisionReading):
            return [decision_support(reply.content, i, reading, share) for i, share in enumerate(shares)]
        return self._read_items(asked, reply, shares)

    def close(self) -> None:
        """Close the connections to the servers."""
        self._served.close()

    def _body(self, pairs: Sequence[ClaimPair], joined: Sequence[Sequence[int]]) -> tuple[str, dict[str, Any]]:
        form = self._profile.form
        if isinstance(form, ChatForm):
            (pair,) = pairs
            return CHAT, chat_body(form, self.model, pair.premise, pair.claim)
        if isinstance(form, DecisionForm):
            route = str(self._profile.route)
            return route, decision_body(form, route, self.model, pairs[0].premise, [pair.claim for pair in pairs])
        if isinstance(form, TextForm):
            return CLASSIFY, {"model": self.model, "input": [text_of(form, each.premise, each.claim) for each in pairs]}
        if self._profile.route == "score":
            firsts, seconds = zip(*(pair_of(form, each.premise, each.claim) for each in pairs), strict=True)
            return SCORE, {"model": self.model, "text_1": list(firsts), "text_2": list(seconds)}
        return POOLING, {"model": self.model, "task": TOKEN_CLASSES, "input": [list(ids) for ids in joined]}

    def _read_items(self, asked: PairRequest, reply: Reply, shares: Sequence[Usage]) -> list[Verdict]:
        items = reply.content.get("data")
        if not isinstance(items, list) or len(items) != len(asked.pairs):
            detail = f"{len(asked.pairs)} results wanted, got {str(items)[:200]}"
            return [fail(NO_VERDICT, detail, share) for share in shares]
        by_index = {item.get("index", i): item for i, item in enumerate(items) if isinstance(item, Mapping)}
        return [self._read_item(asked, i, by_index.get(i, {}), share) for i, share in enumerate(shares)]

    def _read_item(self, asked: PairRequest, number: int, item: Mapping[str, object], usage: Usage) -> Verdict:
        reading = self._profile.reading
        if isinstance(reading, ClassReading):
            return class_support(item.get("probs"), reading, usage)
        if isinstance(reading, ScoreReading):
            return score_support(item.get("score"), reading, usage)
        if isinstance(reading, SpanReading):
            return self._read_tokens(asked.pairs[number], asked.lengths[number], item.get("data"), reading, usage)
        raise TypeError(f"no endpoint answers a reading of kind {reading.kind}")

    def _read_tokens(
        self, pair: ClaimPair, length: tuple[int, _Tokens], data: Any, reading: SpanReading, usage: Usage
    ) -> Verdict:
        wanted, claim = length
        if not isinstance(data, list) or len(data) != wanted:
            got = len(data) if isinstance(data, list) else type(data).__name__
            return fail(NO_VERDICT, f"{wanted} tokens wanted, got {got}", usage)
        text = claim.text
        place = max(text.find(pair.claim), 0)
        offsets = token_offsets(text, claim.names)
        spans = [(0, 0)] * len(claim.ids) if offsets is None else [(a - place, b - place) for a, b in offsets]
        mine = data[wanted - 1 - len(claim.ids) : wanted - 1]  # the last one is special
        return span_support(mine, spans, reading, usage)

    def _join(self, form: PairForm, pair: ClaimPair, tokens: Mapping[str, _Tokens]) -> tuple[list[int], _Tokens]:
        """Return the ids of a pair as the BERT family joins it (special, first, special, second, special)."""
        first, second = (tokens[text] for text in pair_of(form, pair.premise, pair.claim))
        begin, end = self._specials
        return [begin, *first.ids, end, *second.ids, end], second

    def _find_specials(self) -> tuple[int, int]:
        if not self.has_tokenizer:
            problem = f"{TOKENIZE} could not be probed: {self.unknown['tokenizer']}" if self.unknown else "it has none"
            raise UnusableError(f"this profile needs {TOKENIZE} of the server to join premise and claim; {problem}")
        ids = self._tokens_of([""], special=True)[""].ids
        if len(ids) != 2:
            raise UnusableError(
                f"the tokenizer of {self.model!r} puts {len(ids)} special tokens around a text, wanted 2 as of a model "
                f"of the BERT family; the profile {self._profile.name} is for {self._profile.model}"
            )
        return ids[0], ids[1]

    def _tokens_of(self, texts: Sequence[str], *, special: bool = False) -> dict[str, _Tokens]:
        replies = self._post([self._tokenize(text, special=special) for text in texts])
        found = {}
        for text, reply in zip(texts, replies, strict=True):
            ids = reply.content.get("tokens") if reply.is_answer else None
            if not isinstance(ids, list) or not all(type(token) is int for token in ids):
                raise JudgeError(
                    f"the judge server does not tokenize a text of {len(text)} characters: {reply.message}"
                )
            names = reply.content.get("token_strs")
            is_named = isinstance(names, list) and all(isinstance(name, str) for name in names)
            found[text] = _Tokens(text, tuple(ids), tuple(names) if is_named else ())
        return found

    def _tokenize(self, text: str, *, special: bool) -> Request:
        body: dict[str, Any] = {"model": self.model, "prompt": text, "add_special_tokens": special}
        if self._profile.route == "pooling":
            body["return_token_strs"] = True
        return Request(TOKENIZE, body, optional=True)

    def _find_overhead(self) -> int:
        """Return the tokens of a request with empty texts, and of its reply."""
        form = self._profile.form
        text = size(whole_text(self._profile, "", ""))
        if not isinstance(form, ChatForm):
            added = _DECISION_TOKENS if isinstance(form, DecisionForm) else _SPECIAL_TOKENS
            return (self.count([whole_text(self._profile, "", "")])[0] if text else 0) + added + _JOINT
        body = chat_body(form, self.model, "", "")
        asked: dict[str, Any] = {
            name: body[name] for name in ("model", "messages", "chat_template_kwargs") if name in body
        }
        if "documents" in body:  # /tokenize does not know the field, which vLLM hands to the template
            asked["chat_template_kwargs"] = {**asked.get("chat_template_kwargs", {}), "documents": body["documents"]}
        (reply,) = self._post([Request(TOKENIZE, asked, optional=True)])
        counted = read_token_count(reply)
        prompt = text + _TEMPLATE_TOKENS if counted is None else counted
        return prompt + form.max_tokens + _JOINT

    def _find_cut(self, pairs: Sequence[ClaimPair], usage: Usage) -> str | None:
        """Return how a reply shows that its prompt was cut: it counts fewer tokens than the premises have."""
        if not usage.prompt_tokens or not self.has_tokenizer:
            return None
        with self._lock:
            read = pairs[:1] if isinstance(self._profile.form, DecisionForm) else pairs  # others read one for each pair
            known = sum(self._counts.get(pair.premise, 0) for pair in read)
        if usage.prompt_tokens + _JOINT * len(pairs) >= known:
            return None
        return f"{usage.prompt_tokens} tokens were read, of at least {known}"

    def _post(self, requests: Sequence[Request]) -> list[Reply]:
        try:
            return self._served.connection.send(requests) if requests else []
        except UnusableError as error:
            raise JudgeError(f"the judge cannot be used: {error}") from error
