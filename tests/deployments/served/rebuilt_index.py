"""An index of the example's handbook, an assistant on it, and a judge that knows what a text says, as plugins.

`build` writes the index and questions from it into the working folder of runs; a worker imports this file from there.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from flows.config.run_config import RunConfig
from flows.write_questions import QuestionsRequest, write_questions_of_index
from metric_core.prompts.judge_questions import CLAIM, CONTEXT, NO, YES, JudgeQuestion
from tasks.index_questions.neighbours import WordSearch
from tasks.index_questions.written_question import WrittenQuestion
from tasks.models.judges.scripted import ScriptedJudge
from tasks.options.narrow import narrow
from tasks.options.run_model_options import RunModelOptions
from tasks.options.source_options import DataOptions

CHUNKS, QUESTIONS = "chunks.jsonl", "questions.jsonl"
REMOVED = ("parental-leave.md", "remote-work.md")
VERSIONS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "1.40.0": (1, ()),
    "1.41.0": (1, ()),
    "1.42.0": (3, REMOVED),
    "1.42.1": (2, REMOVED),
}
"""Versions of the index, with the number of chunks of a section and the documents that each lacks."""


def build(handbook: Path, folder: Path, version: str) -> dict[str, WrittenQuestion]:
    """Write the chunks of a version, bring the questions up to date, and return these by their ids."""
    chunks = folder / CHUNKS
    chunks.write_text("\n".join(map(json.dumps, _cut(handbook, *VERSIONS[version]))), encoding="utf-8")
    config = RunConfig.model_validate({"source": str(chunks)})
    data, models = narrow(config, DataOptions), narrow(config, RunModelOptions)
    request = QuestionsRequest(data, models, folder / QUESTIONS, version=version)
    return {each.id: each for each in write_questions_of_index(request).questions}


def _cut(handbook: Path, parts: int, removed: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the chunks of the documents: each section is cut into parts between sentences."""
    for path in sorted(each for each in handbook.glob("*.md") if each.name not in removed):
        for section in path.read_text(encoding="utf-8").split("\n## ")[1:]:
            title, _, text = section.partition("\n")
            sentences = text.strip().split(". ")
            size = -(-len(sentences) // parts)
            for start in range(0, len(sentences), size):
                part = ". ".join(sentences[start : start + size])
                key = f"{path.name}/{title}/{size}-{start}"
                yield {"id": key, "document": path.name, "title": title, "text": part}


class Search:
    """The search of the index: the three best chunks by BM25."""

    identity = "BM25"

    def retrieve(self, query: str) -> Sequence[Any]:
        """Return the passages for a question."""
        chunks = [json.loads(line) for line in Path(CHUNKS).read_text(encoding="utf-8").splitlines()]
        best = WordSearch([chunk["text"] for chunk in chunks]).best(query, 3)
        return [{"id": chunks[place]["id"], "text": chunks[place]["text"]} for place in best]


class Quoting:
    """An assistant that answers with the best passage."""

    def generate(self, query: str, passages: Sequence[str]) -> str:
        """Return the response to a question."""
        del query
        return passages[0]


class Reader(ScriptedJudge):
    """A judge to which a text states a fact if it has its words."""

    def __init__(self) -> None:
        super().__init__(states, "reader")


def states(question: JudgeQuestion) -> str:
    """Return whether a text states a fact."""
    return YES if has_words(question.texts[CLAIM], question.texts[CONTEXT]) else NO


def has_words(fact: str, text: str) -> bool:
    """Return whether a text has the words of a fact, one after the other."""
    return " ".join(fact.split()).rstrip(".") in " ".join(text.split())
