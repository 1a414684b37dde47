"""Read public data labelled by people as judge questions; the data is outside the repository."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.everyday_pairs import EVERYDAY_PAIRS
from benchmarks.perturbations import names_in, perturb
from metric_core.prompts.judge_questions import ChoiceQuestion, ask_usefulness_for_reference, ask_verdict
from metric_core.words.tokens import tokenize
from tasks.models.judges.builtin.premises import Premise
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline

DATA = Path(__file__).resolve().parents[2] / "shared" / "meta_eval"


@dataclass(frozen=True, slots=True)
class Example:
    """A labelled judge question.

    Args:
        dataset: Name of the data set.
        group: Examples of one group never end up on both sides of a split.
        label: True for yes.
        question: Question to the judge.
        kind: Name of the change that made a perturbed claim false.
    """

    dataset: str
    group: str
    label: bool
    question: ChoiceQuestion
    kind: str = ""


def rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a file."""
    records: list[dict[str, Any]] = pq.read_table(DATA / f"{name}.parquet").to_pylist()
    return records


def contexts(row: dict[str, Any]) -> str:
    """Return the premise of a row."""
    return "\n".join(row["retrieved_contexts"])


def wice() -> list[Example]:
    """Read WiCE: Wikipedia claims and the articles they cite."""
    return [_verdict("WiCE", row, row["response"], row["label_supported"]) for row in rows("claims_wice")]


def begin() -> list[Example]:
    """Read BEGIN: dialogue replies and the knowledge they should be based on."""
    return [_verdict("BEGIN", row, row["response"], row["label_attributable"]) for row in rows("faithfulness_begin")]


def factcheck() -> list[Example]:
    """Read Factcheck-Bench: claims of language models and snippets from the web."""
    name = "claims_factcheck_stance"
    return [_verdict("Factcheck-Bench", row, row["response"], row["label_supported"]) for row in rows(name)]


def attributions() -> list[Example]:
    """Read AttributionBench: claims of answers and the texts that they cite."""
    name = "citations_attributionbench"
    return [_verdict("AttributionBench", row, row["response"], row["label_attributable"]) for row in rows(name)]


def nuggets() -> list[Example]:
    """Read nuggets of QAMPARI questions and the answers that support them, in full or not."""
    return [
        Example(
            "QAMPARI",
            row["group_id"],
            row["label_assignment"] == "support",
            ask_verdict(row["nugget"], row["response"]),
        )
        for row in rows("nuggets_qampari")
    ]


def factscore() -> list[Example]:
    """Read FActScore: atomic facts about people and their Wikipedia pages; only for testing transfer."""
    return [
        _verdict("FActScore", row, claim["claim"], claim["supported"])
        for row in rows("claims_factscore")
        for claim in row["label_claims"]
    ]


def _verdict(dataset: str, row: dict[str, Any], claim: str, label: bool) -> Example:
    return Example(dataset, row["group_id"], bool(label), ask_verdict(claim, contexts(row)))


def everyday() -> list[Example]:
    """Return our own pairs of short premises and claims that are faithful or differ by a word."""
    return [
        Example("everyday", premise, label, ask_verdict(claim, premise))
        for premise, faithful, false in EVERYDAY_PAIRS
        for claims, label in ((faithful, True), (false, False))
        for claim in claims
    ]


def perturbations(examples: Sequence[Example], pipeline: SpacyPipeline) -> list[Example]:
    """Pair supported claims with shorter premises, and false versions of them with all premises."""
    supported = [example for example in examples if example.label]
    names = names_in([example.question.texts["claim"] for example in supported])
    sentences = pipeline.sentences([example.question.texts["context"] for example in supported])
    perturbed = []
    for example, own_sentences in zip(supported, sentences, strict=True):
        claim, whole = example.question.texts["claim"], example.question.texts["context"]
        for premise in dict.fromkeys([whole, *_shorten(claim, own_sentences)]):
            if premise != whole:
                perturbed.append(Example("perturbed", example.group, True, ask_verdict(claim, premise), "none"))
            for kind, changed in perturb(claim, premise, names):
                perturbed.append(Example("perturbed", example.group, False, ask_verdict(changed, premise), kind))
    return perturbed


def _shorten(claim: str, sentences: Sequence[str]) -> Iterable[str]:
    """Yield the two adjacent sentences, and the single sentence, that share most words with the claim, if enough do."""
    match = Premise(sentences).match(tokenize(claim).tokens)
    if match.in_window >= 0.6:
        yield " ".join(sentences[index] for index in match.window)
    if match.in_sentence >= 0.7:
        yield sentences[match.sentence]


def ramdocs(dataset: str) -> list[Example]:
    """Read RAMDocs (fitted) or RGB (tests transfer): questions with useful, noisy and misinforming passages."""
    return [
        Example(dataset, row["group_id"], bool(useful), _usefulness(row, passage))
        for row in rows("context_precision_typed")
        if row["dataset"] == dataset
        for passage, useful in zip(row["retrieved_contexts"], row["label_useful"], strict=True)
    ]


def clapnq_answers() -> list[Example]:
    """Read ClapNQ: the passage of an answer, passages of other questions, the passage without the answer's source."""
    answered = [row for row in rows("context_relevance_clapnq") if row["label_relevant"]]
    examples = []
    for index, row in enumerate(answered):
        others = (answered[(index + step) % len(answered)] for step in (1, 7))
        passages = [(contexts(row), True), *((contexts(other), False) for other in others)]
        examples += [Example("ClapNQ", row["group_id"], useful, _usefulness(row, text)) for text, useful in passages]
    cut = [row for row in rows("context_recall_clapnq") if row["variant"].startswith("gold minus")]
    return examples + [
        Example("ClapNQ", row["group_id"], False, _usefulness(row, row["retrieved_contexts"][0])) for row in cut
    ]


def _usefulness(row: dict[str, Any], passage: str) -> ChoiceQuestion:
    return ask_usefulness_for_reference(passage, row["user_input"], row["reference"])
