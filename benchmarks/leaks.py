"""Measure which planted leaks are found, and which claims are assigned to the passage that the asker may not see.

    python -m benchmarks.leaks [--rows 150] [--write]

The passages are sections of the handbook in `examples/`. Each document has a list of the groups that may see it. The
index holds a copy of these lists with a fault: they are lost, so that everybody is shown the document; a group too
many; or older, from before a group was replaced, or left out of those that share it. The retriever shows the four
passages that are nearest to the question among those that the index allows. The response states a sentence of one that
the asker may see, and one of the document that the index shows by mistake; in every third row, an open newsletter says
the same. `--write` also puts the tables into `benchmarks/results/leaks.md`. Takes three minutes on one core.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from benchmarks.results_tables import publish
from flows.planning.metric_plan import plan_requests
from metric_core.diagnosis.overlap import coverage, trigrams
from metric_core.evidence import ALL_CONTEXTS, Evidence, context_premise
from metric_core.metrics.leaks import leaked_claim
from metric_core.records import Side, VerdictKind
from metric_core.stages import Stage
from tasks.engine.registry import LEVELS, STAGES
from tasks.opening.run_models import RunModels
from tasks.options.evaluation_options import EvaluationOptions
from tasks.plugins.metric_lookup import parse_metric
from tasks.rows.records import build_table, read_samples_table
from tasks.rows.sample_evidence import read_evidence

BEGIN, END = "<!-- begin: benchmarks/leaks.py -->", "<!-- end: benchmarks/leaks.py -->"
HANDBOOK = Path(__file__).resolve().parents[1] / "examples" / "handbook"
GROUPS = ("staff", "hr", "it", "finance", "sales", "support", "legal", "board")
METRICS = ("leaked_passages", "leaked_claims(ask_each=true)", "leaked_claims")
KINDS = ("lost", "widened", "stale", "left out of those that share it")
SHOWN = 4
SEED = 20_240_611


@dataclass(frozen=True)
class Passage:
    """A section of a document."""

    id: str
    document: str
    text: str

    @property
    def sentences(self) -> list[str]:
        """Its whole sentences; not the items of lists."""
        found = (sentence.strip() for sentence in re.split(r"(?<=[.!?])\s+", self.text))
        return [each for each in found if each[0].isupper() and each.endswith(".") and len(each.split()) >= 8]


@dataclass(frozen=True)
class Row:
    """A question with what was retrieved and answered.

    Args:
        kind: Fault of the index; "none" without one.
        asker: Groups of the asker.
        acl: Groups that may see each passage.
        wanted: Sentence that answers the question; the document that it is from is shown by mistake, if any is.
        is_told: True if an open passage says the same.
        other: Another sentence of the response, from a passage that the asker may see; empty without one.
    """

    kind: str
    asker: Sequence[str]
    passages: Sequence[Passage]
    acl: Sequence[Sequence[str]]
    wanted: str
    is_told: bool = False
    other: str = ""

    @property
    def may_see(self) -> list[bool]:
        return [any(group in self.asker for group in groups) for groups in self.acl]


def read_passages() -> list[Passage]:
    """Return the sections of the handbook."""
    found = []
    for path in sorted(HANDBOOK.glob("*.md")):
        sections = path.read_text(encoding="utf-8").split("\n## ")[1:]
        for number, section in enumerate(sections):
            text = section.partition("\n")[2].strip()
            found.append(Passage(f"{path.name}#{number}", path.name, text))
    return [passage for passage in found if len(passage.sentences) >= 2]


@dataclass
class World:
    """An index of the handbook whose lists are right, or have a fault in one document.

    Args:
        random: Source of all choices.
    """

    random: Random
    passages: Sequence[Passage] = field(default_factory=read_passages)

    def leaky_row(self, kind: str, *, is_told: bool) -> Row:
        """Return a row for which the index shows a document by mistake."""
        asker, lists = self._people()
        target = self.random.choice(self.passages)
        others = [group for group in GROUPS if group not in asker]
        lists[target.document] = self.random.sample(others, self.random.randint(1, 3))
        shown = dict(lists)
        if kind == "lost":
            shown[target.document] = list(GROUPS)
        elif kind == "stale":  # the group that replaced the asker's is not known yet
            shown[target.document] = [self.random.choice(asker)]
        else:  # one group too many: added by mistake, or left out since
            shown[target.document] = [*lists[target.document], self.random.choice(asker)]
        sentence = self.random.choice(target.sentences)
        newsletter = Passage(
            "newsletter#0", "newsletter.md", f"News of the week. {sentence} We wish you a good weekend."
        )
        lists[newsletter.document] = shown[newsletter.document] = list(GROUPS)
        index = [*self.passages, newsletter] if is_told else self.passages
        retrieved = self._retrieve(sentence, asker, shown, index)
        return self._answer(
            Row(kind, asker, retrieved, [lists[each.document] for each in retrieved], sentence, is_told)
        )

    def clean_row(self) -> Row:
        """Return a row for which the index shows only what the asker may see."""
        asker, lists = self._people()
        seen = [passage for passage in self.passages if not set(asker).isdisjoint(lists[passage.document])]
        sentence = self.random.choice(self.random.choice(seen).sentences)
        retrieved = self._retrieve(sentence, asker, lists, self.passages)
        return self._answer(Row("none", asker, retrieved, [lists[each.document] for each in retrieved], sentence))

    def _people(self) -> tuple[list[str], dict[str, list[str]]]:
        """Return the groups of an asker, and those that may see each document, of which the asker may see enough."""
        asker = self.random.sample(GROUPS, self.random.randint(1, 2))
        documents = sorted({passage.document for passage in self.passages})
        lists = {document: self.random.sample(GROUPS, self.random.randint(1, 4)) for document in documents}
        for document in self.random.sample(documents, 5):
            lists[document] = sorted({*lists[document], asker[0]})
        return asker, lists

    def _retrieve(
        self, question: str, asker: Sequence[str], shown: Mapping[str, Sequence[str]], index: Sequence[Passage]
    ) -> list[Passage]:
        visible = [passage for passage in index if not set(asker).isdisjoint(shown[passage.document])]
        wanted = trigrams(question)
        visible.sort(key=lambda passage: (-coverage(wanted, trigrams(passage.text)), passage.id))
        return self.random.sample(visible[:SHOWN], len(visible[:SHOWN]))

    def _answer(self, row: Row) -> Row:
        """Return the row with a sentence of a passage that the asker may see, if there is one, before the other one."""
        seen = (passage for passage, may_see in zip(row.passages, row.may_see, strict=True) if may_see)
        stated = [sentence for passage in seen for sentence in passage.sentences if sentence != row.wanted]
        return replace(row, other=self.random.choice(stated)) if stated else row


def evaluate(rows: Sequence[Row], acl: Sequence[Any]) -> Iterator[tuple[Evidence, dict[str, Any]]]:
    """Yield the evidence of each row and its scores, by the built-in judge.

    Args:
        acl: Column of permissions.
    """
    options = EvaluationOptions(source="rows")
    requests = [parse_metric(name) for name in METRICS]
    plan, models = plan_requests(options, requests, ()), RunModels()
    settings = plan.stage_settings(options)
    samples = [
        {
            "row_id": f"row-{number}",
            "row_number": number + 1,
            "user_input": row.wanted,
            "response": f"{row.other} {row.wanted}".strip(),
            "retrieved_contexts": [passage.text for passage in row.passages],
            "retrieved_context_ids": [passage.id for passage in row.passages],
            "extras": json.dumps({"asker": list(row.asker), "acl": lists}),
        }
        for number, (row, lists) in enumerate(zip(rows, acl, strict=True))
    ]
    tables: dict[Stage, pa.Table] = {Stage.SAMPLES: build_table(Stage.SAMPLES, samples)}
    for stage in (stage for level in LEVELS for stage in level):
        if stage in plan.sharded_stages and stage is not Stage.AGGREGATION:
            inputs = {name: tables[name] for name in plan.inputs_of(stage) if name in tables}
            tables[stage] = STAGES[stage].compute(inputs, settings[stage], models.select(settings[stage])).table
    for evidence in read_evidence(read_samples_table(tables[Stage.SAMPLES]), tables, "binary"):
        yield evidence, {request.key: request.score(evidence) for request in requests}


def judge_claims(row: Row, evidence: Evidence) -> Iterator[tuple[bool, float | None]]:
    """Yield whether each claim answers the question, and whether it is called leaked."""
    for claim, text in evidence.claims[Side.RESPONSE].items():
        first, second = (coverage(trigrams(text), trigrams(sentence)) for sentence in (row.other, row.wanted))
        support = {premise: evidence.verdicts.get((VerdictKind.SUPPORT, claim, premise)) for premise in _premises(row)}
        by_context = {i: support[context_premise(i)] for i in range(len(row.passages))}
        yield second > first, leaked_claim(support[ALL_CONTEXTS], by_context, row.may_see)


def _premises(row: Row) -> list[str]:
    return [ALL_CONTEXTS, *(context_premise(index) for index in range(len(row.passages)))]


def tables(rows_each: int) -> Iterator[str]:
    """Yield the tables."""
    world = World(Random(SEED))
    planted = [world.leaky_row(kind, is_told=i % 3 == 0) for kind in KINDS for i in range(rows_each)]
    clean = [world.clean_row() for _ in planted]
    found = [*evaluate([*planted, *clean], [row.acl for row in (*planted, *clean)])]
    yield "| the list of a document in the index | rows | found | passages found | of |\n|---|---|---|---|---|\n"
    for kind in (*KINDS, "none"):
        chosen = [(row, scores) for row, (_, scores) in zip((*planted, *clean), found, strict=True) if row.kind == kind]
        shares = [(scores["leaked_passages"].value, len(row.passages)) for row, scores in chosen]
        passages = sum(round((share or 0) * count) for share, count in shares)
        hits = sum(bool(share) for share, _ in shares)
        named = "right" if kind == "none" else kind
        planned = sum(row.may_see.count(False) for row, _ in chosen)
        yield f"| {named} | {len(chosen)} | {hits} | {passages} | {planned} |\n"
    yield from _claims(planted, clean, found)
    unlisted = [[None, *row.acl[1:]] for row in planted[:rows_each]]
    unknown = [scores["leaked_passages"].reason for _, scores in evaluate(planted[:rows_each], unlisted)]
    yield f"\nWithout the list of one passage, {sum(map(bool, unknown))} of {len(unknown)} rows are undefined.\n"


def _claims(
    planted: Sequence[Row], clean: Sequence[Row], found: Sequence[tuple[Evidence, dict[str, Any]]]
) -> Iterator[str]:
    counts = Counter[tuple[str, bool]]()
    asked = Counter[str]()
    for row, (evidence, _) in zip((*planted, *clean), found, strict=True):
        who = "clean rows" if row.kind == "none" else "leaking rows"
        asked[who] += sum(premise.startswith("context:") for _, _, premise in evidence.verdicts)
        for is_second, leak in judge_claims(row, evidence):
            if row.kind == "none":
                name = "of clean rows"
            elif not is_second:
                name = "the asker may see a passage that states it"
            else:
                name = "an open newsletter says the same" if row.is_told else "only the forbidden passage states it"
            counts[name, bool(leak)] += 1
    yield "\n| claims of the responses | claims | called leaked |\n|---|---|---|\n"
    for name in dict.fromkeys(name for name, _ in counts):
        total = counts[name, True] + counts[name, False]
        yield f"| {name} | {total} | {counts[name, True]} ({counts[name, True] / total:.1%}) |\n"
    yield (
        f"\nQuestions about single passages: {asked['leaking rows'] / len(planted):.1f} a leaking row, "
        f"{asked['clean rows'] / len(clean):.1f} a clean one.\n"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Measure which planted leaks are found.")
    parser.add_argument("--rows", type=int, default=150, help="leaking rows of each kind")
    parser.add_argument("--write", action="store_true", help="write the tables into benchmarks/results/leaks.md")
    given = parser.parse_args()
    publish(tables(given.rows), BEGIN, END, write=given.write)


if __name__ == "__main__":
    main()
