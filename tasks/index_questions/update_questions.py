"""Write the questions that an index lacks, and keep those that it still answers.

A question is kept as long as its evidence is in the index. The judge is asked about chunks that hold no evidence of
a question of a kind; what it was asked before comes from the cache of answers, so that a run that was interrupted asks
nothing twice, nor does one about an index that has not changed.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

from metric_core.errors import ConfigError
from metric_core.evidence_spans import digest_text
from metric_core.prompts.judge_questions import ask_index_question
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus
from metric_core.stages import Stage
from tasks.index_questions.evidence import CarriedQuestions, locate_quote
from tasks.index_questions.kinds import KINDS, UNANSWERED, IndexQuestionKind, Partner
from tasks.index_questions.neighbours import Neighbours, WordSearch, find_duplicates
from tasks.index_questions.plain_questions import write_plainly
from tasks.index_questions.written_question import NO_ANSWER, WrittenQuestion
from tasks.models.judges.batching import JudgeBatcher
from tasks.models.judges.protocol import ChoiceAnswer
from tasks.models.protocol import Models
from tasks.runtime.progress import advance
from tasks.runtime.usage import StageUsage
from tasks.sources.anchoring.span_places import Chunk

_NEAREST = 5
"""Nearest passages, by meaning and by words each, that are asked whether they answer a question without an answer."""
_LOOKED_AT = 50
"""Nearest passages among which one of another document is looked for."""
_SHOWN = 40
_ELISION = re.compile(r"\s*\[?(?:\.{3}|…)\]?\s*")
"""Dots in a quote for words that it leaves out."""
_ABOUT_PROMPT = re.compile(r"\b(?:the|this) (?:text|passage)s?\b|\bpassage \[\d\]", re.IGNORECASE)
"""Words of the prompt, which a user who asks the question has not seen."""
_NOT_OF_A_USER = "it asks about the text, as no user would"
_NOTHING_TO_ASK = "nothing to ask about"
_NO_EVIDENCE = "it names no evidence"
_NOT_VERBATIM = "its evidence is not in the passages word for word"
_NOT_OF_ALL = "its evidence is in one passage only"
_REPEATED = "it repeats another question"


@dataclass(frozen=True, slots=True)
class QuestionsOfIndex:
    """The questions of a version of an index.

    Args:
        questions: Questions, earlier ones first.
        new: Number of the last ones, which were written for this version.
        retired: Earlier questions that are asked no more, each with the reason.
        rejected: Number of written questions that were not kept, by kind and reason.
        failed: Number of requests and checks without a usable answer, by reason; the next run asks again.
        unchecked: Checks that the judge cannot make.
        asked_about: Number of chunks about which a judge was asked to write, and which no cached answer is about.
        chunks: Number of chunks.
        documents: Number of questions with evidence in each document, in the order of the index.
        is_plain: True if no language model wrote.
    """

    questions: tuple[WrittenQuestion, ...]
    new: int
    retired: tuple[tuple[WrittenQuestion, str], ...]
    rejected: Mapping[tuple[str, str], int]
    failed: Mapping[str, int]
    unchecked: tuple[str, ...]
    asked_about: int
    chunks: int
    documents: Mapping[str, int]
    is_plain: bool
    usage: StageUsage


@dataclass(frozen=True, slots=True)
class _Request:
    """A question to write, from a chunk or two."""

    kind: IndexQuestionKind
    chunks: tuple[Chunk, ...]


@dataclass(slots=True)
class _Writer:
    """Writes and checks the questions of one version of an index."""

    chunks: Sequence[Chunk]
    models: Models
    batcher: JudgeBatcher
    rejected: Counter[tuple[str, str]] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    unchecked: dict[str, None] = field(default_factory=dict)
    asked_about: set[str] = field(default_factory=set)
    _neighbours: Neighbours | None = None

    def nearest(self, texts: Sequence[str], most: int) -> list[list[Chunk]]:
        """Return the chunks nearest to each of some texts."""
        if not texts:
            return []
        if self._neighbours is None:
            self._neighbours = Neighbours(self.models.embedder(), [chunk.text for chunk in self.chunks])
        return [[self.chunks[place] for place in places] for places in self._neighbours.nearest(texts, most)]

    def write(self, requests: Sequence[_Request]) -> list[WrittenQuestion]:
        """Return the written questions whose evidence is where it must be."""
        by_kind: dict[str, list[_Request]] = {}
        for request in requests:
            by_kind.setdefault(request.kind.name, []).append(request)
        plain = [kind for name in by_kind if not (kind := KINDS[name]).task]
        written: list[WrittenQuestion] = []
        for kind in plain:
            found = write_plainly(kind, [r.chunks[0] for r in by_kind[kind.name]], self.models.pipeline())
            written += [question for question in found if question is not None]
            self.rejected[kind.name, _NOTHING_TO_ASK] += found.count(None)
        judged = [request for request in requests if request.kind.task]
        answers = self.batcher.generate(
            [ask_index_question([c.text for c in r.chunks], r.kind.task, r.kind.members) for r in judged]
        )
        for request, answer in zip(judged, answers, strict=True):
            self.asked_about.update(() if answer.stored else (chunk.digest for chunk in request.chunks))
            if answer.status is not AnswerStatus.ANSWERED:
                self.failed[answer.reason or str(answer.status)] += 1
                continue
            question = _read_reply(request, answer.value)
            if isinstance(question, str):
                self.rejected[request.kind.name, question] += 1
            else:
                written.append(question)
        return written

    def check(self, questions: Sequence[WrittenQuestion]) -> tuple[list[WrittenQuestion], list[WrittenQuestion]]:
        """Return the questions that pass the checks of their kinds, and those that fail one."""
        passing, failing = {question.id: question for question in questions}, []
        near = self._passages_near(questions)
        for check in dict.fromkeys(check for kind in KINDS.values() for check in kind.checks):
            concerned = [question for question in passing.values() if check in KINDS[question.kind].checks]
            asked = [check.ask(question, near.get(question.id, ())) for question in concerned]
            answers = iter(self.batcher.choose([question for each in asked for question in each]))
            for question, each in zip(concerned, asked, strict=True):
                verdict = self._verdict([next(answers) for _ in each], check.wanted, check.rejected)
                if verdict is not True:
                    del passing[question.id]
                if verdict is False:
                    failing.append(question)
                    self.rejected[question.kind, check.rejected] += 1
        return list(passing.values()), failing

    def _passages_near(self, questions: Sequence[WrittenQuestion]) -> Mapping[str, list[str]]:
        """Return the passages that may hold an answer: those that were shown, and the nearest by meaning and words."""
        unanswerable = [question for question in questions if KINDS[question.kind].is_unanswerable]
        if not unanswerable:
            return {}
        by_digest, search = {chunk.digest: chunk for chunk in self.chunks}, WordSearch([c.text for c in self.chunks])
        by_meaning = self.nearest([question.asked for question in unanswerable], _NEAREST)
        near: dict[str, list[str]] = {}
        for question, chunks in zip(unanswerable, by_meaning, strict=True):
            shown = [by_digest[digest] for digest in question.written_from if digest in by_digest]
            by_words = [self.chunks[place] for place in search.best(question.asked, _NEAREST)]
            near[question.id] = list(dict.fromkeys(chunk.text for chunk in (*shown, *chunks, *by_words)))
        return near

    def _verdict(self, answers: Sequence[ChoiceAnswer], wanted: frozenset[str], rejected: str) -> bool | None:
        """Return whether a question passes; None if an answer failed. What the judge cannot answer passes."""
        passes = True
        for answer in answers:
            if answer.status is AnswerStatus.UNDEFINED:
                self.unchecked[f"{rejected}: {answer.reason}"] = None
            elif answer.status is AnswerStatus.FAILED or answer.label is None:
                self.failed[answer.reason or "no usable answer"] += 1
                return None
            elif answer.label not in wanted:
                passes = False
        return passes


def update_questions(
    chunks: Sequence[Chunk],
    carried: CarriedQuestions,
    kinds: Sequence[IndexQuestionKind] | None,
    version: str,
    models: Models,
) -> QuestionsOfIndex:
    """Return the questions for an index: the earlier ones that it still answers, and new ones for what they lack.

    Args:
        chunks: Chunks of the index, in order.
        carried: Questions of its earlier versions; see `carry_questions`.
        kinds: Kinds of new questions; None for all that the judge can write, or without one that can, the plain ones.
        version: Version of the index.

    Raises:
        AssayError: A model cannot be opened, or a kind needs a judge that can write.
    """
    judge = models.judge()
    can_write = judge.can_answer(QuestionKind.INDEX_QUESTION)
    if kinds is None:
        kinds = [kind for kind in KINDS.values() if bool(kind.task) == can_write]
    elif not can_write and (needy := [kind.name for kind in kinds if kind.task]):
        raise ConfigError(
            f"{judge.identity.model} cannot write questions of the kind {needy[0]}: name a language model with --judge "
            "or --judge-writing, or one of the kinds that need none"
        )
    writer = _Writer(chunks, models, JudgeBatcher(judge, partial(advance, Stage.QUESTIONS)))
    _, answered = writer.check([question for question in carried.kept if KINDS[question.kind].is_unanswerable])
    writer.rejected.clear()
    retired = [*carried.retired, *((question, UNANSWERED.rejected) for question in answered)]
    gone = {question.id for question in answered}
    kept = [question for question in carried.kept if question.id not in gone]
    requests = list(_missing(chunks, kept, kinds, writer))
    candidates = writer.write(requests)
    passing, _ = writer.check(candidates)
    repeats = find_duplicates(models.embedder(), [q.asked for q in kept], [q.asked for q in passing])
    new = [replace(q, since=version) for q, is_repeat in zip(passing, repeats, strict=True) if not is_repeat]
    repeated = [q for q, is_repeat in zip(passing, repeats, strict=True) if is_repeat]
    distinct = {question.id: question for question in candidates}.values()
    again = Counter(q.kind for q in (*candidates, *repeated)) - Counter(q.kind for q in distinct)
    writer.rejected.update({(kind, _REPEATED): count for kind, count in again.items()})
    questions = (*kept, *new)
    documents = dict.fromkeys((_source_of(chunk) for chunk in chunks), 0)
    sources = {chunk.digest: _source_of(chunk) for chunk in chunks}
    for question in questions:
        for source in {sources[digest] for digest in question.written_from if question.spans}:
            documents[source] += 1
    return QuestionsOfIndex(
        questions=questions,
        new=len(new),
        retired=tuple(retired),
        rejected={key: count for key, count in writer.rejected.items() if count},
        failed=dict(writer.failed),
        unchecked=tuple(writer.unchecked),
        asked_about=len(writer.asked_about),
        chunks=len(chunks),
        documents=documents,
        is_plain=not any(kind.task for kind in kinds),
        usage=writer.batcher.usage,
    )


def _source_of(chunk: Chunk) -> str:
    """Return the document of a chunk, or the beginning of a chunk whose document is not known."""
    return chunk.document if chunk.document is not None else f"{chunk.text[:_SHOWN].strip()}..."


def _are_beside(chunk: Chunk, other: Chunk) -> bool:
    """Return whether two chunks are known to be of the same document."""
    return chunk.document is not None and chunk.document == other.document


def _missing(
    chunks: Sequence[Chunk], kept: Sequence[WrittenQuestion], kinds: Sequence[IndexQuestionKind], writer: _Writer
) -> Iterator[_Request]:
    """Yield a request for each chunk that still lacks a question of a kind."""
    covered = {(question.kind, digest) for question in kept for digest in question.written_from}
    known = {chunk.digest for chunk in chunks}
    adrift = Counter(question.kind for question in kept if known.isdisjoint(question.written_from))
    after = {a.digest: b for a, b in pairwise(chunks) if _are_beside(a, b)}
    before = {b.digest: a for a, b in pairwise(chunks) if _are_beside(a, b)}
    for kind in kinds:
        heads = [chunk for chunk in _heads(chunks, kind) if (kind.name, chunk.digest) not in covered]
        heads = heads[adrift[kind.name] :]  # a question without evidence outlives its chunk, and counts for another
        if kind.partner is None:
            yield from (_Request(kind, (chunk,)) for chunk in heads)
        elif kind.partner is Partner.NEXT:
            for chunk in heads:
                if (other := after.get(chunk.digest) or before.get(chunk.digest)) is not None:
                    yield _Request(kind, (chunk, other))
        else:
            near = writer.nearest([chunk.text for chunk in heads], _LOOKED_AT)
            for chunk, others in zip(heads, near, strict=True):
                other = next(
                    (each for each in others if not _are_beside(each, chunk) and each.digest != chunk.digest), None
                )
                if other is not None:
                    yield _Request(kind, (chunk, other))


def _heads(chunks: Sequence[Chunk], kind: IndexQuestionKind) -> list[Chunk]:
    """Return the chunks that need a question of a kind, chosen by their texts: other chunks change nothing."""
    ranks = {chunk.digest: int(digest_text(f"{kind.name} {chunk.digest}"), 16) for chunk in chunks}
    found = [chunk for chunk in chunks if ranks[chunk.digest] % kind.one_in == 0]
    return found or [min(chunks, key=lambda chunk: ranks[chunk.digest])]


def _read_reply(request: _Request, reply: Mapping[str, Any]) -> WrittenQuestion | str:
    """Return the question in a reply, or why it cannot be used."""
    kind, texts = request.kind, {name: " ".join(str(reply.get(name, "")).split()) for name in request.kind.members}
    written_from = tuple(chunk.digest for chunk in request.chunks)
    if not texts["question"] or _ABOUT_PROMPT.search(texts["question"]) is not None:
        return _NOT_OF_A_USER if texts["question"] else _NOTHING_TO_ASK
    if kind.is_unanswerable:
        return WrittenQuestion(kind.name, texts["question"], NO_ANSWER, written_from=written_from)
    if not texts["answer"]:
        return _NOTHING_TO_ASK
    quotes = [part for quote in reply["evidence"] for part in _ELISION.split(quote) if part.strip()]
    found = [each for quote in quotes if (each := locate_quote(quote, request.chunks)) is not None]
    if not found or len(found) < len(quotes):
        return _NOT_VERBATIM if quotes else _NO_EVIDENCE
    if len({chunk.digest for chunk, _ in found}) < len(request.chunks):
        return _NOT_OF_ALL
    first = [texts.get(name, "") for name in ("first_question", "first_answer")]
    return WrittenQuestion(
        kind.name,
        texts["question"],
        texts["answer"],
        tuple(point for point in reply["key_points"] if point.strip()),
        tuple(dict.fromkeys(span for _, span in found)),
        written_from,
        f"User: {first[0]}\nAssistant: {first[1]}" if all(first) else None,
    )
