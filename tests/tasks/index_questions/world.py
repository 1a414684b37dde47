"""A world of facts, an index that says them, and a judge that knows them."""

import random
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metric_core.evidence_spans import digest_text
from metric_core.prompts.judge_questions import CLAIM, CONTEXT, CONTEXTS, USER_INPUT, GenerateQuestion, JudgeQuestion
from metric_core.question_kinds import QuestionKind
from tasks.models.embedders.protocol import EmbedderIdentity
from tasks.models.judges.scripted import ScriptedJudge
from tasks.sources.anchoring.span_places import Chunk
from tasks.sources.chunk_file import text_id

DIMENSIONS = 64
_PRICE = re.compile(r"The price of the (\w+) is (\d+) euros\.")
_COLOUR = re.compile(r"The colour of the (\w+) is \w+\.")
_SYLLABLES = ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu")
_FILLER = ("warehouse", "shelf", "order", "customer", "delivery", "return", "invoice", "discount", "season", "supplier")


def name(number: int) -> str:
    """The name of a thing."""
    digits = f"{number:04}"
    return "".join(_SYLLABLES[int(digit)] for digit in digits)


def make_chunks(count: int, per_document: int = 4, seed: int = 0, first: int = 0) -> list[Chunk]:
    """Chunks that each say the price of one thing; every third says the colour of the thing of another chunk too."""
    draw = random.Random(seed)
    chunks = []
    for number in range(first, first + count):
        filler = " ".join(draw.choice(_FILLER) for _ in range(25)).capitalize()
        sentences = [f"{filler}.", f"The price of the {name(number)} is {draw.randrange(10, 900)} euros."]
        if number % 3 == 0:
            sentences.append(f"The colour of the {name(first + (number - first + 7) % count)} is green.")
        text = " ".join(sentences)
        chunks.append(Chunk(text_id(text), text, f"document-{number // per_document}.md"))
    return chunks


def edit(chunks: Sequence[Chunk], share: float, seed: int = 1) -> list[Chunk]:
    """The chunks with some of them replaced by others of the same documents."""
    draw = random.Random(seed)
    changed = set(draw.sample(range(len(chunks)), round(share * len(chunks))))
    new = iter(make_chunks(len(changed), seed=seed, first=5000))
    edited = []
    for place, chunk in enumerate(chunks):
        text = next(new).text if place in changed else chunk.text
        edited.append(Chunk(text_id(text), text, chunk.document))
    return edited


class KnowingJudge(ScriptedJudge):
    """A judge that knows the prices and colours in a text; it writes badly now and then, as judges do."""

    def __init__(self) -> None:
        super().__init__(answer_truly, "knowing")


def answer_truly(question: JudgeQuestion) -> Any:
    """The right answer of a judge, and for a writer a question about the prices in the passages."""
    texts = question.texts
    if isinstance(question, GenerateQuestion):
        return _write(texts[CONTEXTS], question.schema["properties"])
    if question.kind == QuestionKind.VERDICT:
        return "yes" if set(_PRICE.findall(texts[CLAIM])) <= set(_PRICE.findall(texts[CONTEXT])) else "no"
    if question.kind == QuestionKind.SUFFICIENCY:
        return "yes" if _answers(texts[CONTEXTS], texts[USER_INPUT]) else "no"
    assert question.kind == QuestionKind.PASSAGE_RELEVANCE
    return "3" if _answers(texts[CONTEXT], texts[USER_INPUT]) else "1"


def _answers(text: str, question: str) -> bool:
    about, known = ("price", {thing for thing, _ in _PRICE.findall(text)}) if "price" in question else ("colour", None)
    asked = re.findall(r"the (\w+)", question.rpartition(f"What is the {about} of ")[2])
    return set(asked) <= (set(_COLOUR.findall(text)) if known is None else known)


def _write(text: str, members: Any) -> dict[str, Any]:
    found = _PRICE.findall(text)
    things, sentences = [thing for thing, _ in found], [f"The price of the {thing} is {n} euros." for thing, n in found]
    if set(members) == {"question"}:
        return {"question": f"What is the colour of the {things[0]}?"}
    asked = f"the {things[0]}" if len(things) == 1 else f"the {things[0]} or the {things[1]}"
    reply = {
        "question": f"What is the price of {asked}?",
        "answer": " ".join(sentences),
        "key_points": sentences,
        "evidence": sentences,
        "first_question": f"Do you sell the {things[0]}?",
        "first_answer": "Yes.",
    }
    slip = int(found[0][1]) % 20
    if slip == 1:
        reply["evidence"] = ["The price of everything is right."]  # not in the passage
    elif slip == 2:
        reply["question"] = f"The price of the {things[0]} is {found[0][1]} euros. Is it? What is the price of {asked}?"
    elif slip == 3:
        reply["answer"] = "The price of the moon is 1 euros."
    elif slip == 4:
        reply["key_points"] = [*sentences, "The price of the sun is 1 euros."]
    return {member: reply[member] for member in members}


@cache
def _vector(word: str) -> NDArray[np.float64]:
    return np.random.default_rng(int(digest_text(word), 16)).normal(size=DIMENSIONS)


class WordEmbedder:
    """An embedder of words: texts with the same words have the same vector."""

    identity = EmbedderIdentity("words", "words", "1", DIMENSIONS)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vector of each text: the sum of those of its words, rare ones weighing more."""
        weighted = [[(0.2 if word in _FILLER else 1.0) * _vector(word) for word in _words(text)] for text in texts]
        return np.array([np.sum(vectors, axis=0) for vectors in weighted], np.float32)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
