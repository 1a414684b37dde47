"""Read public data labelled by people as pairs of a question and its label, for each kind of question that has any."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.labelled_examples import contexts, rows
from metric_core.metrics.graded_rankings import ask_passage_relevance
from metric_core.metrics.nvidia import ACCURACY_LABELS, GROUNDEDNESS_LABELS, RELEVANCE_LABELS
from metric_core.prompts.judge_questions import (
    CONTEXTS,
    REFERENCE,
    RESPONSE,
    USER_INPUT,
    YES_NO,
    ChoiceQuestion,
    ask_key_point,
    ask_refusal,
    ask_usefulness_for_reference,
    ask_usefulness_for_response,
    ask_verdict,
)
from metric_core.question_kinds import QuestionKind

LONGEST = 800
"""Characters of the texts of a pair: small models lose the question behind long texts, and are slow."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and whether people say yes to it."""

    group: str
    label: bool
    question: ChoiceQuestion

    @property
    def length(self) -> int:
        """Characters of its texts."""
        return sum(map(len, self.question.texts.values()))


def replies() -> Iterator[Pair]:
    """Yield BEGIN: replies in dialogues, and the knowledge that they should be based on."""
    for row in rows("faithfulness_begin"):
        yield Pair(row["group_id"], row["label_attributable"], ask_verdict(row["response"], contexts(row)))


def citations() -> Iterator[Pair]:
    """Yield AttributionBench: claims of answers, and the texts that they cite."""
    for row in rows("citations_attributionbench"):
        yield Pair(row["group_id"], row["label_attributable"], ask_verdict(row["response"], contexts(row)))


def groundedness(kind: QuestionKind) -> Iterator[Pair]:
    """Yield AttributionBench once more: the claims as whole responses."""
    for row in rows("citations_attributionbench"):
        texts = {CONTEXTS: contexts(row), RESPONSE: row["response"]}
        yield Pair(row["group_id"], row["label_attributable"], ChoiceQuestion(kind, texts, GROUNDEDNESS_LABELS))


def passage_relevance() -> Iterator[Pair]:
    """Yield passages of TREC DL 2019: grades 2 and 3 are relevant."""
    for row in rows("context_relevance_trecdl"):
        yield Pair(row["group_id"], row["label_relevant"], ask_passage_relevance(row["user_input"], contexts(row)))


def context_relevance(kind: QuestionKind) -> Iterator[Pair]:
    """Yield passages of TREC DL 2019 for the two ratings of all contexts."""
    for row in rows("context_relevance_trecdl"):
        texts = {USER_INPUT: row["user_input"], CONTEXTS: contexts(row)}
        yield Pair(row["group_id"], row["label_relevant"], ChoiceQuestion(kind, texts, RELEVANCE_LABELS))


def sufficiency() -> Iterator[Pair]:
    """Yield ClapNQ: passages that answer a question, and passages that do not."""
    for row in rows("context_relevance_clapnq"):
        texts = {USER_INPUT: row["user_input"], CONTEXTS: contexts(row)}
        yield Pair(row["group_id"], row["label_relevant"], ChoiceQuestion(QuestionKind.SUFFICIENCY, texts, YES_NO))


def usefulness(*, for_response: bool) -> Iterator[Pair]:
    """Yield RAMDocs and RGB: passages with the answer, with another one, and with none."""
    ask = ask_usefulness_for_response if for_response else ask_usefulness_for_reference
    for row in rows("context_precision_typed"):
        for passage, useful in zip(row["retrieved_contexts"], row["label_useful"], strict=True):
            yield Pair(row["group_id"], useful, ask(passage, row["user_input"], row["reference"]))


def key_points() -> Iterator[Pair]:
    """Yield QAMPARI: answers that state a nugget in full, or do not state it."""
    for row in rows("nuggets_qampari"):
        if row["label_assignment"] != "partial_support":
            question = ask_key_point(row["nugget"], row["response"])
            yield Pair(row["group_id"], row["label_assignment"] == "support", question)


def accuracy(kind: QuestionKind) -> Iterator[Pair]:
    """Yield NQ301: short answers, right or wrong; the second kind exchanges answer and reference."""
    for row in rows("answer_correctness_nq301"):
        answers = [row["response"], row["reference"]]
        response, reference = answers if kind is QuestionKind.ACCURACY_1 else answers[::-1]
        texts = {USER_INPUT: row["user_input"], RESPONSE: response, REFERENCE: reference}
        yield Pair(row["group_id"], row["label_correct"], ChoiceQuestion(kind, texts, ACCURACY_LABELS))


def refusals() -> Iterator[Pair]:
    """Yield XSTest: replies that refuse, and replies that comply."""
    for row in rows("refusals_xstest"):
        if row["label"] != "3_partial_refusal":
            answers = row["label"] != "2_full_refusal"
            yield Pair(row["group_id"], answers, ask_refusal(row["user_input"], row["response"]))


PAIRS: dict[str, tuple[Callable[[], Iterator[Pair]], int]] = {
    "verdict": (replies, LONGEST),
    "verdict of citations": (citations, LONGEST),
    "usefulness_for_reference": (lambda: usefulness(for_response=False), LONGEST),
    "usefulness_for_response": (lambda: usefulness(for_response=True), LONGEST),
    "key_point": (key_points, 2 * LONGEST),
    "passage_relevance": (passage_relevance, LONGEST),
    "accuracy_1": (lambda: accuracy(QuestionKind.ACCURACY_1), LONGEST),
    "accuracy_2": (lambda: accuracy(QuestionKind.ACCURACY_2), LONGEST),
    "refusal": (refusals, LONGEST),
    "sufficiency": (sufficiency, 2 * LONGEST),
    "groundedness_1": (lambda: groundedness(QuestionKind.GROUNDEDNESS_1), LONGEST),
    "groundedness_2": (lambda: groundedness(QuestionKind.GROUNDEDNESS_2), LONGEST),
    "context_relevance_1": (lambda: context_relevance(QuestionKind.CONTEXT_RELEVANCE_1), LONGEST),
    "context_relevance_2": (lambda: context_relevance(QuestionKind.CONTEXT_RELEVANCE_2), LONGEST),
}
"""Kind of question -> its labelled pairs, and the longest texts of a pair in characters."""


def sample_pairs(name: str, count: int) -> list[Pair]:
    """Return pairs with short texts, as many of each label; the same for every set of prompts.

    A larger sample begins, for each label, with the pairs of a smaller one.
    """
    read, longest = PAIRS[name]
    short = [pair for pair in read() if pair.length <= longest]
    mixed = [short[index] for index in np.random.default_rng(0).permutation(len(short))]
    return [pair for label in (True, False) for pair in [each for each in mixed if each.label is label][: count // 2]]
