"""A stub of every endpoint that verifiers are asked through: real HTTP, and a rule in place of a model.

The rule reads premise and claim out of the request by the form of a profile, so a form that loses one of them fails.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from tasks.models.judges.verifiers.byte_level import _bytes_by_character
from tasks.options.profile import ChatForm, DecisionForm, PairForm, Profile, SpanReading, TextForm, TokenReading
from tests.loopback_server import LoopbackServer, QuietHandler

SUPPORTED, UNSUPPORTED = 0.9375, 0.0625
_BLOCK = re.compile(r"(?s).{1,4}")
_CHARACTERS = {byte: character for character, byte in _bytes_by_character().items()}
_BEGIN, _END = 1, 2

Rule = Callable[[str, str], float]
"""Maps a premise and a claim to the probability of support."""


def words_rule(premise: str, claim: str) -> float:
    """Return a high probability if the premise has all words of the claim."""
    known = set(re.findall(r"\w+", premise.lower()))
    return SUPPORTED if set(re.findall(r"\w+", claim.lower())) <= known else UNSUPPORTED


def tokens_of(text: str) -> list[str]:
    """Return the tokens of a text: blocks of four bytes."""
    return _BLOCK.findall(text.encode().decode("latin-1"))


def _id(name: str) -> int:
    """Return the id of a token: the number that its bytes write, behind a one."""
    return int.from_bytes(b"\x01" + name.encode("latin-1"), "big")


def _name(token: int) -> str:
    return token.to_bytes(5, "big").lstrip(b"\x00")[1:].decode("latin-1")


class VerifierServer(LoopbackServer):
    """A stub that serves while its context is entered.

    Args:
        profile: Profile whose form it reads and whose replies it writes.
        rule: Decides on a premise and a claim.
        window: Tokens of a request.
        cuts: If true, a longer prompt is cut; otherwise it is refused.
        told_window: Window in `/v1/models`; by default the real one.
        tokenizer: True if it has the endpoint `/tokenize`.
        drops_documents: True if its chat template drops documents.
        change: Changes the content of a reply.
        name: Name of its model.
        drift: Change of the probability from one question of a request to the next, for decision models.
        noise: Change of the probability from one request to the next, for decision models.
    """

    def __init__(
        self,
        profile: Profile,
        rule: Rule = words_rule,
        *,
        window: int = 4096,
        cuts: bool = False,
        told_window: int | None = None,
        tokenizer: bool = True,
        drops_documents: bool = False,
        change: Callable[[dict[str, Any]], dict[str, Any]] = lambda content: content,
        name: str = "verifier",
        drift: float = 0.0,
        noise: float = 0.0,
    ) -> None:
        self.drift, self.noise, self.label_mass = drift, noise, 0.99
        self.profile, self.rule, self.window, self.cuts = profile, rule, window, cuts
        self.told_window = told_window or window
        self.tokenizer, self.drops_documents, self.change, self.name = tokenizer, drops_documents, change, name
        self.requests: list[tuple[str, bytes]] = []
        self._lock = Lock()
        server = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                card = {"id": server.name, "owned_by": "vllm", "max_model_len": server.told_window}
                self._send(200, {"object": "list", "data": [card]})

            def do_POST(self) -> None:
                raw = self.read_body()
                with server._lock:
                    server.requests.append((self.path, raw))
                self._send(*server.reply(self.path, json.loads(raw)))

            def _send(self, status: int, content: Mapping[str, Any]) -> None:
                self.send(status, json.dumps(content).encode(), "application/json")

        super().__init__(Handler)

    @property
    def url(self) -> str:
        """The `/v1` URL of the stub."""
        return f"{self.origin}/v1"

    def bodies(self, path: str) -> list[dict[str, Any]]:
        """Return the requests to a path."""
        return [json.loads(raw) for where, raw in self.requests if where == path]

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return the status and the content of a reply."""
        routes = {"chat": "/v1/chat/completions", "classify": "/classify", "score": "/score", "pooling": "/pooling"}
        routes |= {"systemone": "/v1/systemone", "decisions": "/v1/decisions"}
        if path == "/tokenize" and self.tokenizer:
            return 200, self._tokenize(body)
        if path != routes["decisions" if self.profile.route == "probed" else self.profile.route or ""]:
            return 404, {"error": {"message": f"Not Found: {path}"}}
        tokens, texts = self._read(path, body)
        if max(tokens) > self.window:
            if not self.cuts:
                message = f"This model's maximum context length is {self.window} tokens, got {max(tokens)}"
                return 400, {"error": {"message": message}}
            texts = [(premise[: self.window * 3], claim) for premise, claim in texts]
            tokens = [min(each, self.window) for each in tokens]
        usage = {"prompt_tokens": sum(tokens), "completion_tokens": 1}
        content = {"model": self.name, "usage": usage, **self._answer(path, texts, body)}
        return 200, self.change(content)

    def _tokenize(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if "messages" in body:
            count = sum(tokens for tokens in self._read("chat", dict(body))[0])
            return {"count": count, "tokens": [0] * count}
        names = tokens_of(body["prompt"])
        ids = [_id(name) for name in names]
        if body.get("add_special_tokens", True):
            ids = [_BEGIN, *ids, _END]
        strings = ["".join(_CHARACTERS[byte] for byte in name.encode("latin-1")) for name in names]
        return {"count": len(ids), "tokens": ids, "token_strs": strings}

    def _read(self, path: str, body: dict[str, Any]) -> tuple[list[int], list[tuple[str, str]]]:
        """Return the tokens of each prompt, and the premise and the claim in it."""
        form = self.profile.form
        if isinstance(form, ChatForm):
            sent = self._chat_texts(body)
            prompt = "\n".join(text for text in sent.values())
            wanted = self._chat_texts(form.model_dump(mode="json"))
            return [len(tokens_of(prompt))], [_extract(list(wanted.values()), [sent.get(key, "") for key in wanted])]
        if isinstance(form, DecisionForm):
            questions = body["questions"].values() if path == "/v1/systemone" else body["questions"]
            state, asked = body["state" if path == "/v1/systemone" else "input"], [q["instructions"] for q in questions]
            pairs = [_extract([form.state, form.question], [state, text]) for text in asked]
            return [len(tokens_of(f"{state}{text}")) for text in asked], pairs
        if path == "/classify" and isinstance(form, TextForm):
            return [len(tokens_of(text)) for text in body["input"]], [_extract([form.text], [t]) for t in body["input"]]
        assert isinstance(form, PairForm)
        if path == "/score":
            pairs = list(zip(body["text_1"], body["text_2"], strict=True))
        else:
            pairs = [self._unjoin(ids) for ids in body["input"]]
        tokens = [len(tokens_of(one)) + len(tokens_of(other)) + 3 for one, other in pairs]
        return tokens, [_extract([form.first, form.second], list(pair)) for pair in pairs]

    def _chat_texts(self, body: Mapping[str, Any]) -> dict[str, str]:
        texts = {f"{i} {each['role']}": each["content"] for i, each in enumerate(body["messages"])}
        documents = body.get("documents") or (body.get("chat_template_kwargs") or {}).get("documents") or ()
        texts |= {f"document {i}": "" if self.drops_documents else each["text"] for i, each in enumerate(documents)}
        return texts

    def _unjoin(self, ids: list[int]) -> tuple[str, str]:
        assert ids[0] == _BEGIN
        assert ids[-1] == _END
        middle = ids.index(_END)
        first, second = (
            "".join(map(_name, part)).encode("latin-1").decode() for part in (ids[1:middle], ids[middle + 1 : -1])
        )
        return first, second

    def _answer(self, path: str, texts: list[tuple[str, str]], body: Mapping[str, Any]) -> dict[str, Any]:
        probabilities = [self.rule(premise, claim) for premise, claim in texts]
        reading = self.profile.reading
        if path in ("/v1/systemone", "/v1/decisions"):
            shift = self.noise * len(self.requests)
            moved = [min(max(p + self.drift * i - shift, 0.0), 1.0) for i, p in enumerate(probabilities)]
            if path == "/v1/decisions":
                return {"answers": [{"name": f"q{i}", "probability": p} for i, p in enumerate(moved)]}
            told = {f"q{i}": {"label_mass": self.label_mass} for i in range(len(moved))}
            return {"answers": {f"q{i}": {"noul": p} for i, p in enumerate(moved)}, "diagnostics": told}
        if path == "/classify":
            return {"data": [{"index": i, "probs": [1 - p, p], "num_classes": 2} for i, p in enumerate(probabilities)]}
        if path == "/score":
            return {"data": [{"index": i, "score": p} for i, p in enumerate(probabilities)]}
        if path == "/pooling":
            assert isinstance(reading, SpanReading)
            return {
                "data": [
                    self._token_classes(i, *pair, ids)
                    for i, (pair, ids) in enumerate(zip(texts, body["input"], strict=True))
                ]
            }
        return {"choices": [self._choice(probabilities[0])]}

    def _token_classes(self, index: int, premise: str, claim: str, ids: list[int]) -> dict[str, Any]:
        """Return a class per token: those of words that the premise lacks are unsupported."""
        classes = [[0.5, 0.5] for _ in ids]
        names = tokens_of(claim)
        start, place = len(ids) - 1 - len(names), 0
        wrong = [m.span() for m in re.finditer(r"\w+", claim) if self.rule(premise, m[0]) < 0.5]
        for i, name in enumerate(names):
            is_wrong = any(place < end and place + len(name) > begin for begin, end in wrong)
            place += len(name)
            classes[start + i] = [UNSUPPORTED, SUPPORTED] if is_wrong else [SUPPORTED, UNSUPPORTED]
        return {"index": index, "data": classes}

    def _choice(self, probability: float) -> dict[str, Any]:
        reading = self.profile.reading
        if not isinstance(reading, TokenReading):
            score = "PASS" if probability >= 0.5 else "FAIL"
            text = json.dumps({"REASONING": ["- the words"], "SCORE": score})
            return {"message": {"content": text}, "finish_reason": "stop"}
        yes, no = reading.supported[0].capitalize(), reading.unsupported[0].capitalize()
        answer = yes if probability >= 0.5 else no
        top = [_logprob(yes, probability), _logprob(no, 1 - probability)]
        step = {**_logprob(answer, max(probability, 1 - probability)), "top_logprobs": top}
        steps, text = [step], answer
        if reading.behind is not None:
            before = [*"<think>\n</think>\n", reading.behind, " "]
            steps = [*({**_logprob(token, 1.0), "top_logprobs": []} for token in before), step]
            text = "".join(before) + f"{answer} </score>"
        return {"message": {"content": text}, "finish_reason": "stop", "logprobs": {"content": steps}}


def _logprob(token: str, probability: float) -> dict[str, Any]:
    return {"token": token, "logprob": math.log(probability) if probability > 0 else -9999.0}


def _extract(forms: list[str], sent: list[str]) -> tuple[str, str]:
    """Return premise and claim out of the texts of a request; a text that the form does not explain is an error."""
    found = {"premise": "", "claim": ""}
    for form, text in zip(forms, sent, strict=True):
        pattern = re.escape(form).replace(r"\{premise\}", "(?P<premise>.*)").replace(r"\{claim\}", "(?P<claim>.*)")
        match = re.fullmatch(pattern, text, re.DOTALL)
        if match is None and text:
            raise ValueError(f"{text!r} is not of the form {form!r}")
        found |= match.groupdict() if match else {}
    return found["premise"], found["claim"]
