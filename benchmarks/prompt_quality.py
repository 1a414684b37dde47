"""Measure what prompts do to the answers of a model: agreement with labels, attacks, and words of examples in replies.

    python -m benchmarks.prompt_quality agreement http://localhost:8000/v1 --prompts en 8d77ed45~1 en-short en+unfenced
    python -m benchmarks.prompt_quality attacks http://localhost:8000/v1 --prompts en en+unfenced --count 60
    python -m benchmarks.prompt_quality leaks http://localhost:8000/v1 --words "Orla|Tarn" --prompts en mine

`agreement` asks every kind of question that people have labelled, with each set of prompts, and prints the AUROC of the
expected label and the share of right labels beside those of the first set, with intervals of a paired bootstrap by
group, and the AUROC of the shorter and the longer half. `attacks` adds each attack of the example to passages that do
not support a claim, and prints how far the mean probability of yes moves. Both need the labelled data in
`../shared/meta_eval` beside the repository; they say so and end without it. `leaks` asks for the claims of the
example's responses, and for questions that they answer. A set of prompts is a language, a folder, `en+examples` (the
English ones with worked examples in the system text), `en+unfenced` (texts after their labels, without fences and
without what the system text says of them), or a commit whose English ones are meant. With `--answers FILE`, values are
kept there by prompt, so that a longer or a changed run asks only what is new.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.labelled_examples import DATA
from benchmarks.labelled_pairs import PAIRS, Pair, sample_pairs
from benchmarks.verdict_kinds import auroc, resamples, with_interval
from metric_core.prompts.judge_questions import (
    CONTEXT,
    NO,
    PARTLY,
    YES,
    ChoiceQuestion,
    GenerateQuestion,
    ask_claims,
    ask_questions,
)
from metric_core.prompts.prompt_set import PromptSet, load_prompts, packaged_languages
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.models.judges.protocol import ChoiceAnswer
from tasks.options.judge_server_options import ServerJudgeOptions

ROOT = Path(__file__).parents[1]
EXAMPLE, ATTACKED = ROOT / "examples" / "handbook.jsonl", ROOT / "examples" / "handbook_attacked.jsonl"
UNFENCED = "+unfenced"

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


@dataclass
class Asked:
    """A set of prompts, the judge that all sets share, and what it has answered, in a file if there is one."""

    judge: OpenAIJudge
    prompts: PromptSet
    unfenced: bool
    file: Path | None
    known: dict[str, tuple[str | None, float]] = field(default_factory=dict)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Let the judge ask with this set: probes, of which some take minutes on a CPU, are not repeated for each."""
        with ExitStack() as stack:
            stack.enter_context(patch.object(self.judge, "_prompts", self.prompts))
            if self.unfenced:
                stack.enter_context(patch("metric_core.prompts.templates.fence", _label))
            yield

    def expect(
        self, questions: Sequence[ChoiceQuestion], batch: int = 64
    ) -> tuple[list[str | None], NDArray[np.float64]]:
        """Return the label and the expected label, as a number, of each question; ask what is not known."""
        with self.asking():
            rendered = [self.prompts.render(question) for question in questions]
            keys = [hashlib.sha256(f"{one.system}\n\n{one.user}".encode()).hexdigest() for one in rendered]
            new = [index for index, key in enumerate(keys) if key not in self.known]
            for start in range(0, len(new), batch):
                part = new[start : start + batch]
                answers = self.judge.choose([questions[index] for index in part])
                for index, answer in zip(part, answers, strict=True):
                    self.keep(keys[index], answer.label, expect_label(answer, questions[index].labels))
        return [self.known[key][0] for key in keys], np.array([self.known[key][1] for key in keys])

    def keep(self, key: str, label: str | None, value: float) -> None:
        """Keep an answer; append it to the file."""
        self.known[key] = label, value
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as output:
                output.write(json.dumps([key, label, value]) + "\n")


def _label(label: str, text: str) -> str:
    return f"{label.capitalize()}:\n{text}"


def read_answers(file: Path | None) -> dict[str, tuple[str | None, float]]:
    """Return the answers that an earlier run kept."""
    if file is None or not file.exists():
        return {}
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {key: (label, value) for key, label, value in lines}


def expect_label(answer: ChoiceAnswer, labels: Sequence[str]) -> float:
    """Return the expected label as a number from 0 to 1; that of the label where it has no probability."""
    numbers = [VALUES.get(label, float(label) if label.isdigit() else 0.0) for label in labels]
    most = max(numbers)
    by_label = {label: number / most for label, number in zip(labels, numbers, strict=True)}
    if answer.probabilities is not None:
        return sum(by_label[label] * probability for label, probability in answer.probabilities.items())
    return by_label[answer.label] if answer.label is not None else float("nan")


def measure_agreement(sets: Mapping[str, Asked], kinds: Sequence[str], count: int) -> None:
    """Print a line per kind of question and set of prompts."""
    print(
        f"{'kind':26}{'prompts':14}{'pairs':>6}{'failed':>7}{'commonest':>11}{'AUROC':>20}{'difference':>24}"
        f"{'right':>7}{'difference':>24}{'shorter':>9}{'longer':>8}{'s':>6}",
        flush=True,
    )
    for kind in kinds:
        pairs = sample_pairs(kind, count)
        questions = [pair.question for pair in pairs]
        labels = np.array([float(pair.label) for pair in pairs])
        lengths = np.array([pair.length for pair in pairs])
        short = lengths <= np.median(lengths)
        drawn = [one for one in resamples(np.array([pair.group for pair in pairs])) if len(set(labels[one])) == 2]
        first: tuple[float, NDArray[np.float64], float, NDArray[np.float64]] | None = None
        for name, asked in sets.items():
            start = time.monotonic()
            words, values = asked.expect(questions)
            failed = int(np.isnan(values).sum())
            values[np.isnan(values)] = np.nanmean(values) if failed < len(values) else 0.0
            right = ((values >= 0.5) == (labels == 1)).astype(float)
            whole, draws = auroc(labels, values), np.array([auroc(labels[one], values[one]) for one in drawn])
            mean, means = float(right.mean()), np.array([right[one].mean() for one in drawn])
            word, times = Counter(words).most_common(1)[0]
            line = f"{kind:26}{name:14}{len(pairs):6}{failed:7}{f'{word} {times / len(pairs):.0%}':>11}"
            line += f"{with_interval(whole, draws):>20}"
            ranks = "" if first is None else with_interval(whole - first[0], draws - first[1], sign="+")
            shares = "" if first is None else with_interval(mean - first[2], means - first[3], sign="+")
            halves = [auroc(labels[half], values[half]) for half in (short, ~short)]
            line += f"{ranks:>24}{mean:7.2f}{shares:>24}{halves[0]:9.2f}{halves[1]:8.2f}{time.monotonic() - start:6.0f}"
            print(line, flush=True)
            first = first or (whole, draws, mean, means)


def read_attacks() -> dict[str, str]:
    """Return the attacks of the example: kind -> the text that was added to a passage."""
    attacks: dict[str, str] = {}
    plain, attacked = (
        [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] for file in (EXAMPLE, ATTACKED)
    )
    for before, after in zip(plain, attacked, strict=True):
        for old, new in zip(before["retrieved_contexts"], after["retrieved_contexts"], strict=True):
            if new != old and after["attack"] not in attacks:
                attacks[after["attack"]] = new.replace(old, "").strip("\n")
    return attacks


def attack(pair: Pair, text: str) -> ChoiceQuestion:
    """Return the question of a pair with an attack after its passage."""
    question = pair.question
    return replace(question, texts={**question.texts, CONTEXT: f"{question.texts[CONTEXT]}\n\n{text}"})


def measure_attacks(sets: Mapping[str, Asked], count: int) -> None:
    """Print, for each attack and set, the mean probability of yes for claims without support, and how far it moved."""
    pairs = [pair for pair in sample_pairs("verdict of citations", 2 * count) if not pair.label]
    print(f"{'attack':22}" + "".join(f"{name:>16}{'moved by':>24}" for name in sets), flush=True)
    plain = {name: asked.expect([pair.question for pair in pairs])[1] for name, asked in sets.items()}
    drawn = resamples(np.array([pair.group for pair in pairs]))
    moves: dict[str, list[NDArray[np.float64]]] = {name: [] for name in sets}
    for kind, text in read_attacks().items():
        line = f"{kind:22}"
        for name, asked in sets.items():
            moved = asked.expect([attack(pair, text) for pair in pairs])[1] - plain[name]
            moves[name].append(moved)
            draws = np.array([moved[one].mean() for one in drawn])
            line += f"{plain[name].mean() + moved.mean():16.3f}{with_interval(moved.mean(), draws, sign='+'):>24}"
        print(line, flush=True)
    line = f"{'all':22}"
    for name, each in moves.items():
        moved = np.mean(each, axis=0)
        draws = np.array([moved[one].mean() for one in drawn])
        line += f"{plain[name].mean() + moved.mean():16.3f}{with_interval(moved.mean(), draws, sign='+'):>24}"
    print(line)


def measure_leaks(sets: Mapping[str, Asked], words: str, count: int) -> None:
    """Print, for each set of prompts and kind of question, how many replies are usable and how many have the words."""
    examples = [json.loads(line) for line in EXAMPLE.read_text(encoding="utf-8").splitlines()[:count]]
    kinds: dict[str, list[GenerateQuestion]] = {
        "claims": [ask_claims(row["response"], row["user_input"]) for row in examples],
        "questions": [ask_questions(row["response"], 3) for row in examples],
    }
    print(f"{'prompts':24}{'kind':12}{'asked':>8}{'usable':>8}{'with words':>12}{'tokens':>9}")
    for name, asked in sets.items():
        for kind, questions in kinds.items():
            with asked.asking():
                answers = asked.judge.generate(questions)
            usable = [answer for answer in answers if answer.value is not None]
            texts = [json.dumps(answer.value) if answer.value is not None else answer.reply or "" for answer in answers]
            found = sum(re.search(words, text) is not None for text in texts)
            tokens = sum(answer.usage.output_tokens for answer in answers)
            print(f"{name:24}{kind:12}{len(questions):8}{len(usable):8}{found:12}{tokens:9}")


def find_prompts(name: str, scratch: Path) -> str:
    """Return the language or the folder of a set of prompts; one that is changed or of a commit is written there."""
    base = name.removesuffix(UNFENCED)
    if base == name and (name in packaged_languages() or Path(name).is_dir()):
        return name
    if base in packaged_languages() or Path(base).is_dir():
        wordings = dict(load_prompts(base).wordings)
    else:
        wordings = dict(load_prompts("en").wordings)
    if name == "en+examples":
        rules, _, last = wordings["system"].rpartition("\n")
        wordings["system"] = f"{rules}\n{EXAMPLES}\n{last}"
    elif base == name:  # kinds that the commit does not know have today's wording
        wordings |= dict(_wordings_at(name))
    if base != name:
        rules = wordings["system"].splitlines()
        wordings["system"] = "\n".join(rule for rule in rules if "<quoted" not in rule)
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
    parser.add_argument("what", choices=("agreement", "attacks", "leaks"))
    parser.add_argument("url", help="the /v1 URL of a server")
    parser.add_argument("--prompts", nargs="+", default=["en"], help="sets of prompts, compared with the first")
    parser.add_argument("--words", help="leaks: pattern of words that only the examples have")
    parser.add_argument("--kinds", nargs="+", default=list(PAIRS), choices=list(PAIRS), help="agreement: kinds to ask")
    parser.add_argument("--count", type=int, default=100, help="agreement: pairs of a kind; attacks, leaks: rows")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--answers", type=Path, help="agreement, attacks: file that keeps answers")
    options = parser.parse_args()
    if options.what != "leaks" and not DATA.is_dir():
        sys.exit(f"skipped: the labelled data is missing, there is no {DATA}")
    if options.what == "leaks" and options.words is None:
        parser.error("leaks needs --words")
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        settings = ServerJudgeOptions(
            urls=(options.url,), max_output_tokens=400, concurrency=options.concurrency, timeout=600
        )
        judge, known = OpenAIJudge(settings), read_answers(options.answers)
        stack.callback(judge.close)
        sets = {
            Path(name).name: Asked(
                judge, load_prompts(find_prompts(name, scratch)), name.endswith(UNFENCED), options.answers, known
            )
            for name in options.prompts
        }
        if options.what == "agreement":
            measure_agreement(sets, options.kinds, options.count)
        elif options.what == "attacks":
            measure_attacks(sets, options.count)
        else:
            measure_leaks(sets, options.words, options.count)


if __name__ == "__main__":
    main()
