"""Choose examples for prompts among labelled claims.

Questions are read in the order of their digests, which says nothing about their labels, until there are enough examples
of each answer. All labels of the questions that were read are set aside, not only the examples: the others are then as
random a sample as all labels were.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from metric_core.errors import SourceError
from metric_core.prompts.examples import INTRODUCTION, Example, Examples, SetAside
from metric_core.prompts.judge_questions import NO, YES, ChoiceQuestion, ask_verdict
from metric_core.question_kinds import QuestionKind
from tasks.calibration.label_items import LabelItem, read_texts
from tasks.calibration.stored_labels import KnownLabels
from tasks.runs.finished_run import FinishedRun

LONGEST = 4000
"""Characters of a claim and its passages that an example may have."""
_MOST = 1 / 3
"""Largest share of the labels that may be set aside."""
_ANSWERS = {1.0: YES, 0.0: NO}


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim that people have labelled."""

    item: LabelItem
    question: ChoiceQuestion
    answer: str

    @property
    def length(self) -> int:
        """Number of characters of its texts."""
        return sum(map(len, self.question.texts.values()))


def find_labelled_claims(run: FinishedRun, items: Sequence[LabelItem]) -> list[LabelledClaim]:
    """Return the claims with a label that is yes or no, each once."""
    values = KnownLabels.of_items(items).settled.values
    unique = {item.digest: item for item in items if values.get(item.digest) in _ANSWERS}
    texts = read_texts(run, list(unique.values()))
    found = []
    for digest, item in unique.items():
        premise = "\n".join(texts[item.key].passages)
        if premise.strip():  # the judge is not asked without one
            found.append(LabelledClaim(item, ask_verdict(texts[item.key].claim, premise), _ANSWERS[values[digest]]))
    return found


def choose_examples(labelled: Sequence[LabelledClaim], count: int, metric: str) -> Examples:
    """Choose equally many examples of either answer, at most one per question.

    Args:
        count: Number of examples; an odd one is of "yes".
        metric: Key of the metric that the labels are about.

    Raises:
        SourceError: There are too few labels.
    """
    by_question: dict[str, list[LabelledClaim]] = defaultdict(list)
    for claim in sorted(labelled, key=lambda claim: claim.item.digest):
        by_question[claim.item.question].append(claim)
    missing = Counter({YES: (count + 1) // 2, NO: count // 2})
    chosen: list[LabelledClaim] = []
    passed: list[LabelledClaim] = []
    for _, claims in sorted(by_question.items()):
        if not missing.total():
            break
        passed += claims
        fit = [each for each in claims if missing[each.answer] and each.length <= LONGEST]
        if fit:
            missing[fit[0].answer] -= 1
            chosen.append(fit[0])
    if missing.total() or len(passed) > _MOST * len(labelled):
        answers = Counter(claim.answer for claim in labelled)
        long = sum(claim.length > LONGEST for claim in labelled)
        raise SourceError(
            f"{len(labelled)} labels of claims of {metric} ({answers[YES]} yes, {answers[NO]} no) are too few for "
            f"{count} examples, which may set aside a third of them. {long} are too long for an example, with more "
            f"than {LONGEST:,} characters. Label more claims (`assay label --claims`), or take fewer examples"
        )
    of_answer = [[each for each in chosen if each.answer == answer] for answer in (YES, NO)]
    alternating = [each for pair in zip_longest(*of_answer) for each in pair if each is not None]
    return Examples(
        INTRODUCTION,
        metric,
        tuple(Example(QuestionKind.VERDICT, each.question.texts, each.answer) for each in alternating),
        SetAside(frozenset(each.item.digest for each in passed), frozenset(each.item.question for each in passed)),
    )
