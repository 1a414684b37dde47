"""Declare the profile of a verifier: the exact form of its requests, and how its replies are read."""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

PREMISE, CLAIM = "premise", "claim"
PLACE = re.compile(r"\{(premise|claim)\}")
"""A place of a text in a form. Other braces are literal."""

Text: TypeAlias = Annotated[str, Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Message(_Part):
    """A message of a chat request."""

    role: Literal["system", "user", "assistant"]
    content: Text


class ChatForm(_Part):
    """A request to `/v1/chat/completions`."""

    kind: Literal["chat"] = "chat"
    messages: tuple[Message, ...] = Field(min_length=1)
    documents: tuple[dict[str, str], ...] = Field((), description="Documents that the chat template places itself.")
    chat_template_kwargs: dict[str, Any] = Field({}, description="Arguments of the chat template.")
    extra_body: dict[str, Any] = Field({}, description="Further fields of the request.")
    max_tokens: int = Field(1, ge=1, description="Maximum number of tokens of the reply.")
    top_logprobs: int = Field(0, ge=0, le=20, description="Number of most probable tokens to ask for; 0 asks for none.")


class TextForm(_Part):
    """One text, classified as a whole: by `/classify` of a server, or in this process."""

    kind: Literal["text"] = "text"
    text: Text


class PairForm(_Part):
    """Two texts, which the tokenizer joins: by `/score` or `/pooling` of a server, or in this process."""

    kind: Literal["pair"] = "pair"
    first: Text
    second: Text


class DecisionForm(_Part):
    """A question about a text for a decision model: by `/v1/systemone` or `/v1/decisions` of a server.

    All claims on one premise are asked about in one request.
    """

    kind: Literal["decision"] = "decision"
    state: Text = Field("{premise}", description="What the questions of a request are about.")
    question: Text = Field(description="Question with the answers yes and no; yes means supported.")
    criteria: dict[Literal["true", "false"], Text] = Field(
        {}, description="What yes (true) and no (false) mean, for systemone."
    )


Form: TypeAlias = Annotated[ChatForm | TextForm | PairForm | DecisionForm, Field(discriminator="kind")]


class TokenReading(_Part):
    """Read the probabilities of one token of the reply.

    The probability of support is the sum over the tokens that mean supported, or one less the sum over those that mean
    unsupported. `normalized` divides by the sum over both.
    """

    kind: Literal["tokens"] = "tokens"
    supported: tuple[Text, ...] = Field(min_length=1, description="Tokens that mean supported, in lower case.")
    unsupported: tuple[Text, ...] = Field(min_length=1, description="Tokens that mean unsupported, in lower case.")
    normalized: bool = Field(description="Divide by the probability of all these tokens.")
    behind: str | None = Field(
        None, description="Text of the reply that the token follows; by default it is the first."
    )
    strip: bool = Field(True, description="Ignore spaces around a token.")


class ClassReading(_Part):
    """Read the probability of a class, by softmax over `classes`."""

    kind: Literal["classes"] = "classes"
    classes: tuple[int, ...] = Field((0, 1), min_length=2, description="Positions of the classes in the output.")
    supported: int = Field(1, description="The one that means supported.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.supported not in self.classes:
            raise ValueError(f"supported must be one of the classes {self.classes}, got {self.supported}")
        return self


class ScoreReading(_Part):
    """Read one number in [0, 1], the score of a pair."""

    kind: Literal["score"] = "score"
    higher_is_supported: bool = True


class SpanReading(_Part):
    """Read a class per token of the claim: a claim is as supported as its least supported token."""

    kind: Literal["token_classes"] = "token_classes"
    classes: int = Field(2, ge=2)
    unsupported: int = Field(1, ge=0, description="The class of tokens that the premise does not support.")


class DecisionReading(_Part):
    """Read the probability of yes from a typed answer."""

    kind: Literal["decision"] = "decision"
    least_label_mass: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Least probability of yes and no together, among all tokens, of a usable answer. "
        "Only systemone reports it.",
    )


Reading: TypeAlias = Annotated[
    TokenReading | ClassReading | ScoreReading | SpanReading | DecisionReading,
    Field(discriminator="kind"),
]

Output: TypeAlias = Literal["sequence", "first_token", "decoder_step", "every_token"]
Route: TypeAlias = Literal["chat", "classify", "score", "pooling", "systemone", "decisions", "probed"]


class InProcess(_Part):
    """The way to run a model in this process."""

    architecture: Text = Field(
        "AutoModelForSequenceClassification", description="The class of transformers that loads it."
    )
    foundation: str | None = Field(
        None, description="Model whose configuration and tokenizer it uses, if it lacks them."
    )
    key_mapping: dict[str, str] = Field({}, description="Pattern of names of weights -> replacement.")
    output: Output = Field("sequence", description="Place of the scores of the classes in the output.")
    decoder_start: int = Field(0, ge=0, description="For decoder_step: the token that decoding starts from.")


class SentenceParts(_Part):
    """Parts of a premise that are made of whole sentences, which are joined again, as many as fit."""

    most: int = Field(ge=16, description="Largest size of a part; a longer sentence is a part of its own.")
    unit: Literal["words", "tokens", "marks"] = Field(
        "words",
        description="The unit of the size: words between white space, tokens of the model, or words and marks of "
        "punctuation each.",
    )
    between: str = Field(" ", description="Text that joins the sentences.")
    keeps_lines: bool = Field(True, description="Whether the ends of lines end sentences, and stay.")


class Chunks(_Part):
    """The size of requests. Texts that are longer are asked about in parts."""

    window: int = Field(ge=64, description="Largest number of tokens of a request, as the model was trained.")
    parts: SentenceParts | None = Field(
        None,
        description="Parts of a premise. Default: it stays as it is, divided if it has to be.",
    )
    reserve: int = Field(64, ge=8, description="Number of tokens kept for the claim.")
    overlap: float = Field(0.125, ge=0, le=0.5, description="Share of a part that the next one repeats.")
    claim: Literal["whole", "sentences"] = Field(
        "whole", description="A claim is asked about as a whole, or sentence by sentence; the least supported counts."
    )

    @property
    def needs_sentences(self) -> bool:
        """Whether requests depend on how texts are split into sentences."""
        return self.claim == "sentences" or self.parts is not None

    def longest_part(self, room: int) -> int:
        """Return a number of tokens that a part of a premise can have in a request with this room for it."""
        return room if self.parts is None else min(room, self.parts.most)


class Canary(_Part):
    """A question whose answer is beyond doubt."""

    premise: Text
    claim: Text
    supported: bool


class Serving(_Part):
    """The flags with which vLLM serves a model."""

    dtype: Literal["auto", "half", "float16", "bfloat16", "float", "float32"] = "auto"
    max_model_len: int | None = Field(None, ge=64)
    extra_args: tuple[str, ...] = ()


_COMMON = (
    (
        "The ferry to Ornholm leaves at nine in the morning.",
        "The ferry to Ornholm leaves at nine in the morning.",
        True,
    ),
    (
        "The ferry to Ornholm leaves at four in the afternoon.",
        "The ferry to Ornholm leaves at nine in the morning.",
        False,
    ),
    ("The shop is closed on Mondays. Bread costs three euros.", "Bread costs three euros.", True),
    ("The shop is closed on Mondays. Bread costs three euros.", "Bread costs seven euros.", False),
    ("Anna Berg wrote the report in 2019. It has 48 pages.", "The report has 48 pages.", True),
    ("The museum has a cafe with a view of the river.", "The report has 48 pages.", False),
)


class Profile(_Part):
    """The profile of a verifier.

    Args:
        schema_version: Version of this format.
        version: Version of its content; increase it when answers may change.
        model: Name of the model at the hub; empty if the profile is for several.
        source: Page that describes the model.
        license: License of the weights.
        languages: ISO 639 codes of the languages it was trained on.
        accuracy: Published accuracy, with its source.
        memory_gb: GPU memory that serving it takes, about.
        form: The request.
        delimiters: Texts that end a place of the form; an occurrence in a premise or a claim is broken by a space.
        reading: Rule by which a reply is read.
        threshold: A claim is supported if its probability is at least this, or above it if `above` is true.
        above: See `threshold`.
        chunks: Sizes of requests.
        route: The endpoint of a server that answers; None if no server serves the model.
        in_process: Instructions for running it in this process; None if it must be served.
        canaries: Questions that a working verifier answers correctly.
        note: Sentence for reports.
    """

    schema_version: Literal[1] = Field(1, description="Version of this format.")
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", description="Name of the profile.")
    version: int = Field(ge=1, description="Version of its content, to be increased when answers may change.")
    model: str = Field("", description="Name of the model at the hub; empty if the profile is for several.")
    source: Text = Field(description="Page that describes the model.")
    license: Text = Field(description="License of the weights.")
    languages: tuple[str, ...] = Field(description="ISO 639 codes of the languages that the model was trained on.")
    accuracy: str = Field("", description="Published accuracy, with its source.")
    memory_gb: float | None = Field(None, gt=0, description="GPU memory in GB that the model takes, about.")
    note: str = Field("", description="Sentence for reports.")
    route: Route | None = Field(
        None,
        description="Endpoint of a server that serves the model; probed: decisions or systemone, as the server has.",
    )
    form: Form = Field(description="Form of a request, with the places {premise} and {claim}.")
    delimiters: tuple[Text, ...] = Field(
        (), description="Texts that end a place of the form. One that occurs in a premise or a claim gets a space."
    )
    reading: Reading = Field(description="How a reply is read.")
    threshold: float = Field(0.5, ge=0, le=1, description="Smallest probability of a claim that counts as supported.")
    above: bool = Field(False, description="The probability must be above the threshold, not equal to it.")
    chunks: Chunks = Field(description="Sizes of requests.")
    in_process: InProcess | None = Field(None, description="How to run the model in this process.")
    serving: Serving = Field(default_factory=Serving, description="Flags with which vLLM serves the model.")
    canaries: tuple[Canary, ...] = Field(
        tuple(Canary(premise=premise, claim=claim, supported=supported) for premise, claim, supported in _COMMON),
        min_length=4,
        description="Questions that a working verifier answers correctly, in both directions. Default: six in English.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        places = [place for text in _texts(self.form) for place in PLACE.findall(text)]
        for place in (PREMISE, CLAIM):
            if places.count(place) != 1:
                raise ValueError(f"the form must have {{{place}}} once, found {places.count(place)} times")
        if self.route is None and self.in_process is None:
            raise ValueError("a profile needs route (how a server is asked), in_process, or both")
        self._check_route()
        if not {canary.supported for canary in self.canaries} == {True, False}:
            raise ValueError("canaries must have supported = true and supported = false")
        if self.chunks.reserve >= self.chunks.window:
            raise ValueError(
                f"chunks.reserve, of {self.chunks.reserve} tokens, must be smaller than chunks.window, of "
                f"{self.chunks.window}"
            )
        return self

    def _check_route(self) -> None:
        form: str
        readings: tuple[str, ...]
        wanted: dict[str | None, tuple[str, tuple[str, ...]]] = {
            "chat": ("chat", ("tokens",)),
            "classify": ("text", ("classes",)),
            "score": ("pair", ("score",)),
            "pooling": ("pair", ("token_classes",)),
            "systemone": ("decision", ("decision",)),
            "decisions": ("decision", ("decision",)),
            "probed": ("decision", ("decision",)),
        }
        if self.route is None:
            form, readings = str(self.form.kind), ("classes", "token_classes")
        else:
            form, readings = wanted[self.route]
        if self.form.kind != form or self.reading.kind not in readings:
            raise ValueError(
                f"the route {self.route} needs a form of kind {form} and a reading of kind {' or '.join(readings)}, "
                f"got {self.form.kind} and {self.reading.kind}"
            )
        if isinstance(self.reading, TokenReading) and isinstance(self.form, ChatForm) and not self.form.top_logprobs:
            raise ValueError("a reading of tokens needs form.top_logprobs of at least 1")
        if self.in_process is not None and not isinstance(self.reading, ClassReading | SpanReading):
            raise ValueError(f"in_process needs a reading of classes or token_classes, got {self.reading.kind}")

    def digest(self) -> str:
        """Return a digest of everything that determines an answer."""
        ignored = {"source", "license", "languages", "accuracy", "memory_gb", "note", "serving", "canaries"}
        content = json.dumps(self.model_dump(mode="json", exclude=ignored), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def supports(self, probability: float) -> bool:
        """Return whether a probability means that the claim is supported."""
        return probability > self.threshold if self.above else probability >= self.threshold


def _texts(part: Any) -> Iterator[str]:
    """Yield all texts of a form."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, BaseModel):
        for name in type(part).model_fields:
            yield from _texts(getattr(part, name))
    elif isinstance(part, dict):
        for value in part.values():
            yield from _texts(value)
    elif isinstance(part, list | tuple):
        for value in part:
            yield from _texts(value)
