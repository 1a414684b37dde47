"""Answer questions from the handbook, and trace how: a small retrieval program with OpenTelemetry.

It ranks the sections of `handbook/` by BM25 and quotes the sentences that share most words with the question. Each step
is a span with the attributes of OpenInference. Needs `pip install 'rag-assay[traces]'`.

    python examples/handbook_bot.py traces.jsonl
    assay run traces:traces.jsonl
"""

import argparse
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from openinference.semconv.trace import (
    DocumentAttributes,
    MessageAttributes,
    OpenInferenceSpanKindValues,
    SpanAttributes,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.trace import Tracer

HERE = Path(__file__).parent
_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    re.findall("[a-z]+", "a an and are as at be by can do for how i if in is it of on or the to we what when")
)
_K1, _B = 1.2, 0.75


class Section(NamedTuple):
    """A section of the handbook.

    Args:
        name: Its id: file and heading.
        text: Its text.
    """

    name: str
    text: str


class Handbook:
    """The sections of a folder of Markdown files, searched by BM25."""

    def __init__(self, folder: Path) -> None:
        self.sections = [section for path in sorted(folder.glob("*.md")) for section in _sections(path)]
        self._words = [Counter(_words(section.text)) for section in self.sections]
        self._found_in = Counter(word for words in self._words for word in words)
        self._length = sum(words.total() for words in self._words) / len(self._words)

    def search(self, question: str, most: int = 3) -> list[tuple[Section, float]]:
        """Return the best sections with their scores, best first."""
        scores = [self._score(_words(question), words) for words in self._words]
        best = sorted(range(len(scores)), key=lambda place: -scores[place])[:most]
        return [(self.sections[place], round(scores[place], 4)) for place in best if scores[place] > 0]

    def _score(self, question: Iterable[str], words: Counter[str]) -> float:
        score = 0.0
        for word in set(question):
            rarity = math.log(1 + (len(self._words) - self._found_in[word] + 0.5) / (self._found_in[word] + 0.5))
            weight = _K1 * (1 - _B + _B * words.total() / self._length)
            score += rarity * words[word] * (_K1 + 1) / (words[word] + weight)
        return score


def answer(question: str, session: str, handbook: Handbook, tracer: Tracer) -> dict[str, Any]:
    """Answer a question, and return it as a row: the same that its trace holds."""
    with tracer.start_as_current_span("answer question") as chain:
        chain.set_attributes(
            {
                SpanAttributes.OPENINFERENCE_SPAN_KIND: OpenInferenceSpanKindValues.CHAIN.value,
                SpanAttributes.INPUT_VALUE: question,
                SpanAttributes.SESSION_ID: session,
            }
        )
        found = _retrieve(question, handbook, tracer)
        response = _quote(question, [section.text for section, _ in found], tracer)
        chain.set_attribute(SpanAttributes.OUTPUT_VALUE, response)
        return {
            "trace_id": f"{chain.get_span_context().trace_id:032x}",
            "user_input": question,
            "response": response,
            "retrieved_contexts": [section.text for section, _ in found],
            "retrieved_context_ids": [section.name for section, _ in found],
            "retrieved_context_scores": [score for _, score in found],
            "session_id": session,
        }


def _retrieve(question: str, handbook: Handbook, tracer: Tracer) -> list[tuple[Section, float]]:
    with tracer.start_as_current_span("search handbook") as span:
        span.set_attribute(SpanAttributes.OPENINFERENCE_SPAN_KIND, OpenInferenceSpanKindValues.RETRIEVER.value)
        span.set_attribute(SpanAttributes.INPUT_VALUE, question)
        found = handbook.search(question)
        for place, (section, score) in enumerate(found):
            document = f"{SpanAttributes.RETRIEVAL_DOCUMENTS}.{place}."
            span.set_attribute(document + DocumentAttributes.DOCUMENT_ID, section.name)
            span.set_attribute(document + DocumentAttributes.DOCUMENT_CONTENT, section.text)
            span.set_attribute(document + DocumentAttributes.DOCUMENT_SCORE, score)
        return found


def _quote(question: str, passages: Sequence[str], tracer: Tracer) -> str:
    """Return the two sentences of the passages that share most words with the question."""
    with tracer.start_as_current_span("quote sentences") as span:
        asked = set(_words(question))
        sentences = [sentence for passage in passages for sentence in re.split(r"(?<=[.!?])\s+", passage)]
        best = sorted(sentences, key=lambda sentence: -len(asked & set(_words(sentence))))[:2]
        quoted = (
            " ".join(sentence for sentence in sentences if sentence in best) or "The handbook says nothing about it."
        )
        prompt = "\n\n".join([*passages, question])
        for place, (role, text) in (
            (SpanAttributes.LLM_INPUT_MESSAGES, ("user", prompt)),
            (SpanAttributes.LLM_OUTPUT_MESSAGES, ("assistant", quoted)),
        ):
            span.set_attribute(f"{place}.0.{MessageAttributes.MESSAGE_ROLE}", role)
            span.set_attribute(f"{place}.0.{MessageAttributes.MESSAGE_CONTENT}", text)
        span.set_attributes(
            {
                SpanAttributes.OPENINFERENCE_SPAN_KIND: OpenInferenceSpanKindValues.LLM.value,
                SpanAttributes.LLM_MODEL_NAME: "word-overlap",
                SpanAttributes.LLM_TOKEN_COUNT_PROMPT: len(_WORD.findall(prompt)),
                SpanAttributes.LLM_TOKEN_COUNT_COMPLETION: len(_WORD.findall(quoted)),
            }
        )
        return quoted


def _sections(path: Path) -> Iterator[Section]:
    for part in path.read_text(encoding="utf-8").split("\n## ")[1:]:
        heading, _, text = part.partition("\n")
        yield Section(f"{path.name}#{heading.strip().lower().replace(' ', '-')}", text.strip())


def _words(text: str) -> list[str]:
    return [word.rstrip("s") for word in _WORD.findall(text.lower()) if word not in _COMMON]


def questions() -> Iterator[tuple[str, str]]:
    """Yield each question of the example data once, with a session."""
    seen = set()
    for line in (HERE / "handbook.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["user_input"] not in seen:
            seen.add(row["user_input"])
            yield row["user_input"], row["topic"]


def new_provider() -> TracerProvider:
    """Return a provider of tracers for this program."""
    return TracerProvider(resource=Resource.create({"service.name": "handbook-bot"}))


def main() -> None:
    """Answer the questions of the example data, and write or send their traces."""
    parser = argparse.ArgumentParser(description="Answer questions from the handbook, and trace how.")
    parser.add_argument("target", help="file to write the spans to, or http:// address of an OTLP endpoint")
    target = parser.parse_args().target
    provider = new_provider()
    if target.startswith("http"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

        provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(target)))
        _answer_all(provider)
        return
    with Path(target).open("w", encoding="utf-8") as file:
        one_line = ConsoleSpanExporter(out=file, formatter=lambda span: span.to_json(indent=None) + "\n")
        provider.add_span_processor(SimpleSpanProcessor(one_line))
        _answer_all(provider)


def _answer_all(provider: TracerProvider) -> None:
    handbook = Handbook(HERE / "handbook")
    for question, session in questions():
        answer(question, session, handbook, provider.get_tracer("handbook-bot"))
    provider.shutdown()


if __name__ == "__main__":
    main()
