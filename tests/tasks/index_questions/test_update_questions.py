"""Questions are written for what an index lacks, checked, and kept while it answers them."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import ConfigError
from metric_core.prompts.judge_questions import CONTEXT, CONTEXTS, GenerateQuestion, JudgeQuestion, question_digest
from metric_core.question_kinds import QuestionKind
from metric_core.refusals.refusal_forms import declines
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cached_judge import CachedJudge
from tasks.index_questions.evidence import CarriedQuestions, carry_questions
from tasks.index_questions.kinds import COMPARISON, FOLLOW_UP, KINDS, SEVERAL_PASSAGES, SINGLE_FACT, UNANSWERABLE
from tasks.index_questions.neighbours import WordSearch
from tasks.index_questions.update_questions import QuestionsOfIndex, update_questions
from tasks.index_questions.written_question import NO_ANSWER, WrittenQuestion
from tasks.models.judges.protocol import GenerateAnswer, Judge, OnGenerateAnswer
from tasks.models.judges.scripted import ScriptedJudge
from tasks.runtime.database_address import engine_url
from tasks.sources.anchoring.span_places import Chunk
from tasks.sources.chunk_file import text_id
from tests.tasks.builders import GivenModels
from tests.tasks.index_questions.world import KnowingJudge, WordEmbedder, edit, make_chunks

CHUNKS = make_chunks(600)


def update(
    chunks: Sequence[Chunk], earlier: Sequence[WrittenQuestion] = (), judge: Judge | None = None, version: str = "1"
) -> QuestionsOfIndex:
    """Write with a judge that knows the truth, or with another one."""
    return update_questions(
        chunks, carry_questions(earlier, chunks), None, version, GivenModels(judge or KnowingJudge(), WordEmbedder())
    )


@cache
def first_version() -> QuestionsOfIndex:
    """The questions of CHUNKS."""
    return update(CHUNKS)


def written_about(judge: ScriptedJudge) -> set[str]:
    """The texts that a judge was asked to write from."""
    return {question.texts[CONTEXTS] for question in judge.asked if question.kind == QuestionKind.INDEX_QUESTION}


def test_every_kind_is_written_with_what_it_needs() -> None:
    questions, texts = first_version().questions, {chunk.digest: chunk.text for chunk in CHUNKS}
    counts = Counter(question.kind for question in questions)
    assert counts[SINGLE_FACT.name] > 450
    assert min(counts[kind.name] for kind in (COMPARISON, SEVERAL_PASSAGES, UNANSWERABLE, FOLLOW_UP)) > 2
    for question in questions:
        shown = [texts[digest] for digest in question.written_from]
        assert len(shown) == (2 if KINDS[question.kind].partner else 1)
        if question.kind == UNANSWERABLE.name:
            assert (question.spans, question.key_points) == ((), ())
            continue
        assert question.reference
        assert question.key_points
        for span in question.spans:
            assert any(span.text in text for text in shown)
        assert all(any(span.text in text for span in question.spans) for text in shown)
        assert (question.earlier_turns is not None) == (question.kind == FOLLOW_UP.name)


def test_a_comparison_is_of_two_documents_and_several_passages_are_of_one() -> None:
    for question in first_version().questions:
        documents = {span.document for span in question.spans}
        if question.kind == COMPARISON.name:
            assert len(documents) == 2
        elif question.kind == SEVERAL_PASSAGES.name:
            assert len(documents) == 1


def test_a_search_finds_the_evidence_of_most_questions_among_five() -> None:
    search = WordSearch([chunk.text for chunk in CHUNKS])
    answerable = [question for question in first_version().questions if question.spans]
    found = 0
    for question in answerable:
        best = [CHUNKS[place].text for place in search.best(question.question, 5)]
        found += all(any(span.text in text for text in best) for span in question.spans)
    assert found / len(answerable) >= 0.9


def test_questions_without_an_answer_have_none_in_the_index() -> None:
    index = " ".join(chunk.text for chunk in CHUNKS)
    result = first_version()
    unanswerable = [question for question in result.questions if question.kind == UNANSWERABLE.name]
    assert unanswerable
    for question in unanswerable:
        thing = question.question.rpartition(" ")[2].rstrip("?")
        assert f"The colour of the {thing} is" not in index
        assert declines(question.reference)
    assert result.rejected[UNANSWERABLE.name, "a passage of the index answers it"] > 0


@pytest.mark.parametrize(
    "reason",
    [
        "its evidence is not in the passages word for word",
        "the question alone holds the answer",
        "its evidence does not support its answer",
        "its evidence does not support a key point",
    ],
)
def test_bad_questions_are_rejected_for_what_is_wrong_with_them(reason: str) -> None:
    assert first_version().rejected[SINGLE_FACT.name, reason] > 0


PRICE = "The price of the lamp is 5 euros."
SHOP = Chunk("1", f"# Prices\n- **{PRICE[:-1]}**. The jug's price, by the way, is 7 euros.", "shop.md")


@pytest.mark.parametrize(
    ("quotes", "found"),
    [
        ([f"\u201c{PRICE[:-1].lower()}\u201d"], [f"{PRICE[:-1]}**."]),
        (["The jug\u2019s price ... is 7 euros"], ["The jug's price,", "is 7 euros"]),
        (["The price of the lamp is 5"], ["The price of the lamp is 5"]),
        (["The price of the lamp is 50 euros."], "its evidence is not in the passages word for word"),
        (["", " "], "it names no evidence"),
    ],
)
def test_quotes_are_found_as_models_copy_them(quotes: list[str], found: list[str] | str) -> None:
    def writes(question: JudgeQuestion) -> Any:
        reply = {"question": "What is cheap?", "answer": PRICE, "key_points": [PRICE], "evidence": quotes}
        if isinstance(question, GenerateQuestion):
            return reply
        return "no" if question.texts.get(CONTEXT) == reply["question"] else "yes"

    result = update_questions(
        [SHOP], CarriedQuestions([], []), [SINGLE_FACT], "1", GivenModels(ScriptedJudge(writes), WordEmbedder())
    )
    spans = [span.text for question in result.questions for span in question.spans]
    reasons = [reason for _, reason in result.rejected]
    assert (spans or reasons[0]) == found
    assert all(text in SHOP.text for text in spans)


@pytest.mark.parametrize("asked", ["What does the text say?", "Is it in passage [1] or passage [2]?"])
def test_questions_about_the_prompt_are_rejected(asked: str) -> None:
    def writes(question: JudgeQuestion) -> Any:
        reply = {"question": asked, "answer": PRICE, "key_points": [PRICE], "evidence": [PRICE]}
        return reply if isinstance(question, GenerateQuestion) else "yes"

    result = update_questions(
        [SHOP], CarriedQuestions([], []), [SINGLE_FACT], "1", GivenModels(ScriptedJudge(writes), WordEmbedder())
    )
    assert result.rejected == {(SINGLE_FACT.name, "it asks about the text, as no user would"): 1}


@pytest.mark.simulation
def test_when_a_twentieth_of_the_chunks_changes_no_more_than_that_is_asked_about() -> None:
    before, edited, judge = first_version(), edit(CHUNKS, 0.05), KnowingJudge()
    asked_before = KnowingJudge()
    update(CHUNKS, judge=asked_before)
    after = update(edited, before.questions, judge, "2")
    new_texts = written_about(judge) - written_about(asked_before)
    concerned = {chunk.digest for chunk in edited for text in new_texts if chunk.text in text}
    assert 0.04 * len(CHUNKS) <= len(concerned) <= 0.06 * len(CHUNKS)

    index = " ".join(chunk.text for chunk in edited)
    core = [question for question in after.questions if question.since == "1"]
    assert len(after.questions) - len(core) == after.new > 0
    assert {question.id for question in core} | {gone.id for gone, _ in after.retired} == {
        question.id for question in before.questions
    }
    assert all(span.text in index for question in after.questions for span in question.spans)
    assert all(any(span.text not in index for span in gone.spans) for gone, why in after.retired if "gone" in why)
    unchanged = {chunk.digest for chunk in CHUNKS} & {chunk.digest for chunk in edited}
    rows = {question.id: question.to_row() for question in before.questions}
    for question in core:
        if set(question.written_from) <= unchanged:
            assert question.to_row() == rows[question.id]


def test_nothing_is_asked_about_an_index_that_has_not_changed(tmp_path: Path) -> None:
    chunks, asked = CHUNKS[:40], KnowingJudge()
    cached = CachedJudge(asked, AnswerCache(engine_url(str(tmp_path / "answers.db"))))
    first = update(chunks, judge=cached)
    count = len(asked.asked)
    again = update(chunks, first.questions, cached, "2")
    assert (len(asked.asked), again.new, again.asked_about, again.retired) == (count, 0, 0, ())
    assert again.questions == first.questions


class DyingJudge(KnowingJudge):
    """A judge whose process dies after some written questions."""

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        """Answer one by one, as servers do."""
        answers = []
        for place, question in enumerate(questions):
            if place == 15:
                raise KeyboardInterrupt
            answers += super().generate([question], None)
            if on_answer is not None:
                on_answer(place, answers[-1])
        return answers


def test_a_run_that_died_goes_on_where_it_was(tmp_path: Path) -> None:
    address, dying, judge = engine_url(str(tmp_path / "answers.db")), DyingJudge(), KnowingJudge()
    with pytest.raises(KeyboardInterrupt):
        update(CHUNKS[:40], judge=CachedJudge(dying, AnswerCache(address)))
    update(CHUNKS[:40], judge=CachedJudge(judge, AnswerCache(address)))
    assert dying.asked
    assert not {*map(question_digest, dying.asked)} & {*map(question_digest, judge.asked)}


def test_a_question_survives_an_edit_beside_its_evidence_and_other_chunks() -> None:
    (chunk,) = make_chunks(1)
    first = update([chunk])
    kept = [question for question in first.questions if question.kind == SINGLE_FACT.name]
    text = chunk.text.partition(". ")[2]
    moved = Chunk("moved", f"Something else. {text}", chunk.document, start=100)
    judge = KnowingJudge()
    after = update([moved], kept, judge, "2")
    (question,) = [question for question in after.questions if question.kind == SINGLE_FACT.name]
    assert (question.id, question.since) == (kept[0].id, "1")
    assert (question.spans[0].start, question.spans[0].text) == (116, kept[0].spans[0].text)
    assert question.written_from == (moved.digest,)
    tasks = [asked.instructions["task"] for asked in judge.asked if asked.kind == QuestionKind.INDEX_QUESTION]
    assert SINGLE_FACT.task not in tasks


def test_a_question_without_an_answer_retires_when_the_index_answers_it() -> None:
    (chunk,) = make_chunks(1, first=1)
    question = WrittenQuestion(UNANSWERABLE.name, "What is the colour of the bake?", NO_ANSWER, since="1")
    assert question.id in {each.id for each in update([chunk], [question], version="2").questions}
    answer = "The colour of the bake is green. The price of the zuzu is 7 euros."
    after = update([chunk, Chunk(text_id(answer), answer, "colours.md")], [question], version="2")
    assert [(gone.id, why) for gone, why in after.retired] == [(question.id, "a passage of the index answers it")]


def test_a_question_without_an_answer_outlives_its_chunk_and_no_other_takes_its_place() -> None:
    chunks = make_chunks(1, first=1)
    question = WrittenQuestion(UNANSWERABLE.name, "What is the colour of the bake?", NO_ANSWER, written_from=("old",))
    after = update(chunks, [question], version="2")
    assert [each.id for each in after.questions if each.kind == UNANSWERABLE.name] == [question.id]


def test_a_question_that_repeats_another_is_rejected() -> None:
    (chunk,) = make_chunks(1)
    copy = f"{chunk.text} Again."
    result = update([chunk, Chunk(text_id(copy), copy, "copy.md")])
    assert result.rejected[SINGLE_FACT.name, "it repeats another question"] == 1


def test_what_fails_is_counted_and_asked_again() -> None:
    def fails(question: Any) -> Any:
        return None if question.kind == QuestionKind.INDEX_QUESTION else "yes"

    result = update(CHUNKS[:4], judge=ScriptedJudge(fails))
    assert (result.questions, sum(result.failed.values()) >= 4) == ((), True)
    assert set(result.documents.values()) == {0}


def test_a_judge_that_cannot_write_is_told_which_kinds_need_none() -> None:
    class Silent(KnowingJudge):
        def can_answer(self, kind: Any) -> bool:
            return bool(kind != QuestionKind.INDEX_QUESTION)

    with pytest.raises(ConfigError, match="single_fact"):
        update_questions(
            CHUNKS[:4], CarriedQuestions([], []), [SINGLE_FACT], "1", GivenModels(Silent(), WordEmbedder())
        )
