"""Truth about the rows of the handbook in `examples/`: their right diagnosis, and a judge that knows it.

The judge reads claims as sentences. A claim has support from a passage if the passage holds the part of the handbook
that the claim is from; words of `planted_span` have support from none, or from the other company's handbook.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from metric_core.diagnosis.classes import (
    ANSWERED,
    BADLY_RANKED,
    CONTRADICTED,
    MISLED,
    OVER_REFUSED,
    PASSAGE_IGNORED,
    PASSAGE_MISSING,
    RIGHTLY_REFUSED,
    UNSUPPORTED,
)
from metric_core.diagnosis.overlap import coverage, trigrams
from metric_core.prompts import judge_questions as q
from metric_core.prompts.judge_questions import NO, YES, JudgeQuestion
from metric_core.question_kinds import QuestionKind
from metric_core.refusals.refusal_forms import split_rough_sentences

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
FILES = ("handbook.jsonl", "handbook_v2.jsonl")

EXPECTED = {
    "good": ANSWERED.name,
    "partly_wrong": CONTRADICTED.name,
    "unsupported": UNSUPPORTED.name,
    "off_topic": PASSAGE_IGNORED.name,
    "shuffled": BADLY_RANKED.name,
    "noise": MISLED.name,
    "near_miss": PASSAGE_IGNORED.name,
    "missing_context": PASSAGE_MISSING.name,
}
"""Planted fault -> diagnosis. A row of two kinds declines to answer: see `diagnosis_of`."""

_OTHER_COMPANY = "Partner staff"
"""Words of every passage from the handbook that does not apply."""

_NO_ANSWER_EXISTS = {"hb-onboarding-04"}
_WRONG = {"partly_wrong", "unsupported", "noise"}
_LOSES_EVERY_POINT = {"unsupported", "off_topic", "near_miss", "noise", "noncommittal"}
_SAME_FACT = 0.6
"""Least share of a reference sentence's trigrams that a wrong sentence has if both are about the same fact."""

Row = Mapping[str, Any]


@cache
def read_rows(name: str) -> tuple[Row, ...]:
    """Return the rows of a file of examples."""
    return tuple(json.loads(line) for line in (EXAMPLES / name).read_text(encoding="utf-8").splitlines())


def diagnosis_of(row: Row) -> str:
    """Return the right diagnosis of a row."""
    if row["planted"] == "noncommittal":
        return RIGHTLY_REFUSED.name if row["id"] in _NO_ANSWER_EXISTS else OVER_REFUSED.name
    return EXPECTED[row["planted"]]


class Truth:
    """The answers of a judge that knows the truth about rows, as a script for `ScriptedJudge`.

    Args:
        rows: Rows of the examples.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._by_response = {row["response"]: row for row in rows}
        self._references = {row["reference"] for row in rows}
        self._by_contexts = {"\n".join(row["retrieved_contexts"]): row for row in rows}

    def __call__(self, question: JudgeQuestion) -> Any:
        """Return the answer to a question; None for a kind that the judge does not know."""
        texts = question.texts
        match question.kind:
            case QuestionKind.CLAIMS:
                declines = self._declines(texts[q.TEXT])
                return {"claims": [] if declines else split_rough_sentences(texts[q.TEXT])}
            case QuestionKind.REFUSAL:
                return _yes(not self._declines(texts[q.RESPONSE]))
            case QuestionKind.VERDICT:
                return _yes(self._supports(texts[q.CONTEXT], texts[q.CLAIM]))
            case QuestionKind.USEFULNESS_FOR_REFERENCE:
                sentences = split_rough_sentences(texts[q.REFERENCE])
                return _yes(any(self._home(sentence) == texts[q.CONTEXT] for sentence in sentences))
        return None

    def _declines(self, text: str) -> bool:
        row = self._by_response.get(text)
        by_reference = (row["id"] for row in self._rows if row["reference"] == text)
        return row["planted"] == "noncommittal" if row else any(id_ in _NO_ANSWER_EXISTS for id_ in by_reference)

    def _supports(self, premise: str, claim: str) -> bool:
        if premise in self._by_response:
            return self._states(self._by_response[premise], claim)
        if premise in self._references:
            return not self._is_wrong(claim) and coverage(trigrams(claim), trigrams(premise)) > _SAME_FACT
        if self._is_wrong(claim):
            return _OTHER_COMPANY in premise and self._is_noise(claim)
        if (row := self._by_contexts.get(premise)) is not None:
            return row["planted"] != "missing_context"
        return self._home(claim) == premise

    def _states(self, row: Row, point: str) -> bool:
        """Return whether a response states a sentence of its reference."""
        if row["planted"] in _LOSES_EVERY_POINT:
            return False
        wrong = [sentence for sentence in split_rough_sentences(row["response"]) if self._is_wrong(sentence)]
        about = trigrams(point)
        return not any(coverage(about, trigrams(sentence)) > _SAME_FACT for sentence in wrong)

    def _is_wrong(self, claim: str) -> bool:
        return any(row["planted"] in _WRONG for row in self._spanning(claim))

    def _is_noise(self, claim: str) -> bool:
        return any(row["planted"] == "noise" for row in self._spanning(claim))

    def _spanning(self, claim: str) -> Iterable[Row]:
        """Yield the rows in whose planted span the claim is, or which is in the claim."""
        for row in self._rows:
            parts = [part.strip() for part in row["planted_span"].split(";") if part.strip()]
            if claim in row["response"] and any(part in claim or claim.strip(" .;") in part for part in parts):
                yield row

    @cached_property
    def _passages(self) -> Sequence[str]:
        return tuple(dict.fromkeys(passage for row in self._rows for passage in row["retrieved_contexts"]))

    def _home(self, claim: str) -> str:
        """Return the passage that a true claim is from: the one that shares most with it."""
        grams = trigrams(claim)
        own = [passage for passage in self._passages if _OTHER_COMPANY not in passage]
        return max(own, key=lambda passage: coverage(grams, trigrams(passage)))


def _yes(is_true: bool) -> str:
    return YES if is_true else NO
