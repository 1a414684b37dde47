"""Agreement of the built-in judge with people by language: sentences of answers, and whether the passages support them.

    python -m benchmarks.languages

Prints a row per language: sentences, how many of them have no verdict, AUROC of the probabilities beside that of the
share of a sentence's words that the passages have, and the difference with an interval of a paired bootstrap by answer.
Needs the labelled data in `../shared/meta_eval` beside the repository; says so and ends without it.
"""

import ast
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.labelled_examples import DATA, rows
from benchmarks.verdict_kinds import auroc, resamples, with_interval
from metric_core.prompts.judge_questions import YES, ask_verdict
from tasks.models.recognizers.scripts import normalize_words
from tasks.opening.run_models import RunModels
from tasks.options.judged_settings import JudgedSettings

LABELS = {"Supported": 1.0, "Not Supported": 0.0, "Challenging": None}


@dataclass(frozen=True)
class Sentence:
    """A sentence of an answer, with its passages and the label of people."""

    language: str
    answer: str
    text: str
    premise: str
    label: float


def read_sentences() -> Iterator[Sentence]:
    """Yield the labelled sentences."""
    for row in rows("faithfulness_memerag"):
        passages = row["retrieved_contexts"]
        premise = "\n".join(ast.literal_eval(passages) if isinstance(passages, str) else passages)
        for each in json.loads(row["sentences"]):
            if (label := LABELS.get(each["label_factuality"])) is not None:
                yield Sentence(row["language"], row["id"], each["sentence"], premise, label)


def cover(sentence: Sentence) -> float:
    """Return the share of a sentence's words that its passages have."""
    words, known = normalize_words(sentence.text).split(), set(normalize_words(sentence.premise).split())
    return sum(word in known for word in words) / len(words) if words else 0.0


def main() -> None:
    """Print the table."""
    if not DATA.is_dir():
        sys.exit(f"skipped: the labelled data is missing, there is no {DATA}")
    judge = RunModels().open_judges(JudgedSettings())
    sentences = list(read_sentences())
    print(f"{'language':10}{'sentences':>10}{'no verdict':>12}{'AUROC':>26}{'word coverage':>15}{'difference':>26}")
    for language in sorted({sentence.language for sentence in sentences}):
        mine = [sentence for sentence in sentences if sentence.language == language]
        answers = judge.choose([ask_verdict(each.text, each.premise) for each in mine])
        pairs = [(each, given.probabilities) for each, given in zip(mine, answers, strict=True)]
        rated = [(each, probabilities[YES]) for each, probabilities in pairs if probabilities is not None]
        line = f"{language:10}{len(mine):10}{len(mine) - len(rated):12}"
        if len(rated) < len(mine) / 2:
            print(f"{line}{'undefined':>26}")
            continue
        labels = np.array([each.label for each, _ in rated])
        both = np.array([[probability, cover(each)] for each, probability in rated])
        drawn = list(resamples(np.array([each.answer for each, _ in rated])))
        draws = np.array([[auroc(labels[one], both[one, i]) for i in (0, 1)] for one in drawn])
        draws = draws[np.isfinite(draws).all(axis=1)]
        values = [auroc(labels, both[:, i]) for i in (0, 1)]
        difference = with_interval(values[0] - values[1], draws[:, 0] - draws[:, 1], sign="+")
        print(f"{line}{with_interval(values[0], draws[:, 0]):>26}{values[1]:15.3f}{difference:>26}", flush=True)


if __name__ == "__main__":
    main()
