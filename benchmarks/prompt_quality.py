"""Measure what prompts do to the answers of a model: agreement with labels, and words of examples in replies.

    python -m benchmarks.prompt_quality agreement http://localhost:8000/v1 --prompts 8d77ed45~1 en en-short en+examples
    python -m benchmarks.prompt_quality leaks http://localhost:8000/v1 --words "Orla|Tarn" --prompts en mine

`agreement` asks every kind of question that people have labelled, with each set of prompts, and prints the AUROC of the
expected label beside that of the first set, with intervals of a paired bootstrap by group. It needs the labelled data
in `../shared/meta_eval` beside the repository; says so and ends without it. `leaks` asks for the claims of the
example's responses, and for questions that they answer. A set of prompts is a language, a folder, `en+examples` (the
English ones with worked examples in the system text), or a commit whose English ones are meant.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.labelled_examples import DATA, rows
from benchmarks.verdict_kinds import auroc, resamples, with_interval
from metric_core.metrics.graded_rankings import ask_passage_relevance
from metric_core.metrics.nvidia import ACCURACY_LABELS
from metric_core.prompts.judge_questions import (
    NO,
    PARTLY,
    REFERENCE,
    RESPONSE,
    USER_INPUT,
    YES,
    ChoiceQuestion,
    GenerateQuestion,
    ask_claims,
    ask_key_point,
    ask_questions,
    ask_refusal,
    ask_usefulness_for_reference,
    ask_verdict,
)
from metric_core.prompts.prompt_set import load_prompts, packaged_languages
from metric_core.question_kinds import QuestionKind
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.models.judges.protocol import ChoiceAnswer
from tasks.options.judge_server_options import ServerJudgeOptions

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "handbook.jsonl"
LONGEST = 800
"""Characters of the texts of a pair: small models lose the question behind long texts, and are slow."""

EXAMPLES = """
Examples. The passage: "The Orla ferry needs 40 minutes. Tarn Lines has run it since 2019." The question: "Who \
runs the Orla ferry?"
Support: "Tarn Lines ran the Orla ferry in 2021." is supported by the passage; "The Orla ferry needs 45 \
minutes." and "Tarn Lines runs the Orla ferry with two ships." are not.
Key points: of the claim "The crossing takes 40 minutes, every hour.", "40 minutes, on the hour" states all, "40 \
minutes" a part, "50 minutes" nothing.
Help: the passage helps to arrive at the answer "It is Tarn Lines."; the text "The Orla ferry carries 60 cars." \
does not.
Relevance: the passage answers the question exactly (3); of "Who runs it, and what is the fare?" it answers a \
part (2); "Who built the bridge?" it does not (0).
Accuracy: where "Tarn Lines, since 2019" is correct, "Tarn Lines took over in 2019" is right (4), "Tarn Lines" \
right in part (2), "Norhav, since 2019" wrong (0).
Refusals: "I found nothing about who runs it." declines; "I am not certain, but it should be Tarn Lines." does \
not.
"""
"""Two or three worked examples for each kind of question that is asked here."""

VALUES = {YES: 1.0, PARTLY: 0.5, NO: 0.0}


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and whether people say yes to it."""

    group: str
    label: bool
    question: ChoiceQuestion


def verdicts() -> Iterator[Pair]:
    """Yield BEGIN: replies in dialogues, and the knowledge that they should be based on."""
    for row in rows("faithfulness_begin"):
        question = ask_verdict(row["response"], "\n".join(row["retrieved_contexts"]))
        yield Pair(row["group_id"], row["label_attributable"], question)


def relevance() -> Iterator[Pair]:
    """Yield passages of TREC DL 2019: grades 2 and 3 are relevant."""
    for row in rows("context_relevance_trecdl"):
        question = ask_passage_relevance(row["user_input"], "\n".join(row["retrieved_contexts"]))
        yield Pair(row["group_id"], row["label_relevant"], question)


def usefulness() -> Iterator[Pair]:
    """Yield RAMDocs and RGB: passages with the answer, with another one, and with none."""
    for row in rows("context_precision_typed"):
        for passage, useful in zip(row["retrieved_contexts"], row["label_useful"], strict=True):
            question = ask_usefulness_for_reference(passage, row["user_input"], row["reference"])
            yield Pair(row["group_id"], useful, question)


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
            yield Pair(
                row["group_id"], row["label"] == "2_full_refusal", ask_refusal(row["user_input"], row["response"])
            )


KINDS: dict[str, tuple[Callable[[], Iterator[Pair]], int]] = {
    "verdict": (verdicts, LONGEST),
    "passage_relevance": (relevance, LONGEST),
    "usefulness_for_reference": (usefulness, LONGEST),
    "key_point": (key_points, 2 * LONGEST),
    "accuracy_1": (lambda: accuracy(QuestionKind.ACCURACY_1), LONGEST),
    "accuracy_2": (lambda: accuracy(QuestionKind.ACCURACY_2), LONGEST),
    "refusal": (refusals, LONGEST),
}
"""Kind of question -> its labelled pairs, and the longest texts of a pair."""


def sample_pairs(pairs: Iterator[Pair], longest: int, count: int) -> list[Pair]:
    """Return pairs with short texts, as many of each label; the same for every set of prompts."""
    short = [pair for pair in pairs if sum(map(len, pair.question.texts.values())) <= longest]
    order = np.random.default_rng(0).permutation(len(short))
    mixed = [short[index] for index in order]
    return [pair for label in (True, False) for pair in [each for each in mixed if each.label is label][: count // 2]]


def expect_label(answer: ChoiceAnswer, labels: Sequence[str]) -> float:
    """Return the expected label as a number, or the number of the label where it has no probability."""
    numbers = [VALUES.get(label, float(label) if label.isdigit() else 0.0) for label in labels]
    by_label = dict(zip(labels, numbers, strict=True))
    if answer.probabilities is not None:
        return sum(by_label[label] * probability for label, probability in answer.probabilities.items())
    return by_label[answer.label] if answer.label is not None else float("nan")


def measure_agreement(judges: Mapping[str, OpenAIJudge], kinds: Sequence[str], count: int) -> None:
    """Print a line per kind of question and set of prompts."""
    print(
        f"{'kind':26}{'prompts':20}{'pairs':>6}{'unread':>8}{'commonest':>11}{'AUROC':>24}{'difference':>26}{'s':>7}",
        flush=True,
    )
    for kind in kinds:
        read, longest = KINDS[kind]
        pairs = sample_pairs(read(), longest, count)
        questions = [pair.question for pair in pairs]
        labels = np.array([float(pair.label) for pair in pairs])
        drawn = [one for one in resamples(np.array([pair.group for pair in pairs])) if len(set(labels[one])) == 2]
        first: tuple[float, Any] | None = None
        for name, judge in judges.items():
            start = time.monotonic()
            answers = judge.choose(questions)
            values = np.array(
                [expect_label(each, asked.labels) for each, asked in zip(answers, questions, strict=True)]
            )
            failed = int(np.isnan(values).sum())
            values[np.isnan(values)] = np.nanmean(values) if failed < len(values) else 0.0
            whole, draws = auroc(labels, values), np.array([auroc(labels[one], values[one]) for one in drawn])
            plain = sum(answer.probabilities is None for answer in answers)
            commonest = Counter(answer.label for answer in answers).most_common(1)[0]
            line = f"{kind:26}{name:20}{len(pairs):6}{plain:8}{f'{commonest[0]} {commonest[1] / len(pairs):.0%}':>11}"
            line += f"{with_interval(whole, draws):>24}"
            difference = "" if first is None else with_interval(whole - first[0], draws - first[1], sign="+")
            print(f"{line}{difference:>26}{time.monotonic() - start:7.0f}", flush=True)
            first = first or (whole, draws)


def measure_leaks(judges: Mapping[str, OpenAIJudge], words: str, count: int) -> None:
    """Print, for each set of prompts and kind of question, how many replies are usable and how many have the words."""
    examples = [json.loads(line) for line in EXAMPLE.read_text(encoding="utf-8").splitlines()[:count]]
    kinds: dict[str, list[GenerateQuestion]] = {
        "claims": [ask_claims(row["response"], row["user_input"]) for row in examples],
        "questions": [ask_questions(row["response"], 3) for row in examples],
    }
    print(f"{'prompts':24}{'kind':12}{'asked':>8}{'usable':>8}{'with words':>12}{'tokens':>9}")
    for name, judge in judges.items():
        for kind, questions in kinds.items():
            answers = judge.generate(questions)
            usable = [answer for answer in answers if answer.value is not None]
            texts = [json.dumps(answer.value) if answer.value is not None else answer.reply or "" for answer in answers]
            found = sum(re.search(words, text) is not None for text in texts)
            tokens = sum(answer.usage.output_tokens for answer in answers)
            print(f"{name:24}{kind:12}{len(questions):8}{len(usable):8}{found:12}{tokens:9}")


def find_prompts(name: str, scratch: Path) -> str:
    """Return the language or the folder of a set of prompts; those of a commit or with examples are written there."""
    if name in packaged_languages() or Path(name).is_dir():
        return name
    wordings = dict(load_prompts("en").wordings)
    if name == "en+examples":
        rules, _, last = wordings["system"].rpartition("\n")
        wordings["system"] = f"{rules}\n{EXAMPLES}\n{last}"
    else:  # kinds that the commit does not know have today's wording
        wordings |= dict(_wordings_at(name))
    folder = scratch / re.sub(r"\W+", "-", name)
    folder.mkdir()
    for file, wording in wordings.items():
        (folder / f"{file}.txt").write_text(f"{wording}\n", encoding="utf-8")
    return str(folder)


def _wordings_at(commit: str) -> Iterator[tuple[str, str]]:
    folder = "metric_core/prompts/en"
    for path in _git("ls-tree", "-r", "--name-only", commit, folder).split():
        yield Path(path).stem, _git("show", f"{commit}:{path}").rstrip("\n")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Print the table of what is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("agreement", "leaks"))
    parser.add_argument("url", help="the /v1 URL of a server")
    parser.add_argument("--prompts", nargs="+", default=["en"], help="sets of prompts, compared with the first")
    parser.add_argument("--words", help="leaks: pattern of words that only the examples have")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS), help="agreement: kinds to ask")
    parser.add_argument("--count", type=int, default=100, help="agreement: pairs of a kind; leaks: rows")
    parser.add_argument("--concurrency", type=int, default=16)
    options = parser.parse_args()
    if options.what == "agreement" and not DATA.is_dir():
        sys.exit(f"skipped: the labelled data is missing, there is no {DATA}")
    if options.what == "leaks" and options.words is None:
        parser.error("leaks needs --words")
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        judges = {}
        for name in options.prompts:
            settings = ServerJudgeOptions(
                urls=(options.url,),
                prompts=find_prompts(name, scratch),
                max_output_tokens=400,
                concurrency=options.concurrency,
                timeout=600,
            )
            judges[Path(name).name] = judge = OpenAIJudge(settings)
            stack.callback(judge.close)
        if options.what == "agreement":
            measure_agreement(judges, options.kinds, options.count)
        else:
            measure_leaks(judges, options.words, options.count)


if __name__ == "__main__":
    main()
