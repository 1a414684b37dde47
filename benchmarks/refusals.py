"""Measure how well the forms of refusals tell refusals from answers, on replies that people labelled.

    PYTHONPATH=. python benchmarks/refusals.py

Prints recall, false rate and balanced accuracy for each data set, language and half, and the share of the refusals
found whose kind is right. The forms were written with the rows of the half "seen" in view; "unseen" has other
questions. The rows of data sets without labels of refusals count as answers, although a few do refuse. Needs the
labelled data in `../shared/meta_eval` beside the repository; says so and ends without it.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.labelled_examples import DATA, rows
from metric_core.refusals.refusal_forms import refusal_kind
from metric_core.refusals.refusal_kinds import RefusalKind

HALVES = ("seen", "unseen")


@dataclass(frozen=True, slots=True)
class Reply:
    """A labelled reply.

    Args:
        dataset: Name of the data set, with the language if it has several.
        half: The half of the data set that its question is in.
        text: The reply.
        kind: Kind of refusal that it is; None for an answer.
    """

    dataset: str
    half: str
    text: str
    kind: RefusalKind | None


@dataclass(slots=True)
class Rates:
    """Counts of what was found in the replies of a data set."""

    refusals: int = 0
    answers: int = 0
    found: int = 0
    false: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def recall(self) -> float:
        """Share of the refusals that are recognized."""
        return self.found / self.refusals

    @property
    def false_rate(self) -> float:
        """Share of the answers that are called refusals."""
        return self.false / self.answers

    @property
    def balanced_accuracy(self) -> float:
        """Mean of the shares of refusals and of answers that are recognized."""
        return (self.recall + 1 - self.false_rate) / 2

    @property
    def of_the_kind(self) -> float:
        """Share of the recognized refusals that have the kind of their data set."""
        return self.kinds["right"] / self.found


def half_of(group: str) -> str:
    """Return the half that the questions of a group are in."""
    return HALVES[hashlib.sha256(group.encode()).digest()[0] % 2]


def policy_refusals() -> Iterator[Reply]:
    """Read XSTest: full refusals of five language models, and replies that comply; partial refusals are left out."""
    kinds = {"2_full_refusal": RefusalKind.POLICY_REFUSAL, "1_full_compliance": None}
    for row in rows("refusals_xstest"):
        if row["label"] in kinds:
            yield Reply("xstest", half_of(row["group_id"]), row["response"], kinds[row["label"]])


def turns(unanswered: str, kind: RefusalKind) -> Iterator[Reply]:
    """Read MTRAG-UN: what people wrote on turns of one label, and on answerable ones."""
    kinds = {unanswered: kind, "ANSWERABLE": None}
    for row in rows("answerability_mtragun"):
        label = row["label_answerability"]
        if label in kinds:
            name = f"mtrag-un, {unanswered.lower()}"
            yield Reply(name, half_of(row["group_id"]), row["human_answer"], kinds[label])


def answers() -> Iterator[Reply]:
    """Read data sets of answers; of those with labels, the answers that people called right."""
    right: Mapping[str, str | None] = {
        "rag_mtrag_human": None,
        "faithfulness_ragtruth_qa": None,
        "faithfulness_faithbench": None,
        "faithfulness_memerag": None,
        "answer_correctness_evouna": "label_correct",
        "answer_correctness_nq301": "label_correct",
        "answer_relevancy_clapnq": "label_relevant",
        "aspects_haluquestqa": None,
        "citations_attributionbench": None,
        "claims_factscore": None,
        "rag_log_northwind": None,
    }
    for name, label in right.items():
        for row in rows(name):
            is_answer = row.get("answerability", "ANSWERABLE") == "ANSWERABLE" and (label is None or row[label])
            if is_answer and row["response"]:
                language = f", {row['language']}" if "language" in row else ""
                yield Reply(f"{name}{language}", half_of(row["group_id"]), row["response"], None)


def every_reply() -> Iterator[Reply]:
    """Read all data sets."""
    yield from policy_refusals()
    yield from turns("UNANSWERABLE", RefusalKind.NOTHING_FOUND)
    yield from turns("UNDERSPECIFIED", RefusalKind.CLARIFYING_QUESTION)
    yield from answers()


def measure(replies: Iterable[Reply]) -> dict[tuple[str, str], Rates]:
    """Return the counts of each data set by its half, and over both as half "all"."""
    counts: dict[tuple[str, str], Rates] = defaultdict(Rates)
    for reply in replies:
        kind = refusal_kind(reply.text)
        for half in (reply.half, "all"):
            _count(counts[reply.dataset, half], reply, kind)
    return dict(counts)


def _count(rates: Rates, reply: Reply, kind: RefusalKind | None) -> None:
    if reply.kind is None:
        rates.answers += 1
        rates.false += kind is not None
    else:
        rates.refusals += 1
        rates.found += kind is not None
        rates.kinds["right"] += kind is reply.kind


def _line(name: str, half: str, rates: Rates) -> str:
    cells: list[Any] = [name, half, rates.refusals, rates.answers]
    known = (f"{rates.balanced_accuracy:.3f}", f"{rates.recall:.3f}") if rates.refusals else ("", "")
    kind = f"{rates.of_the_kind:.3f}" if rates.found else ""
    return f"| {' | '.join(map(str, (*cells, *known, f'{rates.false_rate:.4f}', kind)))} |"


def main() -> None:
    """Print the table."""
    if not DATA.is_dir():
        print(f"The labelled data is missing: {DATA} does not exist.")
        return
    print("| data | half | refusals | answers | balanced accuracy | recall | false rate | right kind |")
    print("|---|---|---|---|---|---|---|---|")
    for (name, half), rates in measure(every_reply()).items():
        print(_line(name, half, rates))


if __name__ == "__main__":
    main()
