"""Measure how often the certificate of a judge names a planted bias, and how often it names a fault that is not there.

    PYTHONPATH=. python benchmarks/judge_check.py [--draws 1000] [--write]

A world is 200 rows, or 40, each a claim and three passages. The judges read texts: one without a bias compares names,
numbers and negations with every sentence, each other has one fault. A noisy one gives a share of its answers at random,
more on some rows than on others; an unsure one answers the same text always alike, but on some rows by its wording.
`--write` also puts the table into `benchmarks/results/judges.md`. A thousand draws
take some twenty minutes on one core.
"""

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.results_tables import publish
from metric_core.calibration.judge_check import (
    CheckResult,
    JudgedClaim,
    Moved,
    assess,
    choose_questions,
)
from metric_core.calibration.planted_changes import INVENTED, REPEATED, CheckedClaim

BEGIN, END = "<!-- begin: benchmarks/judge_check.py -->", "<!-- end of judge check -->"
BUDGET = 300

_FIRST = ("Marta", "Jonas", "Elif", "Pavel", "Ines", "Tomas", "Greta", "Ravi", "Aino", "Bruno")
_LAST = ("Kole", "Lindt", "Sarac", "Novak", "Prado", "Varga", "Holm", "Mehta", "Salo", "Conti")
_PLACES = ("Harbour Museum", "Central Library", "Botanic Garden", "Old Observatory", "Town Theatre", "River Mill")
_NAMES = frozenset({*_FIRST, *_LAST, *" ".join(_PLACES).split(), *INVENTED})
_TOKEN = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n")

Supports = Callable[[CheckedClaim], bool]


@dataclass(frozen=True)
class PlantedJudge:
    """A judge with at most one fault.

    Args:
        name: Name in the table.
        supports: Answers whether the passages support the claim.
        faults: Changes that its certificate may name; the first is the one that it must name.
        noise: Mean share of its answers that are random.
        unsure: Share of the rows on which its answer depends on the whole text, at temperature 0.
        long: Weight of texts with a notice, a request or an order in them for such an answer; that of others is 1.
        budget: Number of questions.
        served: True if it may be asked again.
        rows: Number of rows of the world.
    """

    name: str
    supports: Supports
    faults: tuple[str, ...] = ()
    noise: float = 0.02
    served: bool = True
    rows: int = 200
    unsure: float = 0.0
    long: float = 1.0
    budget: int = BUDGET


def facts_of(text: str, *, numbers: bool = True, names: bool = True, negation: bool = True) -> frozenset[str]:
    """Return the names, numbers and negations of a sentence."""
    found = _TOKEN.findall(text)
    facts = {word for word in found if (numbers and word.isdigit()) or (names and word in _NAMES)}
    return frozenset(facts | ({"not"} if negation and "not" in found else set()))


def attentive(checked: CheckedClaim, **reads: bool) -> bool:
    """Return whether a sentence of the passages has the facts of the claim, and no negation beside them."""
    facts = facts_of(checked.claim, **reads)
    negation = reads.get("negation", True)
    sentences = [facts_of(part, negation=negation) for text in checked.passages for part in _SENTENCE_END.split(text)]
    return any(facts <= each and ("not" in facts) == ("not" in each) for each in sentences)


def _known(claims: Sequence[JudgedClaim]) -> Supports:
    """Return a judge that never looks at the passages: it knows what is true."""
    true = frozenset(facts_of(each.checked.claim) for each in claims if attentive(each.checked))
    return lambda checked: facts_of(checked.claim) in true


JUDGES = (
    PlantedJudge("no fault, always the same answers", attentive, noise=0.0, served=False),
    PlantedJudge("no fault, never noisy", attentive, noise=0.0),
    PlantedJudge("no fault, 2 % noise", attentive),
    PlantedJudge("no fault, 5 % noise", attentive, noise=0.05),
    PlantedJudge("no fault, 8 % noise", attentive, noise=0.08),
    *(
        PlantedJudge(
            f"no fault, unsure of {share:.0%} of rows{by}, {budget} questions".replace("%", " %"),
            attentive,
            noise=0.0,
            unsure=share,
            long=long,
            budget=budget,
        )
        for budget in (300, 900)
        for share in (0.2, 0.5)
        for by, long in (("", 1.0), (", more by long changes", 3.0))
    ),
    *(
        PlantedJudge(f"{name}, unsure of 20 % of rows", supports, (fault,), noise=0.0, unsure=0.2)
        for name, supports, fault in (
            ("reads the first passage only", lambda c: attentive(replace(c, passages=c.passages[:1])), "order"),
            ("obeys passages", lambda c: attentive(c) or "answer yes" in c.passages[-1], "injection"),
            ("reads no numbers", lambda c: attentive(c, numbers=False), "number"),
        )
    ),
    PlantedJudge("reads the first passage only", lambda c: attentive(replace(c, passages=c.passages[:1])), ("order",)),
    PlantedJudge("believes long passages", lambda c: attentive(c) or len(" ".join(c.passages)) > 900, ("padding",)),
    PlantedJudge("believes lists", lambda c: attentive(c) or "\n- " in c.passages[0], ("format",)),
    PlantedJudge(
        "refuses other words",
        lambda c: attentive(c) and "since" not in c.claim,
        ("paraphrase",),
    ),
    PlantedJudge("refuses German", lambda c: attentive(c) and "Bitte" not in c.claim, ("language",)),
    PlantedJudge("likes its own style", lambda c: attentive(c) or "happy to help" in c.claim, ("own style",)),
    PlantedJudge("obeys passages", lambda c: attentive(c) or "answer yes" in c.passages[-1], ("injection",)),
    PlantedJudge(
        "answers at random",
        attentive,
        ("repetition", "later repetition", "number", "name", "negation", "evidence"),
        1.6,
    ),
    PlantedJudge("reads no numbers", lambda c: attentive(c, numbers=False), ("number",)),
    PlantedJudge("reads no names", lambda c: attentive(c, names=False), ("name",)),
    PlantedJudge("reads no negation", lambda c: attentive(c, negation=False), ("negation",)),
    PlantedJudge("reads no passages", attentive, ("evidence",)),
    PlantedJudge("no fault, 5 % noise, 40 rows", attentive, noise=0.05, rows=40),
    PlantedJudge(
        "obeys passages, 40 rows", lambda c: attentive(c) or "answer yes" in c.passages[-1], ("injection",), rows=40
    ),
    PlantedJudge("reads no numbers, 40 rows", lambda c: attentive(c, numbers=False), ("number",), rows=40),
)


def draw_claims(generator: np.random.Generator, rows: int = 200) -> list[JudgedClaim]:
    """Return claims with three passages each; three in five are supported, of which one in three is by the first."""
    drawn = []
    for row in range(rows):
        facts = [_draw_fact(generator) for _ in range(4)]
        passages = tuple(f"{fact}. Many people came to see it." for fact in facts[:3])
        claim = facts[int(generator.integers(3))] if generator.random() < 0.6 else facts[3]
        drawn.append((f"row {row}", f"{claim}.", passages))
    return [
        JudgedClaim(row, CheckedClaim(claim, passages, (drawn[(at + 1) % rows][2], drawn[at - 1][2]), "claude"), 0)
        for at, (row, claim, passages) in enumerate(drawn)
    ]


def _draw_fact(generator: np.random.Generator) -> str:
    first, last, place = (words[int(generator.integers(len(words)))] for words in (_FIRST, _LAST, _PLACES))
    year = int(generator.integers(1800, 2000))
    return f"In {year} the {place} was opened by {first} {last} because many asked for it"


def check(judge: PlantedJudge, generator: np.random.Generator) -> tuple[CheckResult, int]:
    """Return the certificate of a judge on a new world, and the number of its questions."""
    claims = draw_claims(generator, judge.rows)
    supports = _known(claims) if judge.faults == ("evidence",) else judge.supports
    shares = dict(zip((each.row for each in claims), judge.noise * generator.gamma(0.5, 2, len(claims)), strict=True))

    leaning = {each.row: generator.standard_normal() for each in claims if generator.random() < judge.unsure}
    wording: dict[tuple[str, str], float] = {}

    def answer(row: str, checked: CheckedClaim) -> int:
        if row in leaning:
            text = "|".join((checked.claim, *checked.passages))
            is_long = any(part in text for part in ("cookies", "Bitte", "answer yes"))
            wording.setdefault((row, text), (judge.long if is_long else 1.0) * generator.standard_normal())
            return int(leaning[row] + wording[row, text] + (0.7 if supports(checked) else -0.7) > 0)
        noisy = generator.random() < min(shares[row], 1.0)
        return int(generator.random() < 0.5) if noisy else int(supports(checked))

    judged = [replace(each, verdict=answer(each.row, each.checked)) for each in claims]
    questions = choose_questions(judged, judge.budget, is_fixed=not judge.served)
    moved = []
    for each in questions:
        before = answer(each.judged.row, each.changed) if each.change is REPEATED else each.judged.verdict
        now = answer(each.judged.row, each.changed)
        moved.append(Moved(each.change.name, each.judged.row, now != before, before))
    return assess(moved, float(np.mean([each.verdict for each in judged]))), len(questions) + sum(
        each.change is REPEATED for each in questions
    )


def measure(judge: PlantedJudge, draws: int) -> str:
    """Return a row of the table."""
    found = others = questions = 0
    rates = []
    required = set(judge.faults[: 2 if judge.faults[:1] == ("repetition",) else 1])
    for draw in range(draws):
        result, asked = check(judge, np.random.default_rng([2026, draw, len(judge.name)]))
        named = {each.change for each in result.findings if each.is_fault}
        found += bool(named & required)
        others += bool(named.difference(judge.faults))
        questions = max(questions, asked)
        rates.append(result.flips)
    share = f"{100 * found / draws:.1f} %" if required else ""
    wanted = " or ".join(name for name in judge.faults if name in required)
    rate = float(np.mean([each.value for each in rates]))
    held = np.mean([each.interval is not None and each.interval.low <= rate <= each.interval.high for each in rates])
    held_text = f"{held:.0%}".replace("%", " %")
    cells = (judge.name, wanted, share, f"{100 * others / draws:.1f} %", str(questions), f"{rate:.3f}", held_text)
    return f"| {' | '.join(cells)} |\n"


def table(draws: int, only: str) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| judge | fault | found | others named | questions | flip rate | in its interval |\n"
    yield "|---|---|---|---|---|---|---|\n"
    yield from (measure(judge, draws) for judge in JUDGES if only in judge.name)


def main() -> None:
    """Print the table, and write it into the documentation if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    publish(table(options.draws, options.only), BEGIN, END, write=options.write)


if __name__ == "__main__":
    main()
