"""Measure questions that are written from an index: what a rebuild asks again, and whether a search finds the evidence.

The judge is scripted: it knows every fact of a made-up index, and writes badly now and then. Plain questions are of
the handbook of the examples.

    python -m benchmarks.index_questions
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from metric_core.prompts.judge_questions import CONTEXTS, GenerateQuestion
from tasks.index_questions.evidence import CarriedQuestions, carry_questions
from tasks.index_questions.kinds import CLOZE, TITLE
from tasks.index_questions.neighbours import WordSearch
from tasks.index_questions.plain_questions import write_plainly
from tasks.index_questions.update_questions import update_questions
from tasks.index_questions.written_question import WrittenQuestion
from tasks.opening.local_models import load_pipeline
from tasks.options.language_options import LanguageSettings
from tasks.sources.anchoring.span_places import Chunk
from tests.tasks.builders import GivenModels
from tests.tasks.index_questions.world import KnowingJudge, WordEmbedder, edit, make_chunks

HANDBOOK = Path(__file__).parents[1] / "examples" / "handbook"
SHARE = 0.05


def sections() -> list[Chunk]:
    """The sections of the handbook."""
    chunks = []
    for path in sorted(HANDBOOK.glob("*.md")):
        for part in path.read_text(encoding="utf-8").split("\n## ")[1:]:
            heading, _, text = part.partition("\n")
            chunks.append(Chunk(f"{path.name}#{heading}", text.strip(), path.name, title=heading.strip()))
    return chunks


def found_by_words(questions: Sequence[WrittenQuestion], chunks: Sequence[Chunk]) -> float:
    """The share of the questions with evidence whose evidence BM25 finds among the first five."""
    search, answerable = WordSearch([chunk.text for chunk in chunks]), [each for each in questions if each.spans]
    best = [[chunks[place].text for place in search.best(each.question, 5)] for each in answerable]
    found = [
        all(any(span.text in text for text in texts) for span in each.spans)
        for each, texts in zip(answerable, best, strict=True)
    ]
    return sum(found) / len(found)


def written_from(judge: KnowingJudge) -> set[str]:
    """The texts that a judge was asked to write from."""
    return {question.texts[CONTEXTS] for question in judge.asked if isinstance(question, GenerateQuestion)}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="Measure questions that are written from an index.")
    parser.add_argument("--chunks", type=int, default=1000)
    parser.add_argument("--rebuilds", type=int, default=5)
    options = parser.parse_args()
    chunks, before = make_chunks(options.chunks), KnowingJudge()
    first = update_questions(chunks, CarriedQuestions([], []), None, "1", GivenModels(before, WordEmbedder()))
    print(f"{len(chunks):,} chunks: {len(first.questions):,} questions, {sum(first.rejected.values())} rejected")
    print(f"BM25 finds the evidence among five of {found_by_words(first.questions, chunks):.3f}")
    asked_before = written_from(before)
    for seed in range(1, options.rebuilds + 1):
        judge, edited = KnowingJudge(), edit(chunks, SHARE, seed)
        after = update_questions(
            edited, carry_questions(first.questions, edited), None, "2", GivenModels(judge, WordEmbedder())
        )
        asked = written_from(judge) - asked_before
        about = sum(any(chunk.text in text for text in asked) for chunk in edited)
        index = "\n".join(chunk.text for chunk in edited)
        verbatim = sum(span.text in index for each in after.questions for span in each.spans)
        spans = sum(len(each.spans) for each in after.questions)
        print(
            f"{SHARE:.0%} of the chunks changed: {about / len(edited):.2%} asked about again, {len(after.retired)} "
            f"retired, {after.new} new, {verbatim} of {spans} spans verbatim"
        )
    handbook = sections()
    pipeline = load_pipeline(LanguageSettings())
    for kind in (CLOZE, TITLE):
        plain = [each for each in write_plainly(kind, handbook, pipeline) if each is not None]
        print(f"{kind.name}: {len(plain)} of {len(handbook)} sections, found {found_by_words(plain, handbook):.3f}")


if __name__ == "__main__":
    main()
