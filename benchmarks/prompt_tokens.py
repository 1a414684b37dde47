"""Count the prompt tokens that a row costs a judge at least: with a prefix cache that forgets nothing.

    python -m benchmarks.prompt_tokens                              # the packaged prompts
    python -m benchmarks.prompt_tokens --prompts en en-short mine   # prompts of several folders, side by side
    python -m benchmarks.prompt_tokens --tokenizer tokenizer.json   # tokens of a model in place of 4 characters each

Needs the rows and the stub judge of the peer benchmark in `../shared/peer` beside the repository. The stages ask all
questions of the eleven metrics here, in one process. Replies depend on the texts of a question alone, so that all
prompts are measured on the same questions. A token is cached if its whole block of 16 tokens and everything before it
has been sent before. `at a tenth` is what a service bills that counts a cached token as a tenth of a token. Where in
its block a text begins is luck, and a chat template moves it: the last line has the mean of four positions.
"""

import argparse
import hashlib
import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.peer_stub import STUB, load_stub
from benchmarks.targets import at_most
from metric_core.metrics.registry import resolve
from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, JudgeQuestion, question_digest
from metric_core.prompts.prompt_set import PromptSet, load_prompts
from metric_core.stages import Stage, closure
from tasks.models.judges.protocol import Judge
from tasks.models.judges.scripted import ScriptedJudge
from tasks.models.recognizers.spacy_pipeline import DEFAULT_MODEL, SpacyPipeline
from tasks.options.metric_settings import MetricSettings
from tasks.rows.records import build_table
from tasks.stages.claims import ClaimsSettings, claims
from tasks.stages.questions import QuestionsSettings, questions
from tasks.stages.ratings import RatingsSettings, ratings
from tasks.stages.verdicts import VerdictsSettings, verdicts

ROWS = STUB.with_name("bench_rows.jsonl")
METRICS = (
    *("faithfulness", "answer_relevancy", "context_precision", "context_recall", "answer_similarity"),
    *("context_entity_recall", "factual_correctness", "noise_sensitivity"),
    *("nv_accuracy", "nv_context_relevance", "nv_response_groundedness"),
)
BLOCK, CHARACTERS = 16, 4
"""Tokens of a block of the prefix cache, and characters of a token where no tokenizer is given."""
TARGET = 3800

Tokenize = Callable[[str], Sequence[Hashable]]


@dataclass(frozen=True)
class Count:
    """Questions and tokens of a kind of question."""

    questions: int = 0
    sent: int = 0
    uncached: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(self.questions + other.questions, self.sent + other.sent, self.uncached + other.uncached)


@dataclass
class PrefixCache:
    """A prefix cache that forgets nothing."""

    _blocks: set[bytes] = field(default_factory=set)

    def add(self, tokens: Sequence[Hashable]) -> int:
        """Add a prompt, and return how many of its tokens were not cached."""
        state, hit, cached = hashlib.sha256(), True, 0
        for start in range(0, len(tokens) - BLOCK + 1, BLOCK):
            state.update(repr(tokens[start : start + BLOCK]).encode())
            key = state.digest()[:12]
            hit = hit and key in self._blocks
            cached += BLOCK * hit
            self._blocks.add(key)
        return max(len(tokens) - cached, 1)


def main() -> None:
    """Print the tokens of each set of prompts by kind of question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", nargs="+", default=["en"], help="languages or folders of prompts")
    parser.add_argument("--rows", type=int, default=200, help="rows, at most 200")
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json of a model")
    options = parser.parse_args()
    tokenize = _four_characters if options.tokenizer is None else _load_tokenizer(options.tokenizer)
    asked = ask_rows(options.rows)
    for name in options.prompts:
        prompts = load_prompts(name)
        counted = [count_tokens(asked, prompts, tokenize, moved) for moved in range(0, BLOCK, BLOCK // 4)]
        print_counts(name, counted, options.rows)


def ask_rows(count: int) -> list[JudgeQuestion]:
    """Return the questions about the rows, each once, in the order in which the stages ask them."""
    with ROWS.open(encoding="utf-8") as lines:
        rows = [
            {"row_id": f"row-{number}", "row_number": number, **json.loads(line)}
            for number, line in enumerate(islice(lines, count), start=1)
        ]
    judge = ScriptedJudge(_stub_replies())
    _run_stages(build_table(Stage.SAMPLES, rows), judge)
    return list({question_digest(question): question for question in judge.asked}.values())


def _run_stages(samples: pa.Table, judge: Judge) -> None:
    requests = [resolve(name).request({}) for name in METRICS]
    products = tuple(sorted(closure(product for request in requests for product in request.products)))
    rated = tuple(MetricSettings.from_request(request) for request in requests if request.metric.ratings is not None)
    models, tables = _Models(judge), {Stage.SAMPLES: samples}
    settings: Any
    for stage, settings in (
        (claims, ClaimsSettings(products=products)),
        (questions, QuestionsSettings()),
        (verdicts, VerdictsSettings(products=products)),
        (ratings, RatingsSettings(metrics=rated)),
    ):
        tables[stage.stage] = stage.compute(tables, settings, models).table


@dataclass(frozen=True)
class _Models:
    """The models of the stages that ask a judge."""

    given: Judge

    def judge(self) -> Judge:
        return self.given

    def pipeline(self) -> SpacyPipeline:
        return SpacyPipeline(DEFAULT_MODEL)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"no stage that asks a judge needs a model for {name}")


def _stub_replies() -> Callable[[JudgeQuestion], Any]:
    """Return a function that replies as the stub judge does, by the texts of a question instead of its prompt."""
    stub = load_stub()

    def reply(question: JudgeQuestion) -> Any:
        key = question_digest(question)
        if isinstance(question, ChoiceQuestion):
            return question.labels[stub.h(key, "0") % len(question.labels)]
        assert isinstance(question, GenerateQuestion)
        return stub.Gen(question.schema, key).gen(question.schema)

    return reply


def _four_characters(text: str) -> Sequence[Hashable]:
    return [text[start : start + CHARACTERS] for start in range(0, len(text), CHARACTERS)]


def _load_tokenizer(file: Path) -> Tokenize:
    from tokenizers import Tokenizer  # noqa: PLC0415 needed with --tokenizer only

    tokenizer = Tokenizer.from_file(str(file))
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def count_tokens(
    asked: Sequence[JudgeQuestion], prompts: PromptSet, tokenize: Tokenize, moved: int = 0
) -> dict[str, Count]:
    """Return the questions and tokens by kind; a shared beginning is counted where it is first asked about.

    Args:
        asked: Questions, in the order in which they are asked.
        prompts: Prompts to ask them with.
        tokenize: Function that splits a prompt into tokens.
        moved: Tokens that a chat template writes before each prompt.
    """
    cache, counts = PrefixCache(), dict[str, Count]()
    for question in asked:
        prompt = prompts.render(question)
        tokens = [*("",) * moved, *tokenize(f"{prompt.system}\n{prompt.user}")]
        counts[question.kind] = counts.get(question.kind, Count()) + Count(1, len(tokens), cache.add(tokens))
    return counts


def print_counts(name: str, counted: Sequence[dict[str, Count]], rows: int) -> None:
    """Print the tokens per row of one set of prompts: by kind for the first position in a block, then the mean."""
    totals = [sum(counts.values(), Count()) for counts in counted]
    print(f"{'prompts ' + name:28}{'questions/row':>14}{'sent':>9}{'uncached':>10}{'a question':>12}{'at a tenth':>12}")
    for kind, count in [*sorted(counted[0].items(), key=lambda item: -item[1].uncached), ("all", totals[0])]:
        billed = count.uncached + (count.sent - count.uncached) / 10
        print(
            f"  {kind:26}{count.questions / rows:14.1f}{count.sent / rows:9.0f}{count.uncached / rows:10.0f}"
            f"{count.uncached / count.questions:12.1f}{billed / rows:12.0f}"
        )
    floors = [total.uncached / rows for total in totals]
    floor = sum(floors) / len(floors)
    what = f"least uncached tokens a row ({min(floors):.0f} to {max(floors):.0f} by position in the block)"
    print(at_most(what, floor, TARGET) + "\n")


if __name__ == "__main__":
    main()
